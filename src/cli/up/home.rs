//! The folder that holds all state of one installation, taken by one `tidemark up` at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::connection::write_private;
use crate::cli::{Failure, lifeline};
use crate::config::Secret;

/// How long the processes of an earlier run get to notice that their parent is gone.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(45);

/// The folder of one installation, held by this process alone.
pub(super) struct Home {
    pub(super) dir: PathBuf,
    _lock: File,
}

/// The passwords that were made at the first start.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Passwords {
    clickhouse: String,
    clickhouse_readonly: String,
}

impl Home {
    /// Takes the folder, or says who has it.
    pub(super) fn take(dir: &Path) -> Result<Self, Failure> {
        let fail = |error: io::Error| Failure::new(format!("{} cannot be used: {error}", dir.display()));
        fs::create_dir_all(dir.join("logs")).map_err(fail)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        let dir = dir.canonicalize().map_err(fail)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(dir.join("up.lock"))
            .map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(fail(error)),
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                lock.read_to_string(&mut process).map_err(fail)?;
                return Err(Failure::new(format!(
                    "another tidemark up, process {}, runs in {}: stop it first, or pass --dir and --port to run a second one",
                    process.trim(),
                    dir.display()
                )));
            }
        }
        lock.set_len(0).map_err(fail)?;
        lock.rewind().map_err(fail)?;
        writeln!(lock, "{}", std::process::id()).map_err(fail)?;
        Ok(Home { dir, _lock: lock })
    }

    /// Waits for what an earlier run left behind, which ends by itself.
    pub(super) fn wait_for_leftovers(&self) -> Result<(), Failure> {
        if lifeline::wait_until_free(&self.lifeline(), LEFTOVER_PATIENCE)? {
            return Ok(());
        }
        Err(Failure::new(format!(
            "processes of an earlier tidemark up still hold {} and do not stop: end them, then start again",
            self.lifeline().display()
        )))
    }

    /// The file that every process of the installation holds a lock on.
    pub(super) fn lifeline(&self) -> PathBuf {
        self.dir.join("lifeline.lock")
    }

    /// ClickHouse's passwords, for the service and for those who may only read.
    pub(super) fn clickhouse_passwords(&self) -> Result<(Secret, Secret), Failure> {
        const FILE: &str = "passwords.json";
        let passwords = match fs::read(self.dir.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(format!("{} is damaged: {error}", self.dir.join(FILE).display()))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let passwords = Passwords { clickhouse: password()?, clickhouse_readonly: password()? };
                write_private(&self.dir, FILE, &serde_json::to_vec_pretty(&passwords)?)?;
                passwords
            }
            Err(error) => return Err(error.into()),
        };
        Ok((Secret::new(passwords.clickhouse), Secret::new(passwords.clickhouse_readonly)))
    }
}

fn password() -> Result<String, Failure> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_once_and_keeps_its_passwords() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::take(dir.path()).unwrap();
        let refusal = Home::take(dir.path()).err().expect("the folder is taken").to_string();
        assert!(refusal.contains(&format!("process {}", std::process::id())), "{refusal}");
        let passwords = home.clickhouse_passwords().unwrap();
        assert_ne!(passwords.0, passwords.1);
        drop(home);
        assert_eq!(Home::take(dir.path()).unwrap().clickhouse_passwords().unwrap(), passwords);
    }
}
