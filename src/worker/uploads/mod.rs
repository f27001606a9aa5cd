//! Loads the files of imports over HTTP that this API process took: two at a time, and one of an organization at a time among
//! all processes.
//!
//! The process extends its lease on them. If it is killed, another process or its successor fails them; a file never leaves its
//! process.

mod load;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use opentelemetry::KeyValue;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::failure_log::FailureLog;
use super::timeout;
use crate::app::{Databases, UploadFolder};
use crate::import::{Monitor, Progress};
use crate::model::upload::{ImportResult, ImportStatus};
use crate::store::Error;
use crate::store::records::uploads::LEASE;
use crate::store::records::uploads::queue::{self, ClaimedUpload};
use crate::telemetry::{labels, metrics};

pub use crate::import::DEFAULT_MAX_UPLOAD_BYTES;

/// Imports that a process loads at a time.
const MAX_RUNNING: usize = 2;
const LEASE_INTERVAL: Duration = Duration::from_secs(5);
const _: () = assert!(LEASE_INTERVAL.as_secs() * 3 < LEASE.as_secs(), "a lease outlives two failures");
/// How often a process looks whether an import can begin, while it has files.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often a running import reports its progress, and notices that it was cancelled.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// How long an import may take to stop after it was cancelled: it ends its batch.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the result of an import is offered to Postgres while that is down.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Loads until it is stopped. Then imports that have not ended fail.
pub async fn run(databases: Databases, folder: UploadFolder, stop: CancellationToken) {
    tokio::select! {
        () = keep_alive(&databases, &folder) => {}
        () = load_queued(&databases, &folder) => {}
        () = stop.cancelled() => {}
    }
    if let Err(error) = folder.remove_all() {
        tracing::warn!(%error, "cannot remove uploaded files, the next start does");
    }
    let now = databases.clock.now().await;
    let failed = timeout::short(queue::fail_interrupted(&databases.pg, Some(folder.process()), now)).await;
    if let Err(error) = failed {
        tracing::warn!(%error, "cannot record that imports are interrupted, another process does");
    }
}

/// Extends the lease, fails the imports of processes that do not, and removes the files of imports that have ended.
async fn keep_alive(databases: &Databases, folder: &UploadFolder) {
    let mut log = FailureLog::new("cannot extend the lease of imports");
    let mut interval = tokio::time::interval(LEASE_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        match timeout::short(extend_lease(databases, folder)).await {
            Ok(()) => log.record_success(),
            Err(error) => log.record_failure(&error),
        }
    }
}

async fn extend_lease(databases: &Databases, folder: &UploadFolder) -> Result<(), Error> {
    let (files, now) = (folder.files(), databases.clock.now().await);
    let unfinished = queue::extend_lease(&databases.pg, folder.process()).await?;
    if let Err(error) = files.and_then(|files| folder.remove_ended(&files, &unfinished)) {
        tracing::warn!(%error, "cannot remove uploaded files, the next start does");
    }
    // Those of clients that left while their import was queued.
    let lost: Vec<_> = unfinished.into_iter().filter(|id| !folder.file(*id).exists()).collect();
    if !lost.is_empty() {
        queue::fail_lost(&databases.pg, &lost, now).await?;
    }
    let failed = queue::fail_interrupted(&databases.pg, None, now).await?;
    if failed > 0 {
        tracing::warn!(imports = failed, "imports failed because their process ended");
    }
    Ok(())
}

/// Begins imports in the order of their arrival.
async fn load_queued(databases: &Databases, folder: &UploadFolder) {
    let mut log = FailureLog::new("cannot begin imports");
    let mut running = JoinSet::new();
    loop {
        while running.len() < MAX_RUNNING && folder.has_files() {
            match timeout::short(queue::claim(&databases.pg, folder.process())).await {
                Ok(Some(upload)) => {
                    log.record_success();
                    running.spawn(load(databases.clone(), folder.clone(), upload));
                }
                Ok(None) => break,
                Err(error) => {
                    log.record_failure(&error);
                    break;
                }
            }
        }
        let poll = async {
            if folder.has_files() {
                tokio::time::sleep(POLL_INTERVAL).await
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            Some(_) = running.join_next() => {}
            () = folder.changed() => {}
            () = poll => {}
        }
    }
}

/// Loads a file, removes it, and records the result.
async fn load(databases: Databases, folder: UploadFolder, upload: ClaimedUpload) {
    let (started, monitor) = (Instant::now(), Arc::new(Monitor::default()));
    // Also stops the threads of the import when this task is aborted.
    let guard = CancelOnDrop(monitor.clone());
    let result = {
        let loading = load::load(&databases, &folder, &upload, monitor.clone());
        // A panic must not leave the import running.
        let mut loading = pin!(AssertUnwindSafe(loading).catch_unwind());
        let ended = tokio::select! {
            ended = &mut loading => ended,
            () = watch(&databases, &upload, &monitor) => {
                monitor.cancel();
                let stopped = tokio::time::timeout(CANCEL_TIMEOUT, loading).await;
                stopped.unwrap_or_else(|_| Ok(load::unfinished(&monitor)))
            }
        };
        ended.unwrap_or_else(|_| load::panicked(&monitor))
    };
    drop(guard);
    if let Err(error) = folder.remove(upload.id) {
        tracing::warn!(%error, "cannot remove an uploaded file, the next start does");
    }
    let status = record_result(&databases, &upload, &result).await;
    record_import(status, started.elapsed());
    let ImportResult { rows_read, refused, .. } = result;
    let organization = upload.organization_id;
    tracing::info!(import = %upload.id, %organization, status = status.as_str(), rows_read, refused, "import ended");
}

/// Cancels an import when it is dropped.
struct CancelOnDrop(Arc<Monitor>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Reports the progress of an import until it has to stop.
async fn watch(databases: &Databases, upload: &ClaimedUpload, monitor: &Monitor) {
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let Progress { rows_read, rows_refused, snapshots_written, .. } = monitor.progress();
        let recorded =
            queue::record_progress(&databases.pg, upload.id, rows_read, rows_refused, snapshots_written);
        // While Postgres is down, the import waits or fails by itself.
        if let Ok(false) = timeout::short(recorded).await {
            return;
        }
    }
}

/// Records the result once Postgres takes it, and returns the status.
async fn record_result(databases: &Databases, upload: &ClaimedUpload, result: &ImportResult) -> ImportStatus {
    let mut log = FailureLog::new("cannot record the result of an import");
    loop {
        let now = databases.clock.now().await;
        match timeout::short(queue::finish(&databases.pg, upload.id, result, now)).await {
            // Another process failed it, or its organization was deleted.
            Ok(status) => return status.unwrap_or(ImportStatus::Failed),
            Err(error) => log.record_failure(&error),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

fn record_import(status: ImportStatus, duration: Duration) {
    if let Some(metrics) = metrics::instruments() {
        let outcome = KeyValue::new(labels::OUTCOME, status.as_str());
        metrics::record_duration(&metrics.import_duration, duration, &[outcome]);
    }
}
