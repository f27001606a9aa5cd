//! Limits each organization's history to its retention period.
//!
//! First cutoffs advance. What is older is compacted to the snapshots that later days count from, the rest is purged
//! from ClickHouse's files, and the relay recomputes the rollup. `erasure` decides when.

use std::time::Duration;

use chrono::NaiveDate;
use clickhouse::Client;
use tokio::time::Instant;
use uuid::Uuid;

use super::chunks::Chunks;
use super::timeout;
use crate::app::Databases;
use crate::failpoint;
use crate::store::clickhouse::history_writer;
use crate::store::lifecycle::ErasureLock;
use crate::store::lifecycle::retention::{self, Cutoff};
use crate::store::outbox::visibility;
use crate::store::{Error, Write, outbox, retry_on_conflict};

const MAX_COMPACTED_SUBJECTS: usize = 500;
/// Few enough that the relay is not busy with them for long.
const MAX_RECOMPUTED_SUBJECTS: usize = 50;
/// One mutation purges many organizations, because ClickHouse rewrites whole parts for it.
const MAX_PURGED_ORGANIZATIONS: usize = 300;
/// A mutation needs memory for each video.
const MAX_PURGED_VIDEOS: u64 = 1_000_000;
/// How long to wait for the relay, for all organizations together and for each at least.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);
const MIN_DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Advances the cutoffs of one or all organizations to today's.
pub async fn advance_cutoffs(databases: &Databases, organization: Option<Uuid>) -> Result<(), Error> {
    let (pg, clock) = (&databases.pg, &databases.clock);
    let (today, is_sandbox) = (clock.now().await.date_naive(), clock.is_remote());
    let advance = || retention::advance_cutoffs(pg, organization, today, is_sandbox);
    timeout::long(retry_on_conflict(advance)).await
}

/// Compacts and purges history before the cutoffs of one or all organizations, and returns the number of purged rows.
/// A failed organization does not stop the others; the first error is returned.
pub async fn purge_expired(
    databases: &Databases,
    lock: &mut ErasureLock,
    organization: Option<Uuid>,
    deadline: Instant,
) -> Result<u64, Error> {
    let client = &retention::client(&databases.clickhouse);
    let cutoffs = timeout::short(retention::fetch_cutoffs(&databases.pg, organization)).await?;
    let fetched = Instant::now();
    let mut batches = Vec::new();
    let (mut rows, mut result) = (0, Ok(()));
    for cutoff in cutoffs {
        let grace_end = fetched + cutoff.remaining_grace();
        tokio::time::sleep_until(grace_end).await;
        match compact_organization(databases, lock, client, &cutoff, grace_end + DELIVERY_TIMEOUT).await {
            Ok(Some(videos)) => add_to_batch(&mut batches, videos, cutoff),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(organization = %cutoff.organization, %error, "cannot compact history");
                result = result.and(Err(error));
            }
        }
    }
    let mut relay_timeout = timeout::LONG;
    for batch in batches {
        timeout::short(lock.ensure_held()).await?;
        let organizations: Vec<_> = batch.cutoffs.iter().map(|cutoff| cutoff.organization).collect();
        match retention::purge_redundant_rows(client, &organizations, batch.since, deadline).await {
            Ok(purged) => rows += purged,
            Err(error) => {
                result = result.and(Err(error));
                continue;
            }
        }
        failpoint::reached("retention-purged");
        for cutoff in batch.cutoffs {
            timeout::short(lock.ensure_held()).await?;
            if let Err(error) = recompute_rollup(databases, lock, client, &cutoff, &mut relay_timeout).await {
                tracing::debug!(organization = %cutoff.organization, %error, "cannot recompute the rollup");
                result = result.and(Err(error));
            }
        }
    }
    result.map(|()| rows)
}

/// The organizations that one mutation purges.
struct PurgeBatch {
    /// The first day that stays.
    since: NaiveDate,
    videos: u64,
    cutoffs: Vec<Cutoff>,
}

