//! Repairs what a tracker with a wrong clock wrote: times ahead of now in Postgres, and days to come in ClickHouse.
//!
//! Each step finds its work in the stores, so it can be interrupted and repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::ProgressBar;
use serde::Serialize;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use super::rebuild::rebuild_subjects;
use super::{Error, unless_deleted, wait_for_relay};
use crate::app::Databases;
use crate::store::lifecycle::future_times::{self, SNAPSHOT_TABLES};
use crate::store::lifecycle::purge::MAX_STATEMENT_ORGANIZATIONS;
use crate::store::postgres::clock;
use crate::store::records::organizations;
use crate::store::{self, Write, retry_on_conflict};

/// Records per unit of work.
const BATCH_RECORDS: usize = 500;
/// How long ClickHouse may take to rewrite the affected parts.
const DELETION_TIMEOUT: Duration = Duration::from_secs(3600);

/// The numbers of repaired rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairSummary {
    pub accounts: u64,
    pub videos: u64,
    pub targets: u64,
    pub snapshots: u64,
    pub subjects: u64,
}

/// Repairs organizations and waits until the relay has applied it. A relay has to run meanwhile.
pub async fn repair(databases: &Databases, organizations: &[Uuid]) -> Result<RepairSummary, Error> {
    let pg = &databases.pg;
    let mut summary = RepairSummary::default();
    future_times::reset_sources(pg, repair_time(databases).await?).await?;
    let mut affected = BTreeMap::new();
    for &organization in organizations {
        let subjects = repair_records(databases, organization, &mut summary).await;
        let subjects = unless_deleted(subjects)?.unwrap_or_default();
        if !subjects.is_empty() {
            affected.insert(organization, subjects);
        }
    }
    summary.snapshots = delete_snapshots(databases, &affected.keys().copied().collect::<Vec<_>>()).await?;
    for (organization, subjects) in affected {
        let rebuilt = rebuild_subjects(pg, organization, &subjects, &ProgressBar::hidden()).await;
        if unless_deleted(rebuilt)?.is_some() {
            summary.subjects += subjects.len() as u64;
        }
    }
    Ok(summary)
}

/// Repairs an organization's records, and returns its subjects with history of days to come.
async fn repair_records(
    databases: &Databases,
    organization: Uuid,
    summary: &mut RepairSummary,
) -> Result<Vec<i64>, Error> {
    let Databases { pg, clickhouse, .. } = databases;
    organizations::require(pg, organization).await?;
    let now = repair_time(databases).await?;
    reset_records(pg, organization, now, summary).await?;
    wait_for_relay(databases, organization).await?;
    Ok(future_times::find_subjects(clickhouse, organization, now.date_naive()).await?)
}

/// Returns Postgres' time, or a sandbox's. The machine's clock has to agree with Postgres': of two wrong clocks the later
/// one is ahead.
async fn repair_time(databases: &Databases) -> Result<DateTime<Utc>, Error> {
    let Databases { pg, clock, .. } = databases;
    clock::require_synchronized(pg, clock.read_machine()).await?;
    Ok(if clock.is_remote() { clock.now().await } else { clock::fetch_now(pg).await? })
}

/// Resets the records first and the targets last: what is scraped then has the right time.
async fn reset_records(
    pg: &PgPool,
    organization: Uuid,
    now: DateTime<Utc>,
    summary: &mut RepairSummary,
) -> Result<(), store::Error> {
    let accounts = future_times::find_accounts(pg, organization, now).await?;
    for ids in accounts.chunks(BATCH_RECORDS) {
        let reset = || async {
            let mut write = Write::begin(pg, organization).await?;
            future_times::reset_accounts(&mut write, ids, now).await?;
            write.commit().await
        };
        retry_on_conflict(reset).await?;
    }
    let videos = future_times::find_videos(pg, organization, now).await?;
    for ids in videos.chunks(BATCH_RECORDS) {
        let reset = || async {
            let mut write = Write::begin(pg, organization).await?;
            future_times::reset_videos(&mut write, ids, now).await?;
            write.commit().await
        };
        retry_on_conflict(reset).await?;
    }
    summary.accounts += accounts.len() as u64;
    summary.videos += videos.len() as u64;
    summary.targets += retry_on_conflict(|| future_times::reset_targets(pg, organization, now)).await?;
    Ok(())
}

/// Deletes snapshots of days to come. Reads the time before each deletion: a new day may begin meanwhile.
async fn delete_snapshots(databases: &Databases, organizations: &[Uuid]) -> Result<u64, Error> {
    let deadline = Instant::now() + DELETION_TIMEOUT;
    let mut rows = 0;
    for batch in organizations.chunks(MAX_STATEMENT_ORGANIZATIONS) {
        for table in SNAPSHOT_TABLES {
            let today = repair_time(databases).await?.date_naive();
            let client = &databases.clickhouse;
            rows += future_times::delete_snapshots(client, table, batch, today, deadline).await?;
        }
    }
    Ok(rows)
}
