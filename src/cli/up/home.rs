//! The folder that holds all state of an installation, locked by one `tidemark up` at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::error::CommandError;
use crate::cli::parent_liveness;

/// How long children of an earlier run may take to exit after their parent.
const CHILD_EXIT_TIMEOUT: Duration = Duration::from_secs(45);

/// An installation's folder, locked by this process.
pub(super) struct Home {
    pub(super) dir: PathBuf,
    _lock: File,
}

impl Home {
    pub(super) fn lock(dir: &Path) -> Result<Self, CommandError> {
        let failed =
            |error: io::Error| CommandError::new(format!("{} cannot be used: {error}", dir.display()));
        create_private_folder(dir).map_err(failed)?;
        fs::create_dir_all(dir.join("logs")).map_err(failed)?;
        let dir = dir.canonicalize().map_err(failed)?;
        let lock = File::options().create(true).read(true).append(true).open(dir.join("up.lock"));
        let mut lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                lock.read_to_string(&mut process).map_err(failed)?;
                return Err(CommandError::new(format!(
                    "another tidemark up, process {}, runs in {}: stop it first, or pass --dir and --port to run a second one",
                    process.trim(),
                    dir.display()
                )));
            }
        }
        lock.set_len(0).map_err(failed)?;
        writeln!(lock, "{}", std::process::id()).map_err(failed)?;
        Ok(Home { dir, _lock: lock })
    }

    /// Waits until the children of an earlier run have exited.
    pub(super) fn wait_for_children(&self) -> Result<(), CommandError> {
        if parent_liveness::wait_for_exit(&self.children_lock(), CHILD_EXIT_TIMEOUT)? {
            return Ok(());
        }
        Err(CommandError::new(format!(
            "processes of an earlier tidemark up hold {} and do not stop: kill them, then start again",
            self.children_lock().display()
        )))
    }

    /// The file that every child holds a shared lock on.
    pub(super) fn children_lock(&self) -> PathBuf {
        self.dir.join("children.lock")
    }
}

/// Creates a folder unless it exists, and sets its mode to 0700.
pub(super) fn create_private_folder(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

/// Replaces a file atomically, with mode 0600.
pub(super) fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let draft = file.with_added_extension("new");
    let mut new = File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    new.write_all(content)?;
    new.sync_all()?;
    fs::rename(draft, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_locked_by_one_process() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::lock(dir.path()).unwrap();
        let error = Home::lock(dir.path()).err().expect("the folder is locked").to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(home);
        assert!(Home::lock(dir.path()).is_ok());
    }
}