/// Adds an organization to the first batch of its cutoff with room for its videos.
fn add_to_batch(batches: &mut Vec<PurgeBatch>, videos: u64, cutoff: Cutoff) {
    let has_room = |batch: &&mut PurgeBatch| {
        batch.since == cutoff.since
            && batch.cutoffs.len() < MAX_PURGED_ORGANIZATIONS
            && batch.videos + videos <= MAX_PURGED_VIDEOS
    };
    match batches.iter_mut().find(has_room) {
        Some(batch) => {
            batch.videos += videos;
            batch.cutoffs.push(cutoff);
        }
        None => batches.push(PurgeBatch { since: cutoff.since, videos, cutoffs: vec![cutoff] }),
    }
}

/// Compacts an organization's history before its cutoff, and returns the number of its videos; `None` if nothing is
/// left to do.
async fn compact_organization(
    databases: &Databases,
    lock: &mut ErasureLock,
    client: &Client,
    cutoff: &Cutoff,
    deadline: Instant,
) -> Result<Option<u64>, Error> {
    let pg = &databases.pg;
    // Undelivered changes, and deliveries that ClickHouse lost, may contain days before the cutoff.
    let deadline = deadline.max(Instant::now() + MIN_DELIVERY_TIMEOUT);
    let delivered = visibility::wait_for_history(pg, cutoff.organization);
    tokio::time::timeout_at(deadline, delivered).await.map_err(|_| not_delivered())??;
    let applied = timeout::short(outbox::last_applied_delivery(pg)).await?;
    if history_writer::last_delivery(client).await?.number < applied {
        return Err(not_delivered());
    }
    let subjects = retention::find_uncompacted_subjects(client, cutoff).await?;
    if subjects.is_empty() && cutoff.is_compacted {
        return Ok(None);
    }
    timeout::short(retention::record_compaction(pg, cutoff, false)).await?;
    let mut chunks = Chunks::new(&subjects, MAX_COMPACTED_SUBJECTS);
    while let Some(chunk) = chunks.pop() {
        timeout::short(lock.ensure_held()).await?;
        let compacted = retention::compact(client, cutoff, chunk).await;
        chunks.halve_if_too_large(chunk, compacted)?;
        failpoint::reached("retention-compacted");
    }
    retention::count_videos(client, cutoff).await.map(Some)
}

/// Makes the relay recompute an organization's rollup, without the purged days.
async fn recompute_rollup(
    databases: &Databases,
    lock: &mut ErasureLock,
    client: &Client,
    cutoff: &Cutoff,
    limit: &mut Duration,
) -> Result<(), Error> {
    let (pg, organization) = (&databases.pg, cutoff.organization);
    let subjects = with_timeout(limit, retention::find_rolled_up_subjects(client, cutoff)).await;
    let subjects = subjects.ok_or(clickhouse::error::Error::TimedOut)??;
    for chunk in subjects.chunks(MAX_RECOMPUTED_SUBJECTS) {
        timeout::short(lock.ensure_held()).await?;
        let mark_changed = || async {
            let mut write = Write::begin(pg, organization).await?;
            for subject in chunk {
                write.record_subject_change(*subject, Some(NaiveDate::default()));
            }
            write.commit().await
        };
        let committed = timeout::long(retry_on_conflict(mark_changed)).await?;
        failpoint::reached("retention-recomputed");
        if let Some(position) = committed.outbox_position {
            let delivered = visibility::wait_for_position(pg, organization, position);
            with_timeout(limit, delivered).await.ok_or_else(not_delivered)??;
        }
    }
    timeout::short(retention::record_compaction(pg, cutoff, true)).await
}

/// Awaits a future; `None` after the timeout, which is then reduced, so that an outage delays the other organizations
/// only briefly.
async fn with_timeout<T>(limit: &mut Duration, future: impl Future<Output = T>) -> Option<T> {
    let output = tokio::time::timeout(*limit, future).await.ok();
    if output.is_none() {
        *limit = MIN_DELIVERY_TIMEOUT;
    }
    output
}

fn not_delivered() -> Error {
    let text = "changes are not delivered to clickhouse: check that a tracker runs, and its log";
    Error::Conflict(text.to_owned())
}
