//! Limits each organization's history to its retention period.
//!
//! First cutoffs advance. What is older is compacted to the snapshots that later days count from, the rest is purged
//! from ClickHouse's files, and the relay recomputes the rollup. `erasure` decides when. Queries are about many
//! organizations, so those with nothing to delete cost hardly any statements.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::NaiveDate;
use clickhouse::Client;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use super::chunks::Chunks;
use super::ranges::Ranges;
use super::timeout;
use crate::app::Databases;
use crate::failpoint;
use crate::store::clickhouse::history_writer;
use crate::store::lifecycle::retention::{self, Cutoff, RetainedSubject};
use crate::store::lifecycle::subject_range::SubjectRange;
use crate::store::lifecycle::{ErasureLock, organizations};
use crate::store::outbox::visibility;
use crate::store::{Error, Write, outbox, retry_on_conflict};

/// Organizations per query: their ids are a field of the HTTP request and part of its URL, which may have 64 KiB.
const MAX_QUERIED_ORGANIZATIONS: usize = 1_000;
const MAX_COMPACTED_SUBJECTS: usize = 500;
/// Few enough that the relay is not busy with them for long.
const MAX_RECOMPUTED_SUBJECTS: usize = 50;
/// One mutation purges many organizations, because ClickHouse rewrites whole parts for it.
const MAX_PURGED_ORGANIZATIONS: usize = 300;
/// A mutation needs about 2 KB of memory for each video.
const MAX_PURGED_VIDEOS: u64 = 300_000;
/// Organizations that a log line names.
const MAX_LOGGED_ORGANIZATIONS: usize = 20;
/// How long to wait for the relay, for all organizations together.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for the relay once it did not deliver in time.
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
    let mut cutoffs = timeout::short(retention::fetch_cutoffs(&databases.pg, organization)).await?;
    if cutoffs.is_empty() {
        return Ok(0);
    }
    let grace = cutoffs.iter().map(Cutoff::remaining_grace).max();
    tokio::time::sleep(grace.unwrap_or_default()).await;
    let client = retention::client(&databases.clickhouse);
    let relay_timeout = timeout::LONG;
    let mut sweep = Sweep { databases, lock, client, deadline, relay_timeout, rows: 0, result: Ok(()) };
    sweep.retain_delivered(&mut cutoffs).await?;
    let mut by_day: BTreeMap<NaiveDate, Vec<Cutoff>> = BTreeMap::new();
    for cutoff in cutoffs {
        by_day.entry(cutoff.since).or_default().push(cutoff);
    }
    for (since, due) in by_day {
        for batch in into_batches(sweep.find_expired(since, &due).await) {
            sweep.purge_batch(since, batch).await?;
        }
    }
    let rows = sweep.rows;
    sweep.result.map(|()| rows)
}

/// An organization with history before its cutoff to compact, or whose last compaction did not end.
struct Expired {
    organization: Uuid,
    uncompacted: Vec<RetainedSubject>,
    videos: u64,
}

