//! Stores copies: reserves their space, writes their files, and only then refers to them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::failpoint;
use crate::media::MediaFolder;
use crate::media::copy_name::name_copy;
use crate::media::folder::occupied_bytes;
use crate::model::picture::{PictureName, PictureSource};
use crate::store::pictures::{self, CopiedPicture, DuePicture, FailedPicture, MediaUsage};
use crate::store::{Error, Write, retry_on_conflict};
use crate::telemetry::pictures::{PictureOutcome, count, record_visible};
use crate::worker::failure_log::FailureLog;
use crate::worker::timeout;

/// The pause after a failure that concerns all pictures, such as a full disk.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Copies that are stored in one transaction, and the least time between two: each makes cached responses stale.
pub(super) const BATCH_COPIES: usize = 16;
const BATCH_INTERVAL: Duration = Duration::from_millis(250);
/// An eviction frees this fraction of the limit besides what is needed, so that there are few.
const EVICTED_FRACTION: i64 = 50;

/// A copy to store, and the records to show it.
pub(super) struct NewCopy {
    pub(super) copy: Vec<u8>,
    pub(super) source: PictureSource,
    pub(super) records: Vec<DuePicture>,
    pub(super) started: Instant,
}

/// The media folder, and the table of its copies. Cheap to clone.
#[derive(Clone)]
pub(super) struct Storage {
    pub(super) pg: PgPool,
    pub(super) folder: MediaFolder,
    pub(super) max_bytes: i64,
    pub(super) secret: [u8; 32],
}

