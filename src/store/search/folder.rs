//! The folder of a process's search index, with a numbered folder for each index in it.
//!
//! A rebuilt index has the next number. The complete index with the highest number is in use, so a process that is killed at
//! any moment finds a complete one again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::changes::IndexPosition;
use super::index::DiskIndex;
use crate::store::Error;

const INDEX_PREFIX: &str = "index-";
const LOCK_FILE: &str = "lock";

/// A folder that this process locks until the value and all of its indexes are dropped.
pub(super) struct IndexFolder {
    path: PathBuf,
    lock: Mutex<Arc<File>>,
}

impl IndexFolder {
    /// Locks the folder and opens its index. An unusable index is removed, logged, and replaced by an empty one.
    pub(super) fn open(path: &Path) -> Result<(Self, DiskIndex), Error> {
        let folder = IndexFolder { path: path.to_owned(), lock: Mutex::new(create_and_lock(path)?) };
        let mut unusable = None;
        let mut indexes = folder.indexes()?;
        let mut usable = None;
        while let Some((_, index_path)) = indexes.pop_last() {
            match DiskIndex::open(&index_path, folder.lock()) {
                Ok(index) if index.position().is_some() => {
                    usable = Some(index);
                    break;
                }
                // Incomplete: its process was killed.
                Ok(_) => {}
                Err(reason) => unusable = Some(reason),
            }
        }
        if let Some(reason) = unusable {
            tracing::warn!(folder = %path.display(), reason, "search index is unusable, rebuilding it");
        }
        let index = match usable {
            Some(index) => index,
            None => folder.create_next(None)?,
        };
        folder.remove_all_but(&index)?;
        Ok((folder, index))
    }

    /// Creates the folder again if it was deleted.
    pub(super) fn restore(&self) -> Result<(), Error> {
        if !self.path.join(LOCK_FILE).exists() {
            *self.lock.lock() = create_and_lock(&self.path)?;
        }
        Ok(())
    }

    /// Creates an empty index with the next number, also if the files of the current index are gone.
    pub(super) fn create_next(&self, current: Option<&DiskIndex>) -> Result<DiskIndex, Error> {
        let current = current.and_then(|index| number_of(index.path().file_name()?));
        let number = self.indexes()?.into_keys().chain(current).max().map_or(1, |last| last + 1);
        DiskIndex::create(&self.path.join(format!("{INDEX_PREFIX}{number}")), self.lock())
    }

    fn lock(&self) -> Arc<File> {
        Arc::clone(&self.lock.lock())
    }

    /// Removes all indexes but one.
    pub(super) fn remove_all_but(&self, index: &DiskIndex) -> Result<(), Error> {
        for path in self.indexes()?.into_values() {
            if path != index.path() {
                fs::remove_dir_all(&path)
                    .map_err(|error| Error::Search(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(())
    }

    fn indexes(&self) -> Result<BTreeMap<u64, PathBuf>, Error> {
        indexes(&self.path).map_err(|error| Error::Search(format!("{}: {error}", self.path.display())))
    }
}

/// Creates a folder unless it exists, and locks it.
fn create_and_lock(path: &Path) -> Result<Arc<File>, Error> {
    let failed = |error: std::io::Error| {
        Error::Search(format!("cannot use folder {}, set another one: {error}", path.display()))
    };
    fs::create_dir_all(path).map_err(failed)?;
    let lock = File::create(path.join(LOCK_FILE)).map_err(failed)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => failed(error),
        TryLockError::WouldBlock => Error::Search(format!(
            "folder {} is used by another process: give each process its own",
            path.display()
        )),
    })?;
    Ok(Arc::new(lock))
}

fn number_of(name: &OsStr) -> Option<u64> {
    name.to_str()?.strip_prefix(INDEX_PREFIX)?.parse().ok()
}

/// The indexes in a folder, by number.
fn indexes(folder: &Path) -> std::io::Result<BTreeMap<u64, PathBuf>> {
    let mut indexes = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        indexes.extend(number_of(&entry.file_name()).map(|number| (number, entry.path())));
    }
    Ok(indexes)
}

/// Reads the position of the index in a folder without locking it; fails with the reason why a process would
/// build another one. Blocking.
pub fn read_position(folder: &Path) -> Result<IndexPosition, String> {
    let mut reason = "there is no index yet".to_owned();
    for index in indexes(folder).map_err(|error| error.to_string())?.into_values().rev() {
        match DiskIndex::read_position(&index) {
            Ok(Some(position)) => return Ok(position),
            Ok(None) => {}
            Err(error) => reason = error,
        }
    }
    Err(reason)
}
