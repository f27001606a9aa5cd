//! The files of imports over HTTP, in a folder that this process has for itself. A file is removed when its import ends, and
//! what a killed process left behind when the next one starts.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use parking_lot::Mutex;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::Notify;
use uuid::Uuid;

/// Space that is left to the search index and to other programs.
const MIN_FREE_BYTES: u64 = 512 << 20;
/// How many bytes are written between two looks at the free space.
const SPACE_CHECK_BYTES: u64 = 16 << 20;
const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// How long a client may send nothing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The folder. Cheap to clone.
#[derive(Clone)]
pub struct UploadFolder(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// Identifies this process in the queue.
    process: Uuid,
    limits: UploadLimits,
    /// Files whose import is not queued yet.
    incoming: Mutex<HashSet<Uuid>>,
    changed: Notify,
}

/// What a file and its upload may take.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Bytes that a file may have.
    pub max_bytes: u64,
    /// Space that is left to others.
    pub min_free_bytes: u64,
    /// How long a client may send nothing.
    pub idle_timeout: Duration,
}

impl UploadLimits {
    pub const fn new(max_bytes: u64) -> Self {
        UploadLimits { max_bytes, min_free_bytes: MIN_FREE_BYTES, idle_timeout: IDLE_TIMEOUT }
    }
}

/// A file that is being received. Dropping it removes the file, unless its import was queued.
pub struct IncomingFile {
    folder: UploadFolder,
    id: Uuid,
    file: BufWriter<File>,
    length: u64,
    is_queued: bool,
}

/// Why a file cannot be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("the file exceeds {0} bytes")]
    TooLarge(u64),
    #[error("too little free space for uploads")]
    NoSpace,
    #[error("cannot write an uploaded file: {0}")]
    Io(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::StorageFull {
            ReceiveError::NoSpace
        } else {
            ReceiveError::Io(error)
        }
    }
}

