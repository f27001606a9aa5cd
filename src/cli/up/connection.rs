//! Addresses and credentials of a running installation: `demo.json` for programs, `demo.env` for shells. Readable by the owner
//! only, and replaced atomically.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::home::write_private;

const JSON_FILE: &str = "demo.json";
const SHELL_FILE: &str = "demo.env";

/// An untracked account of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SandboxAccount {
    pub(super) platform: &'static str,
    pub(super) username: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ConnectionInfo {
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

impl ConnectionInfo {
    /// Writes both files, `demo.json` last: its presence means ready.
    pub(super) fn write(&self, dir: &Path, environment: &[(&'static str, String)]) -> io::Result<()> {
        let shell: String =
            environment.iter().map(|(name, value)| format!("{name}={}\n", quote(value))).collect();
        write_private(&dir.join(SHELL_FILE), shell.as_bytes())?;
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        write_private(&dir.join(JSON_FILE), &json)
    }

    /// The message at the end of the start.
    pub(super) fn ready_message(&self, dir: &Path) -> String {
        let base_url = &self.base_url;
        let dashboard = base_url.strip_suffix("/v2").unwrap_or(base_url);
        let (dashboard, key, request) = match &self.api_key {
            Some(key) => (
                format!("{dashboard}/#key={key}"),
                format!("  key       {key}\n"),
                format!("curl -H 'Authorization: Bearer {key}' '{base_url}/overview?period=30d'"),
            ),
            None => (format!("{dashboard}/"), String::new(), format!("curl '{base_url}/health'")),
        };
        format!(
            "\nTidemark is ready. Ctrl-C stops everything and keeps the data.\n\n  base URL  {base_url}\n{key}  \
             files     {dir}/{JSON_FILE}, {dir}/{SHELL_FILE}\n\n  {request}\n\nOpen the dashboard:\n\n  {dashboard}\n\n",
            dir = dir.display()
        )
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
        ConnectionInfo::default().write(dir.path(), &[("TIDEMARK_X", value.into())]).unwrap();
        let script = format!("set -a; . {}/demo.env; printenv TIDEMARK_X", dir.path().display());
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), value);
        for name in [JSON_FILE, SHELL_FILE] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        ConnectionInfo::remove(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
