//! The folder with the files of copies, which API processes and trackers share.
//!
//! A file appears complete and never changes, because its name is a digest of its content. A marker file tells the folder
//! from an empty one in its place, such as the folder below a mount that is missing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use uuid::Uuid;

use crate::model::picture::{COPY_EXTENSION, PictureName};

const MARKER: &str = "tidemark-media";
const MARKER_TEXT: &str = "Copies of pictures, managed by tidemark track. Deleted ones are fetched again.\n";
const TEMPORARY_PREFIX: &str = "new-";
/// A file occupies a multiple of this.
const BLOCK_BYTES: u64 = 4096;

/// A folder of copies. Cheap to clone. Methods block on the file system, so that tasks call them in [`MediaFolder::run`].
#[derive(Debug, Clone)]
pub struct MediaFolder {
    root: Arc<Path>,
}

/// A file in one of the subfolders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    pub path: PathBuf,
    /// None of an unfinished or foreign file.
    pub name: Option<PictureName>,
    pub modified: SystemTime,
}

impl MediaFolder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        MediaFolder { root: root.into().into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs methods of the folder on a blocking thread.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let folder = self.clone();
        tokio::task::spawn_blocking(move || work(folder)).await.map_err(io::Error::other)?
    }

    /// Whether the folder exists and is one of copies.
    pub fn is_present(&self) -> bool {
        self.root.join(MARKER).is_file()
    }

    /// Creates the folder and its marker.
    pub fn create(&self) -> io::Result<()> {
        fs::create_dir_all(&self.root)?;
        fs::write(self.root.join(MARKER), MARKER_TEXT)
    }

    /// Whether the file of a copy exists.
    pub fn contains(&self, name: &PictureName) -> bool {
        self.path(name).is_file()
    }

    /// Returns a copy; `None` if its file does not exist.
    pub fn read(&self, name: &PictureName) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)) {
            Ok(copy) => Ok(Some(copy)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a copy durably, unless its file exists. Replaces a damaged file.
    pub fn write(&self, name: &PictureName, copy: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        if fs::read(&path).is_ok_and(|stored| stored == copy) {
            return Ok(());
        }
        let subfolder = path.parent().unwrap_or(&self.root);
        match fs::create_dir(subfolder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let temporary = subfolder.join(format!("{TEMPORARY_PREFIX}{}", Uuid::now_v7()));
        let written = write_durably(&temporary, copy).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // Otherwise a sweep removes it.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Removes the file of a copy, if it exists.
    pub fn remove(&self, name: &PictureName) -> io::Result<()> {
        remove_file(&self.path(name))
    }

    /// Returns the files of a subfolder; names begin with its number in hexadecimal digits.
    pub fn list(&self, subfolder: u8) -> io::Result<Vec<FolderEntry>> {
        let entries = match fs::read_dir(self.root.join(format!("{subfolder:02x}"))) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            // A file may be removed meanwhile.
            let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name =
                name.and_then(|name| name.strip_suffix(COPY_EXTENSION)?.strip_suffix('.')?.parse().ok());
            files.push(FolderEntry { path, name, modified });
        }
        Ok(files)
    }

    fn path(&self, name: &PictureName) -> PathBuf {
        let name = name.to_string();
        self.root.join(&name[..2]).join(name).with_extension(COPY_EXTENSION)
    }
}

/// Removes a file, if it exists.
pub fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the space that the file of a copy occupies.
pub const fn occupied_bytes(copy: &[u8]) -> u64 {
    (copy.len() as u64).div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_written_read_listed_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = MediaFolder::new(root.path().join("media"));
        assert!(!folder.is_present());
        folder.create().unwrap();
        assert!(folder.is_present());
        let name = PictureName::from_bytes([0x5a; 32]);
        assert!(!folder.contains(&name) && folder.read(&name).unwrap().is_none());
        folder.write(&name, b"copy").unwrap();
        let written = || fs::metadata(folder.path(&name)).unwrap().modified().unwrap();
        let first = written();
        folder.write(&name, b"copy").unwrap();
        assert_eq!(written(), first, "it is not written again");
        fs::write(folder.path(&name), "").unwrap();
        folder.write(&name, b"copy").unwrap();
        assert_eq!(folder.read(&name).unwrap().as_deref(), Some(&b"copy"[..]));
        fs::write(folder.root().join("5a/new-1"), "unfinished").unwrap();
        let mut names: Vec<_> = folder.list(0x5a).unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert_eq!(names, [None, Some(name)]);
        assert_eq!(folder.list(0x5b).unwrap(), []);
        folder.remove(&name).unwrap();
        folder.remove(&name).unwrap();
        assert!(!folder.contains(&name));
    }

    #[test]
    fn copy_is_not_written_to_a_missing_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = MediaFolder::new(root.path().join("media"));
        assert!(folder.write(&PictureName::from_bytes([1; 32]), b"copy").is_err());
        assert!(!folder.root().exists());
    }

    #[test]
    fn files_occupy_blocks() {
        assert_eq!([0, 1, 4096, 4097].map(|length| occupied_bytes(&vec![0; length])), [0, 4096, 4096, 8192]);
    }
}
