//! The folder that holds all state of one installation, taken by one `tidemark up` at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{Failure, lifeline};

/// How long the processes of an earlier run get to notice that their parent is gone.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(45);

/// The folder of one installation, held by this process alone.
pub(super) struct Home {
    pub(super) dir: PathBuf,
    _lock: File,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::take(dir.path()).unwrap();
        let refusal = Home::take(dir.path()).err().expect("the folder is taken").to_string();
        assert!(refusal.contains(&format!("process {}", std::process::id())), "{refusal}");
        drop(home);
        assert!(Home::take(dir.path()).is_ok());
    }
}
