//! Physically removes deleted data: deleted organizations within seconds, everything else twice a day.
//!
//! One process at a time removes everything else, under the erasure lock. Every step can be repeated, so the next process
//! continues after a kill at any moment.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clickhouse::Client;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::organization_erasure::OrganizationErasure;
use super::passes::{self, PassTask};
use super::schedule::{ERASURE_POLL_INTERVAL, ERASURE_RETRY_DELAY, PURGE_INTERVAL, Schedule};
use super::{retention, timeout};
use crate::app::Databases;
use crate::store::analytics::rollup_cache::PURGE_DELAY;
use crate::store::lifecycle::outbox::SnapshotPurge;
use crate::store::lifecycle::purge::{PURGE_TIMEOUT, PurgeScope};
use crate::store::lifecycle::retention::wait_for_compactions;
use crate::store::lifecycle::vacuum::VacuumTracker;
use crate::store::lifecycle::{ErasureLock, organizations, purge, sum_results};
use crate::store::{Error, outbox};

const ORGANIZATION_PAGE_SIZE: i64 = 1_000;
/// How often tables are vacuumed while purges fail and are retried within seconds.
const VACUUM_INTERVAL: TimeDelta = TimeDelta::hours(1);
const RETENTION_RETRY_DELAY: TimeDelta = TimeDelta::minutes(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErasedRows {
    /// Outbox rows that were rewritten without deleted data.
    pub outbox_rows: u64,
    /// Rows that were removed from ClickHouse.
    pub history_rows: u64,
}

/// Erases until it is stopped, and retries while a store is down. Deleted organizations do not wait for purges and retention.
pub async fn run(databases: Databases, stop: CancellationToken) {
    let worker = ErasureWorker {
        databases: databases.clone(),
        purge: Schedule::new(PURGE_INTERVAL),
        vacuum: Schedule::new(VACUUM_INTERVAL),
        retention: Schedule::new(PURGE_INTERVAL),
        vacuum_tracker: VacuumTracker::default(),
    };
    tokio::join!(passes::run(OrganizationErasure { databases }, stop.clone()), passes::run(worker, stop));
}

struct ErasureWorker {
    databases: Databases,
    purge: Schedule,
    /// Limits vacuuming after failed purges. Each successful purge is followed by a vacuum.
    vacuum: Schedule,
    /// Separate, so that a failing retention does not delay purges.
    retention: Schedule,
    vacuum_tracker: VacuumTracker,
}

impl PassTask for ErasureWorker {
    const FAILURE: &'static str = "cannot purge deleted data";
    const INTERVAL: Duration = ERASURE_POLL_INTERVAL;
    const RETRY_DELAY: Duration = ERASURE_RETRY_DELAY;

    /// Runs what is due. A failed step does not stop the others; the first error is returned.
    async fn run_pass(&mut self) -> Result<(), Error> {
        let now = self.databases.clock.now().await;
        let (purge_is_due, retention_is_due) = (self.purge.is_due(now), self.retention.is_due(now));
        if !purge_is_due && !retention_is_due {
            return Ok(());
        }
        let Some(mut erasure) = Erasure::try_start(&self.databases).await? else {
            return Ok(());
        };
        let mut result = Ok(());
        if purge_is_due {
            result = self.purge_and_vacuum(&mut erasure, now).await;
        }
        if retention_is_due {
            timeout::short(erasure.lock.ensure_held()).await?;
            match erasure.apply_retention(None).await {
                Ok(_) => self.retention.record_run(now),
                Err(error) => {
                    tracing::warn!(%error, "retention cleanup failed, retrying in 15 min");
                    self.retention.postpone(now, RETENTION_RETRY_DELAY);
                }
            }
        }
        result
    }
}

impl ErasureWorker {
    async fn purge_and_vacuum(&mut self, erasure: &mut Erasure, now: DateTime<Utc>) -> Result<(), Error> {
        let mut result = erasure.purge_deleted(None).await.map(drop);
        if result.is_ok() || self.vacuum.is_due(now) {
            let vacuumed = self.vacuum_tracker.vacuum_changed_tables(&self.databases.pg).await;
            if vacuumed.is_ok() {
                self.vacuum.record_run(now);
            }
            result = result.and(vacuumed.map(drop));
        }
        if result.is_ok() {
            self.purge.record_run(now);
        }
        result
    }
}

/// Removes deleted and expired data of one or all organizations now. Returns `None` while another process holds the
/// erasure lock. A failed step does not stop the others; the first error is returned.
pub async fn run_once(
    databases: &Databases,
    organization: Option<Uuid>,
) -> Result<Option<ErasedRows>, Error> {
    let Some(mut erasure) = Erasure::try_start(databases).await? else { return Ok(None) };
    let purged = erasure.purge_deleted(organization).await;
    timeout::short(erasure.lock.ensure_held()).await?;
    let expired_rows = erasure.apply_retention(organization).await;
    let vacuumed = VacuumTracker::default().vacuum_changed_tables(&databases.pg).await;
    // A lock lost by now does not undo what was done.
    let _ = timeout::short(erasure.lock.release()).await;
    let mut erased = purged?;
    erased.history_rows += expired_rows?;
    vacuumed?;
    Ok(Some(erased))
}

/// The steps of an erasure, in the process that holds the erasure lock.
struct Erasure {
    databases: Databases,
    /// A client whose statements are marked in ClickHouse's query log.
    client: Client,
    lock: ErasureLock,
}

impl Erasure {
    /// Acquires the erasure lock; `None` while another process holds it.
    async fn try_start(databases: &Databases) -> Result<Option<Self>, Error> {
        let lock = timeout::short(ErasureLock::try_acquire(&databases.pg)).await?;
        let client = databases.clickhouse.clone().with_setting("log_comment", "erasure");
        Ok(lock.map(|lock| Erasure { databases: databases.clone(), client, lock }))
    }

    /// Removes history older than the retention periods, and returns the number of rows.
    async fn apply_retention(&mut self, organization: Option<Uuid>) -> Result<u64, Error> {
        let started = Instant::now();
        let deadline = started + PURGE_TIMEOUT;
        retention::advance_cutoffs(&self.databases, organization).await?;
        let rows = retention::purge_expired(&self.databases, &mut self.lock, organization, deadline).await?;
        if rows > 0 {
            tracing::info!(rows, seconds = started.elapsed().as_secs_f64(), "expired history purged");
        }
        Ok(rows)
    }

    /// Removes what deletions left in the outbox and in ClickHouse's files. A failed step does not stop the others; the
    /// first error is returned.
    async fn purge_deleted(&mut self, organization: Option<Uuid>) -> Result<ErasedRows, Error> {
        let started = Instant::now();
        let outbox_rows = self.purge_outbox(organization).await;
        timeout::short(self.lock.ensure_held()).await?;
        let deadline = Instant::now() + PURGE_TIMEOUT;
        let purged = self.purge_history(organization, deadline).await;
        timeout::short(self.lock.ensure_held()).await?;
        let restored = match organization {
            Some(_) => Ok(0),
            None => self.purge_restored(deadline).await,
        };
        let (outbox_rows, history_rows) = (outbox_rows?, sum_results(purged, restored)?);
        if outbox_rows + history_rows > 0 {
            let seconds = started.elapsed().as_secs_f64();
            tracing::info!(outbox_rows, history_rows, seconds, "deleted data purged");
        }
        Ok(ErasedRows { outbox_rows, history_rows })
    }

    /// Removes deleted rows from ClickHouse's files, after compactions that could write such rows again.
    async fn purge_history(&self, organization: Option<Uuid>, deadline: Instant) -> Result<u64, Error> {
        let waited = tokio::time::timeout_at(deadline, wait_for_compactions(&self.client)).await;
        waited.map_err(|_| Error::Clickhouse(clickhouse::error::Error::TimedOut))??;
        let pg = &self.databases.pg;
        let delivered = timeout::short(outbox::last_applied_delivery(pg)).await?;
        let scope = PurgeScope { organization, delivered };
        if purge::has_rollup_tombstones(&self.client, scope).await? {
            // Without them, rollups in memory would keep the rows that they hide.
            timeout::short(outbox::invalidate_responses(pg, organization)).await?;
            tokio::time::sleep(PURGE_DELAY).await;
        }
        purge::purge_removed_rows(&self.client, scope, deadline).await
    }

    /// Removes snapshots of deleted subjects from the outbox, and returns the number of rewritten rows.
    async fn purge_outbox(&mut self, organization: Option<Uuid>) -> Result<u64, Error> {
        let pg = &self.databases.pg;
        let (mut rows, mut after) = (0, Uuid::nil());
        while let Some(mut purge) = timeout::long(SnapshotPurge::begin(pg, organization, after)).await? {
            while let Some(rewritten) = timeout::long(purge.purge_batch(pg)).await? {
                rows += rewritten;
                timeout::short(self.lock.ensure_held()).await?;
            }
            after = timeout::long(purge.finish(pg)).await?;
        }
        Ok(rows)
    }

    /// Removes erased organizations whose history a restored backup of ClickHouse brought back.
    async fn purge_restored(&mut self, deadline: Instant) -> Result<u64, Error> {
        let mut rows = Ok(0);
        for table in purge::fetch_organization_tables(&self.client).await? {
            rows = sum_results(rows, self.purge_restored_from(&table, deadline).await);
        }
        rows
    }

    async fn purge_restored_from(&mut self, table: &str, deadline: Instant) -> Result<u64, Error> {
        let (mut rows, mut after) = (0, Uuid::nil());
        loop {
            timeout::short(self.lock.ensure_held()).await?;
            let page = organizations::fetch_erased(&self.databases.pg, after, ORGANIZATION_PAGE_SIZE);
            let erased = timeout::short(page).await?;
            let Some(last) = erased.last() else { return Ok(rows) };
            after = *last;
            rows += purge::purge_organizations(&self.client, table, &erased, deadline).await?;
        }
    }
}