/// Stores copies in batches, as they come.
pub(super) async fn run(storage: Storage, mut unstored: mpsc::Receiver<NewCopy>) {
    let mut batch = Vec::new();
    let mut log = FailureLog::new("cannot store pictures");
    while unstored.recv_many(&mut batch, BATCH_COPIES).await > 0 {
        let copies = std::mem::take(&mut batch);
        let records: Vec<_> =
            copies.iter().flat_map(|copy| copy.records.iter().map(|record| record.record_id)).collect();
        match storage.store(copies).await {
            Ok(()) => log.record_success(),
            Err(error) => {
                log.record_failure(&error);
                if matches!(error, StorageError::Folder(_)) {
                    storage.postpone(&records).await;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
        tokio::time::sleep(BATCH_INTERVAL).await;
    }
}

impl Storage {
    async fn store(&self, copies: Vec<NewCopy>) -> Result<(), StorageError> {
        self.require_folder().await?;
        let named: Vec<_> = copies.into_iter().map(|new| (name_copy(&self.secret, &new.copy), new)).collect();
        self.reserve(&named).await?;
        failpoint::reached("picture-reserved");
        let files: HashMap<PictureName, Vec<u8>> =
            named.iter().map(|(name, new)| (*name, new.copy.clone())).collect();
        let failed = self.write(files).await;
        failpoint::reached("picture-written");
        let mut references: BTreeMap<Uuid, Vec<CopiedPicture>> = BTreeMap::new();
        let written = || named.iter().filter(|(name, _)| !failed.contains_key(name));
        for (name, new) in written() {
            for record in &new.records {
                let copied = CopiedPicture {
                    record_id: record.record_id,
                    leased: record.source,
                    source: new.source,
                    name: *name,
                };
                references.entry(record.organization_id).or_default().push(copied);
            }
        }
        for (organization, copied) in references {
            self.set_copies(organization, &copied).await?;
        }
        for (_, new) in written() {
            let seconds = new.started.elapsed().as_secs_f64();
            new.records.iter().for_each(|record| record_visible(record.due_seconds + seconds));
        }
        self.remove_unwritten(failed).await
    }

    /// Creates the folder unless it is there. Copies of a lost one are fetched again.
    async fn require_folder(&self) -> Result<(), StorageError> {
        let is_present = || self.folder.run(|folder| Ok(folder.is_present()));
        if is_present().await? {
            return Ok(());
        }
        let mut usage = timeout::long(MediaUsage::lock(&self.pg)).await?;
        // Another process may have created it meanwhile.
        if is_present().await? {
            return Ok(());
        }
        if usage.used_bytes() > 0 {
            tracing::warn!(folder = %self.folder.root().display(), "the media folder is lost, pictures are fetched again");
        }
        timeout::long(usage.remove_all()).await?;
        // API processes show copies only while the folder is there, so after the references are gone.
        timeout::short(usage.commit()).await?;
        Ok(self.folder.run(|folder| folder.create()).await?)
    }

    /// Reserves the space of copies, and evicts others.
    async fn reserve(&self, named: &[(PictureName, NewCopy)]) -> Result<(), StorageError> {
        let spaces: Vec<_> = named
            .iter()
            .map(|(name, new)| (*name, i64::try_from(occupied_bytes(&new.copy)).unwrap_or(i64::MAX)))
            .collect();
        loop {
            let reserve = || self.reserve_spaces(&spaces);
            let has_room = timeout::long(retry_on_conflict(reserve)).await??;
            if has_room {
                return Ok(());
            }
        }
    }

    /// Returns whether there is room for the copies now.
    async fn reserve_spaces(&self, spaces: &[(PictureName, i64)]) -> Result<io::Result<bool>, Error> {
        let mut usage = MediaUsage::lock(&self.pg).await?;
        usage.add(spaces).await?;
        let mut has_room = usage.used_bytes() <= self.max_bytes;
        if !has_room {
            let evicted = usage.evict(self.max_bytes - self.max_bytes / EVICTED_FRACTION).await?;
            has_room = usage.used_bytes() <= self.max_bytes || evicted.is_empty();
            count(PictureOutcome::Evicted, evicted.len() as u64);
            if let Err(error) = self.remove_files(evicted).await {
                return Ok(Err(error));
            }
        }
        usage.commit().await?;
        Ok(Ok(has_room))
    }

    /// Writes files, and returns the errors.
    async fn write(&self, files: HashMap<PictureName, Vec<u8>>) -> HashMap<PictureName, io::Error> {
        let names: Vec<_> = files.keys().copied().collect();
        let written = self.folder.run(move |folder| {
            let failed =
                |(name, copy): (PictureName, Vec<u8>)| Some((name, folder.write(&name, &copy).err()?));
            Ok(files.into_iter().filter_map(failed).collect())
        });
        written.await.unwrap_or_else(|error| {
            names.into_iter().map(|name| (name, io::Error::other(error.to_string()))).collect()
        })
    }

    /// Makes records of an organization show copies, unless it was deleted.
    async fn set_copies(&self, organization: Uuid, copied: &[CopiedPicture]) -> Result<(), Error> {
        let set_copies = || async {
            let mut write = Write::begin(&self.pg, organization).await?;
            pictures::set_copies(&mut write, copied).await?;
            write.commit().await.map(drop)
        };
        match timeout::long(retry_on_conflict(set_copies)).await {
            Err(Error::NotFound("organization")) => Ok(()),
            result => result,
        }
    }

    /// Removes copies whose files could not be written, and returns the first error.
    async fn remove_unwritten(&self, failed: HashMap<PictureName, io::Error>) -> Result<(), StorageError> {
        let (names, errors): (Vec<_>, Vec<_>) = failed.into_iter().unzip();
        let Some(error) = errors.into_iter().next() else { return Ok(()) };
        self.remove(&names).await?;
        Err(StorageError::Folder(error))
    }

    /// Leaves pictures that could not be stored until the next scrape.
    async fn postpone(&self, records: &[Uuid]) {
        let failed = |record_id: &Uuid| FailedPicture {
            record_id: *record_id,
            due_in_seconds: None,
            cooldown_seconds: None,
        };
        let failed: Vec<_> = records.iter().map(failed).collect();
        match timeout::short(pictures::postpone(&self.pg, &failed)).await {
            Ok(postponed) => count(PictureOutcome::NotStored, postponed),
            Err(error) => tracing::debug!(%error, "cannot postpone pictures, their leases end"),
        }
    }

    /// Returns the copies without a file.
    pub(super) async fn find_lost(&self, names: HashSet<PictureName>) -> Vec<PictureName> {
        let find =
            |folder: MediaFolder| Ok(names.into_iter().filter(|name| !folder.contains(name)).collect());
        self.folder.run(find).await.unwrap_or_default()
    }

    /// Removes copies whose files are lost.
    pub(super) async fn remove_lost(&self, names: &[PictureName]) -> Result<(), Error> {
        count(PictureOutcome::Lost, names.len() as u64);
        self.remove(names).await
    }

    async fn remove(&self, names: &[PictureName]) -> Result<(), Error> {
        let remove = || async {
            let mut usage = MediaUsage::lock(&self.pg).await?;
            usage.remove(names).await?;
            usage.commit().await
        };
        timeout::long(retry_on_conflict(remove)).await
    }

    /// Deletes the files of copies whose removal is not committed yet: afterwards another process may store them again.
    pub(super) async fn remove_files(&self, names: Vec<PictureName>) -> io::Result<()> {
        self.folder.run(move |folder| names.iter().try_for_each(|name| folder.remove(name))).await
    }
}

/// Why copies were not stored or removed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the media folder cannot be written: {0}")]
    Folder(#[from] io::Error),
}
