//! Addresses and credentials of a running installation: `demo.json` for programs, `demo.env` for shells. Readable by the owner
//! only, and replaced atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

const JSON_FILE: &str = "demo.json";
const SHELL_FILE: &str = "demo.env";

/// An untracked account of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SandboxAccount {
    pub(super) platform: &'static str,
    pub(super) username: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Connection {
    pub(super) base_url: String,
    /// Absent without `--demo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) organization_id: Option<uuid::Uuid>,
    pub(super) database_url: String,
    pub(super) clickhouse_url: String,
    pub(super) clickhouse_database: String,
    pub(super) clickhouse_user: String,
    pub(super) clickhouse_password: String,
    pub(super) clickhouse_readonly_user: String,
    pub(super) clickhouse_readonly_password: String,
    pub(super) sandbox_url: String,
    pub(super) docs_url: String,
    pub(super) sandbox_accounts: Vec<SandboxAccount>,
}

impl Connection {
    /// Writes both files, `demo.json` last: its presence means ready.
    pub(super) fn write(&self, dir: &Path, environment: &[(&'static str, String)]) -> io::Result<()> {
        let shell: String =
            environment.iter().map(|(name, value)| format!("{name}={}\n", quote(value))).collect();
        write_private(dir, SHELL_FILE, shell.as_bytes())?;
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        write_private(dir, JSON_FILE, &json)
    }

    /// The message at the end of the start.
    pub(super) fn introduction(&self, dir: &Path) -> String {
        let mut text = format!("\nTidemark is ready.\n\n  base URL  {}\n", self.base_url);
        if let Some(key) = &self.api_key {
            text.push_str(&format!("  key       {key}\n"));
        }
        text.push_str(&format!("  files     {0}/{JSON_FILE}, {0}/{SHELL_FILE}\n\n", dir.display()));
        match &self.api_key {
            Some(key) => text.push_str(&format!(
                "Try:\n\n  curl -H 'Authorization: Bearer {key}' '{}/overview?period=30d'\n\n",
                self.base_url
            )),
            None => text.push_str(&format!("Try:\n\n  curl '{}/health'\n\n", self.base_url)),
        }
        text.push_str("Ctrl-C stops everything and keeps the data.\n");
        text
    }

    /// Removes the files of an earlier run, which would mean ready.
    pub(super) fn remove(dir: &Path) -> io::Result<()> {
        for name in [JSON_FILE, SHELL_FILE] {
            match fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Replaces a file atomically, with mode 0600.
pub(super) fn write_private(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = dir.join(format!(".{name}.new"));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(draft, dir.join(name))
}

/// Quotes a value for POSIX shells.
fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn shell_file_round_trips_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let value = "it's $HOME `x` \\ \"y\"";
        let connection = Connection {
            base_url: "http://127.0.0.1:8080/v2".into(),
            api_key: None,
            organization_id: None,
            database_url: String::new(),
            clickhouse_url: String::new(),
            clickhouse_database: String::new(),
            clickhouse_user: String::new(),
            clickhouse_password: String::new(),
            clickhouse_readonly_user: String::new(),
            clickhouse_readonly_password: String::new(),
            sandbox_url: String::new(),
            docs_url: String::new(),
            sandbox_accounts: Vec::new(),
        };
        connection.write(dir.path(), &[("TIDEMARK_X", value.into())]).unwrap();
        let script = format!("set -a; . {}/demo.env; printenv TIDEMARK_X", dir.path().display());
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), value);
        for name in [JSON_FILE, SHELL_FILE] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        Connection::remove(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