impl UploadFolder {
    /// Creates the folder, and removes the files of an earlier process. Blocking.
    pub fn open(path: PathBuf, limits: UploadLimits) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        for entry in fs::read_dir(&path)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(UploadFolder(Arc::new(Inner {
            path,
            process: Uuid::now_v7(),
            limits,
            incoming: Mutex::default(),
            changed: Notify::new(),
        })))
    }

    pub fn process(&self) -> Uuid {
        self.0.process
    }

    pub fn limits(&self) -> UploadLimits {
        self.0.limits
    }

    /// The folder itself, in which an import may also create temporary files.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The file of an import.
    pub fn file(&self, id: Uuid) -> PathBuf {
        self.0.path.join(id.to_string())
    }

    /// Begins to receive a file of a length, as far as it is known.
    pub async fn receive(&self, length: Option<u64>) -> Result<IncomingFile, ReceiveError> {
        let max_bytes = self.0.limits.max_bytes;
        if length.is_some_and(|length| length > max_bytes) {
            return Err(ReceiveError::TooLarge(max_bytes));
        }
        // The folder of the search index may have been deleted to free space.
        tokio::fs::create_dir_all(self.path()).await?;
        self.require_space(length.unwrap_or(SPACE_CHECK_BYTES))?;
        let id = Uuid::now_v7();
        self.0.incoming.lock().insert(id);
        let created = File::create_new(self.file(id)).await;
        if created.is_err() {
            self.0.incoming.lock().remove(&id);
        }
        let file = BufWriter::with_capacity(WRITE_BUFFER_BYTES, created?);
        Ok(IncomingFile { folder: self.clone(), id, file, length: 0, is_queued: false })
    }

    fn require_space(&self, bytes: u64) -> Result<(), ReceiveError> {
        let disk = statvfs(&self.0.path).map_err(io::Error::from)?;
        let free = disk.blocks_available() * disk.fragment_size();
        if free < bytes.saturating_add(self.0.limits.min_free_bytes) {
            Err(ReceiveError::NoSpace)
        } else {
            Ok(())
        }
    }

    /// Whether there are files of queued or running imports.
    pub fn has_files(&self) -> bool {
        self.files().is_ok_and(|files| !files.is_empty())
    }

    /// Removes the file of an import, if it exists.
    pub fn remove(&self, id: Uuid) -> io::Result<()> {
        match fs::remove_file(self.file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes all files but those that are being received and those of imports that `unfinished` names. It must be newer
    /// than this call's view of the files, which [`Self::files`] returns.
    pub fn remove_ended(&self, files: &[Uuid], unfinished: &HashSet<Uuid>) -> io::Result<()> {
        files.iter().filter(|id| !unfinished.contains(id)).try_for_each(|id| self.remove(*id))
    }

    /// The files of imports that were queued.
    pub fn files(&self) -> io::Result<Vec<Uuid>> {
        let mut files = Vec::new();
        let entries = match fs::read_dir(&self.0.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
            entries => entries?,
        };
        for entry in entries {
            files.extend(entry?.file_name().to_str().and_then(|name| Uuid::try_parse(name).ok()));
        }
        let incoming = self.0.incoming.lock();
        files.retain(|id| !incoming.contains(id));
        Ok(files)
    }

    /// Removes the files of all imports.
    pub fn remove_all(&self) -> io::Result<()> {
        self.remove_ended(&self.files()?, &HashSet::new())
    }

    /// Reports that an import was queued or cancelled.
    pub fn notify(&self) {
        self.0.changed.notify_one();
    }

    /// Waits until an import was queued or cancelled.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

impl IncomingFile {
    pub const fn id(&self) -> Uuid {
        self.id
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), ReceiveError> {
        let (before, max_bytes) = (self.length, self.folder.0.limits.max_bytes);
        self.length += bytes.len() as u64;
        if self.length > max_bytes {
            return Err(ReceiveError::TooLarge(max_bytes));
        }
        if before / SPACE_CHECK_BYTES < self.length / SPACE_CHECK_BYTES {
            self.folder.require_space(SPACE_CHECK_BYTES)?;
        }
        Ok(self.file.write_all(bytes).await?)
    }

    /// Completes the file.
    pub async fn complete(&mut self) -> Result<(), ReceiveError> {
        Ok(self.file.shutdown().await?)
    }

    /// Leaves the file to its import, which was queued.
    pub fn hand_over(mut self) {
        self.is_queued = true;
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        if !self.is_queued
            && let Err(error) = self.folder.remove(self.id)
        {
            tracing::warn!(%error, "cannot remove an uploaded file, the next start does");
        }
        self.folder.0.incoming.lock().remove(&self.id);
        self.folder.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(root: &Path, max_bytes: u64) -> UploadFolder {
        UploadFolder::open(root.join("uploads"), UploadLimits::new(max_bytes)).unwrap()
    }

    #[tokio::test]
    async fn dropped_file_is_removed_and_queued_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let folder = open(root.path(), 10);
        let mut dropped = folder.receive(None).await.unwrap();
        dropped.write(b"1234").await.unwrap();
        assert_eq!((folder.file(dropped.id()).exists(), folder.has_files()), (true, false));
        drop(dropped);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut queued = folder.receive(Some(4)).await.unwrap();
        queued.write(b"1234").await.unwrap();
        queued.complete().await.unwrap();
        let id = queued.id();
        queued.hand_over();
        assert_eq!(fs::read(folder.file(id)).unwrap(), b"1234");
        assert_eq!(folder.files().unwrap(), [id]);
        folder.remove_ended(&[id], &HashSet::from([id])).unwrap();
        assert!(folder.has_files());
        folder.remove_ended(&[id], &HashSet::new()).unwrap();
        assert!(!folder.has_files());
    }

    #[tokio::test]
    async fn files_of_an_earlier_process_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = open(root.path(), 10);
        fs::write(folder.file(Uuid::now_v7()), "left").unwrap();
        let next = open(root.path(), 10);
        assert!(!next.has_files() && next.process() != folder.process());
    }

    #[tokio::test]
    async fn length_and_free_space_are_limits() {
        let root = tempfile::tempdir().unwrap();
        let folder = open(root.path(), 10);
        assert!(matches!(folder.receive(Some(11)).await, Err(ReceiveError::TooLarge(10))));
        let mut file = folder.receive(None).await.unwrap();
        file.write(b"1234567890").await.unwrap();
        assert!(matches!(file.write(b"1").await, Err(ReceiveError::TooLarge(10))));
        let limits = UploadLimits { min_free_bytes: u64::MAX, ..UploadLimits::new(10) };
        let full = UploadFolder::open(root.path().join("full"), limits).unwrap();
        assert!(matches!(full.receive(None).await, Err(ReceiveError::NoSpace)));
    }
}
