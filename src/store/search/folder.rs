//! The folder of a process's search index: who owns it, and which of the indexes in it is in use.
//!
//! Each index is a folder of its own in it, named by a number; one that is built beside another has the higher number.
//! Of those that are complete the highest is in use, so a process that is killed at any moment finds a whole one again.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changes::IndexPosition;
use super::index::Index;
use crate::store::Error;

const NAME: &str = "index-";

/// A folder that belongs to this process until the value is dropped, and every index that came of it.
pub(super) struct Folder {
    path: PathBuf,
    lock: Arc<File>,
}

impl Folder {
    /// Takes the folder and opens its index. What cannot be used is removed, with one word about it, and is to be
    /// built again.
    pub(super) fn open(path: &Path) -> Result<(Self, Index), Error> {
        let failed = |error: std::io::Error| {
            Error::Search(format!("the folder {} cannot be used, name another: {error}", path.display()))
        };
        fs::create_dir_all(path).map_err(failed)?;
        let lock = File::create(path.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed(error),
            TryLockError::WouldBlock => Error::Search(format!(
                "the folder {} is in use by another process: give each process one of its own",
                path.display()
            )),
        })?;
        let folder = Folder { path: path.to_owned(), lock: Arc::new(lock) };
        let mut unusable =
            remove_older_layout(path).map_err(failed)?.then(|| "it is of another version".to_owned());
        let mut numbers = folder.numbers()?;
        let mut usable = None;
        while let Some(number) = numbers.pop() {
            match Index::open(&folder.place(number), Arc::clone(&folder.lock)) {
                Ok(index) if index.position().is_some() => {
                    usable = Some(index);
                    break;
                }
                // Its process was killed before it was complete.
                Ok(_) => {}
                Err(reason) => unusable = Some(reason),
            }
        }
        if let Some(reason) = unusable {
            tracing::warn!(folder = %path.display(), reason, "the search index cannot be used and is rebuilt");
        }
        let index = match usable {
            Some(index) => index,
            None => folder.create_next()?,
        };
        folder.keep(&index)?;
        Ok((folder, index))
    }

    /// Makes an empty index beside those that are there.
    pub(super) fn create_next(&self) -> Result<Index, Error> {
        let number = self.numbers()?.last().map_or(1, |last| last + 1);
        Index::create(&self.place(number), Arc::clone(&self.lock))
    }

    /// Removes all indexes but one.
    pub(super) fn keep(&self, index: &Index) -> Result<(), Error> {
        for place in self.numbers()?.into_iter().map(|number| self.place(number)) {
            if place != index.path() {
                fs::remove_dir_all(&place)
                    .map_err(|error| Error::Search(format!("{}: {error}", place.display())))?;
            }
        }
        Ok(())
    }

    fn place(&self, number: u64) -> PathBuf {
        self.path.join(format!("{NAME}{number}"))
    }

    /// The numbers of the indexes in ascending order.
    fn numbers(&self) -> Result<Vec<u64>, Error> {
        numbers(&self.path).map_err(|error| Error::Search(format!("{}: {error}", self.path.display())))
    }
}

fn numbers(path: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The place in the change sequence of the index that a folder holds, or why there is none to go on with. Takes nothing
/// from the process that the folder may belong to.
pub(super) fn read_position(path: &Path) -> Result<IndexPosition, String> {
    let mut reason = "there is none yet".to_owned();
    for number in numbers(path).map_err(|error| error.to_string())?.into_iter().rev() {
        match Index::read_position(&path.join(format!("{NAME}{number}"))) {
            Ok(Some(position)) => return Ok(position),
            Ok(None) => {}
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

/// Removes the files of an index that stand in the folder itself, as before an index had one of its own, and no
/// others; tells whether there were any.
fn remove_older_layout(folder: &Path) -> std::io::Result<bool> {
    let mut found = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_segment = name
            .split_once('.')
            .is_some_and(|(stem, _)| stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_segment || name == "meta.json" || name == ".managed.json" {
            fs::remove_file(entry.path())?;
            found = true;
        }
    }
    Ok(found)
}