/// Groups organizations that one mutation purges.
fn into_batches(expired: Vec<Expired>) -> Vec<Vec<Expired>> {
    let mut batches: Vec<(u64, Vec<Expired>)> = Vec::new();
    for one in expired {
        match batches.last_mut() {
            Some((videos, batch))
                if batch.len() < MAX_PURGED_ORGANIZATIONS && *videos + one.videos <= MAX_PURGED_VIDEOS =>
            {
                *videos += one.videos;
                batch.push(one);
            }
            _ => batches.push((one.videos, vec![one])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

struct Sweep<'a> {
    databases: &'a Databases,
    lock: &'a mut ErasureLock,
    client: Client,
    /// When mutations time out.
    deadline: Instant,
    /// Reduced after a timeout, so that an outage delays the other organizations only briefly.
    relay_timeout: Duration,
    rows: u64,
    result: Result<(), Error>,
}

impl Sweep<'_> {
    fn record_error(&mut self, organizations: &[Uuid], error: Error) {
        let named = &organizations[..organizations.len().min(MAX_LOGGED_ORGANIZATIONS)];
        let count = organizations.len();
        tracing::warn!(organizations = ?named, count, %error, "expired history of organizations is not deleted");
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }

    /// Waits for the delivery of changes that may contain days before the cutoffs, and leaves out organizations whose
    /// changes are not delivered in time.
    async fn retain_delivered(&mut self, cutoffs: &mut Vec<Cutoff>) -> Result<(), Error> {
        let pg = &self.databases.pg;
        let organizations: Vec<Uuid> = cutoffs.iter().map(|cutoff| cutoff.organization).collect();
        let position = timeout::short(visibility::last_position(pg)).await?;
        let deadline = Instant::now() + DELIVERY_TIMEOUT;
        let pending = loop {
            let pending = timeout::short(visibility::fetch_pending(pg, &organizations, position)).await?;
            if pending.is_empty() || Instant::now() >= deadline {
                break pending;
            }
            tokio::time::sleep(DELIVERY_POLL_INTERVAL).await;
        };
        // A ClickHouse that lost deliveries gets them again.
        let applied = timeout::short(outbox::last_applied_delivery(pg)).await?;
        if history_writer::last_delivery(&self.client).await?.number < applied {
            return Err(not_delivered());
        }
        if !pending.is_empty() {
            cutoffs.retain(|cutoff| !pending.contains(&cutoff.organization));
            self.record_error(&pending.into_iter().collect::<Vec<_>>(), not_delivered());
        }
        Ok(())
    }

    /// Returns the organizations of a cutoff with something to do.
    async fn find_expired(&mut self, since: NaiveDate, cutoffs: &[Cutoff]) -> Vec<Expired> {
        let organizations: Vec<Uuid> = cutoffs.iter().map(|cutoff| cutoff.organization).collect();
        let (mut uncompacted, mut unknown) = (BTreeMap::<Uuid, Vec<_>>::new(), HashSet::<Uuid>::new());
        let mut ranges = Ranges::new(&self.client, since, &organizations, MAX_QUERIED_ORGANIZATIONS);
        while let Some(range) = ranges.pop() {
            let found = retention::find_uncompacted_subjects(&self.client, since, &range).await;
            let found = found.map(|subjects| {
                for subject in subjects {
                    uncompacted.entry(subject.org_id).or_default().push(subject);
                }
            });
            if let Err(error) = ranges.retry_split(&range, found).await {
                unknown.extend(&range.organizations);
                self.record_error(&range.organizations, error);
            }
        }
        let has_work = |cutoff: &&Cutoff| {
            let Cutoff { organization, is_compacted, .. } = cutoff;
            !unknown.contains(organization) && (!is_compacted || uncompacted.contains_key(organization))
        };
        let with_work: Vec<Uuid> =
            cutoffs.iter().filter(has_work).map(|cutoff| cutoff.organization).collect();
        let mut expired = Vec::with_capacity(with_work.len());
        for chunk in with_work.chunks(MAX_QUERIED_ORGANIZATIONS) {
            let range = SubjectRange::all_subjects(chunk);
            match retention::count_videos(&self.client, since, &range).await {
                Ok(videos) => expired.extend(chunk.iter().map(|organization| Expired {
                    organization: *organization,
                    uncompacted: uncompacted.remove(organization).unwrap_or_default(),
                    videos: videos.get(organization).copied().unwrap_or_default(),
                })),
                Err(error) => self.record_error(chunk, error),
            }
        }
        expired
    }

    /// Compacts and purges the history of some organizations, whose rollup the relay then recomputes. Fails only if the lock
    /// is lost.
    async fn purge_batch(&mut self, since: NaiveDate, batch: Vec<Expired>) -> Result<(), Error> {
        let mut left = self.compact(since, &batch).await?;
        let (rolled_up, mut failed) = self.purge_redundant_rows(since, &left).await?;
        failed.extend(self.recompute_rollup(&rolled_up).await?);
        left.retain(|organization| !failed.contains(organization));
        let uncompacted = batch.iter().flat_map(|expired| &expired.uncompacted);
        let changed: HashSet<Uuid> =
            rolled_up.iter().chain(uncompacted).map(|subject| subject.org_id).collect();
        let (changed, unchanged): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|organization| changed.contains(organization));
        for organizations in changed.chunks(1).chain([unchanged.as_slice()]) {
            self.record_compaction(organizations, since, true).await;
        }
        Ok(())
    }

    /// Purges what no later day needs. Returns the subjects with purged days in the rollup, and the organizations for which
    /// that failed.
    async fn purge_redundant_rows(
        &mut self,
        since: NaiveDate,
        organizations: &[Uuid],
    ) -> Result<(Vec<RetainedSubject>, HashSet<Uuid>), Error> {
        let (mut rolled_up, mut failed) = (Vec::new(), HashSet::new());
        let mut ranges = Ranges::new(&self.client, since, organizations, MAX_PURGED_ORGANIZATIONS);
        while let Some(range) = ranges.pop() {
            timeout::short(self.lock.ensure_held()).await?;
            let purged = async {
                let (client, deadline) = (&self.client, self.deadline);
                self.rows += retention::purge_redundant_rows(client, since, &range, deadline).await?;
                failpoint::reached("retention-purged");
                rolled_up.extend(retention::find_rolled_up_subjects(client, since, &range).await?);
                Ok(())
            };
            let purged = purged.await;
            if let Err(error) = ranges.retry_split(&range, purged).await {
                failed.extend(&range.organizations);
                self.record_error(&range.organizations, error);
            }
        }
        Ok((rolled_up, failed))
    }

    /// Returns whether it was recorded.
    async fn record_compaction(
        &mut self,
        organizations: &[Uuid],
        since: NaiveDate,
        is_compacted: bool,
    ) -> bool {
        let pg = &self.databases.pg;
        let recorded =
            timeout::short(retention::record_compaction(pg, organizations, since, is_compacted)).await;
        let is_recorded = recorded.is_ok();
        recorded.unwrap_or_else(|error| self.record_error(organizations, error));
        is_recorded
    }

    /// Compacts the history of some organizations before a day. Returns those that can be purged.
    async fn compact(&mut self, since: NaiveDate, batch: &[Expired]) -> Result<Vec<Uuid>, Error> {
        let mut failed = HashSet::new();
        for expired in batch.iter().filter(|expired| !expired.uncompacted.is_empty()) {
            if !self.record_compaction(&[expired.organization], since, false).await {
                failed.insert(expired.organization);
            }
        }
        let subjects: Vec<RetainedSubject> =
            batch.iter().flat_map(|expired| &expired.uncompacted).copied().collect();
        let mut chunks = Chunks::new(&subjects, MAX_COMPACTED_SUBJECTS);
        while let Some(chunk) = chunks.pop() {
            timeout::short(self.lock.ensure_held()).await?;
            // They are erased meanwhile, and no history of theirs may be written.
            failed.extend(timeout::short(organizations::fetch_deleted(&self.databases.pg)).await?);
            let present: Vec<RetainedSubject> =
                chunk.iter().filter(|subject| !failed.contains(&subject.org_id)).copied().collect();
            if present.is_empty() {
                continue;
            }
            let compacted = retention::compact(&self.client, since, &present).await;
            if let Err(error) = chunks.retry_halved(chunk, compacted) {
                let organizations: HashSet<Uuid> = chunk.iter().map(|subject| subject.org_id).collect();
                self.record_error(&organizations.iter().copied().collect::<Vec<_>>(), error);
                failed.extend(organizations);
            }
            failpoint::reached("retention-compacted");
        }
        let organizations = batch.iter().map(|expired| expired.organization);
        Ok(organizations.filter(|organization| !failed.contains(organization)).collect())
    }

    /// Makes the relay recompute the rollup of subjects, without the purged days. Returns the organizations for which that
    /// failed, or that were deleted meanwhile.
    async fn recompute_rollup(&mut self, subjects: &[RetainedSubject]) -> Result<HashSet<Uuid>, Error> {
        let (pg, mut failed) = (&self.databases.pg, HashSet::new());
        for round in subjects.chunks(MAX_RECOMPUTED_SUBJECTS) {
            timeout::short(self.lock.ensure_held()).await?;
            let mut positions = Vec::new();
            for group in round.chunk_by(|one, next| one.org_id == next.org_id) {
                match mark_changed(pg, group).await {
                    Ok(position) => positions.extend(position.map(|position| (group[0].org_id, position))),
                    Err(error) => {
                        failed.insert(group[0].org_id);
                        if !matches!(error, Error::NotFound("organization")) {
                            self.record_error(&[group[0].org_id], error);
                        }
                    }
                }
            }
            failpoint::reached("retention-recomputed");
            for (organization, position) in positions {
                let delivered = visibility::wait_for_position(pg, organization, position);
                let delivered = tokio::time::timeout(self.relay_timeout, delivered).await;
                if delivered.is_err() {
                    self.relay_timeout = MIN_DELIVERY_TIMEOUT;
                }
                if let Err(error) = delivered.unwrap_or_else(|_| Err(not_delivered())) {
                    failed.insert(organization);
                    self.record_error(&[organization], error);
                }
            }
        }
        Ok(failed)
    }
}

/// Tells the relay that subjects of an organization changed. Returns the outbox position.
async fn mark_changed(pg: &PgPool, subjects: &[RetainedSubject]) -> Result<Option<i64>, Error> {
    let commit = || async {
        let mut write = Write::begin(pg, subjects[0].org_id).await?;
        for subject in subjects {
            write.record_subject_change(subject.subject_id.cast_signed(), Some(NaiveDate::default()));
        }
        write.commit().await
    };
    Ok(timeout::long(retry_on_conflict(commit)).await?.outbox_position)
}

fn not_delivered() -> Error {
    let text = "changes are not delivered to clickhouse: check that a tracker runs, and its log";
    Error::Conflict(text.to_owned())
}
