//! Removes copies that nothing refers to, and compares the folder with the table of copies.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use sqlx::PgPool;

use super::storage::{Storage, StorageError};
use crate::media::MediaFolder;
use crate::media::folder::remove_file;
use crate::model::picture::PictureName;
use crate::store::Error;
use crate::store::pictures::{self, MediaUsage};
use crate::worker::timeout;

/// Unreferenced copies are removed within a day.
const INTERVAL_HOURS: i32 = 6;
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// How long a copy that is being stored may have no reference or no file.
const GRACE: Duration = Duration::from_secs(600);
/// Copies that one transaction removes.
const BATCH_COPIES: i64 = 500;

/// Sweeps at intervals, one process at a time.
pub(super) async fn run(storage: Storage) {
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    loop {
        interval.tick().await;
        match sweep_if_due(&storage).await {
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, "the sweep of pictures failed, retrying in some hours"),
        }
    }
}

async fn sweep_if_due(storage: &Storage) -> Result<(), StorageError> {
    if !timeout::short(pictures::begin_sweep(&storage.pg, INTERVAL_HOURS)).await? {
        return Ok(());
    }
    remove_unreferenced(storage, GRACE).await?;
    if storage.folder.run(|folder| Ok(folder.is_present())).await.unwrap_or_default() {
        for subfolder in 0..=u8::MAX {
            compare(storage, subfolder).await?;
        }
    }
    timeout::long(async {
        let mut usage = MediaUsage::lock(&storage.pg).await?;
        usage.recount().await?;
        usage.commit().await
    })
    .await?;
    Ok(())
}

/// Removes copies that nothing refers to now, and returns their number.
pub async fn erase_unreferenced(pg: &PgPool, folder: MediaFolder) -> Result<u64, StorageError> {
    if timeout::short(pictures::fetch_summary(pg)).await?.is_none() {
        return Ok(0);
    }
    let storage = Storage { pg: pg.clone(), folder, max_bytes: i64::MAX, secret: [0; 32] };
    remove_unreferenced(&storage, Duration::ZERO).await
}

async fn remove_unreferenced(storage: &Storage, grace: Duration) -> Result<u64, StorageError> {
    let mut removed = 0;
    loop {
        let batch: usize = timeout::long(async {
            let mut usage = MediaUsage::lock(&storage.pg).await?;
            let names = usage.remove_unreferenced(grace.as_secs_f64(), BATCH_COPIES).await?;
            if let Err(error) = storage.remove_files(names.clone()).await {
                return Ok(Err(error));
            }
            usage.commit().await?;
            Ok(Ok(names.len()))
        })
        .await??;
        removed += batch as u64;
        if batch < BATCH_COPIES as usize {
            return Ok(removed);
        }
    }
}

/// Deletes unknown files of a subfolder, and removes copies without a file.
async fn compare(storage: &Storage, subfolder: u8) -> Result<(), Error> {
    let Ok(files) = storage.folder.run(move |folder| folder.list(subfolder)).await else { return Ok(()) };
    // Read after the files: a row is written before its file.
    let known = timeout::long(pictures::fetch_names(&storage.pg, subfolder)).await?;
    let known: HashSet<PictureName> = known.into_iter().collect();
    let found: HashSet<PictureName> = files.iter().filter_map(|file| file.name).collect();
    let oldest_kept = SystemTime::now() - GRACE;
    let unknown: Vec<_> = files
        .into_iter()
        .filter(|file| file.name.is_none_or(|name| !known.contains(&name)) && file.modified < oldest_kept)
        .collect();
    let delete = move |_| unknown.iter().try_for_each(|file| remove_file(&file.path));
    if let Err(error) = storage.folder.run(delete).await {
        tracing::warn!(%error, "cannot delete unknown files in the media folder");
    }
    let missing: Vec<_> = known.difference(&found).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    timeout::long(async {
        let mut usage = MediaUsage::lock(&storage.pg).await?;
        usage.remove_lost(&missing, GRACE.as_secs_f64()).await?;
        usage.commit().await
    })
    .await
}
