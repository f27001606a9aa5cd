//! Scrape targets: when each account and each individually tracked video is due, and how its last attempts ended.
//!
//! A target is enabled while its account and that account's creator are active, or its video is. A change of what this or the
//! status depends on calls [`Write::record_target_change`]. A statement that makes targets due earlier adds wakeups.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::ended_attempts;
use crate::model::event::{EventData, EventType};
use crate::model::tracking::FailureReason;
use crate::store::records::events::NewEvent;
use crate::store::{Error, Write};

/// Adds targets of accounts, due at `now`, unless they exist.
pub async fn add_accounts(write: &mut Write, accounts: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    let insert = "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, platform, 'account', $3 from accounts where organization_id = $1 and id = any($2)
         on conflict do nothing";
    add(write, insert, accounts, now).await
}

/// Adds targets of individually tracked videos, due at `now`, unless they exist.
pub async fn add_videos(write: &mut Write, videos: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    let insert = "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, platform, 'video', $3 from videos
         where organization_id = $1 and id = any($2) and is_tracked
         on conflict do nothing";
    add(write, insert, videos, now).await
}

async fn add(write: &mut Write, insert: &'static str, ids: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(insert).bind(write.organization()).bind(ids).bind(now).execute(write.connection()).await?;
    ids.iter().for_each(|id| write.record_target_change(*id));
    Ok(())
}

/// Public for tests of its plan.
pub const SET_INTERVAL: &str = "
    with changed as (
        update scrape_targets set next_attempt_at = case
            when failures = 0 then last_attempt_at + make_interval(hours => $3)
            else least(next_attempt_at, last_attempt_at + make_interval(hours => $3)) end
        where organization_id = $1 and id = any($2) and last_attempt_at is not null
        returning platform, kind, next_attempt_at
    )
    insert into scrape_wakeups (organization_id, platform, kind, wake_at)
    select $1, platform, kind, min(next_attempt_at) from changed group by 2, 3";

/// Reschedules targets to an interval after their last attempt. While attempts fail, only to an earlier time.
pub async fn set_interval(write: &mut Write, ids: &[Uuid], hours: i32) -> Result<(), Error> {
    let query = sqlx::query(SET_INTERVAL).bind(write.organization()).bind(ids).bind(hours);
    query.execute(write.connection()).await?;
    Ok(())
}

/// Makes a target due, as if no attempt had failed.
pub async fn restart(write: &mut Write, id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query(
        "with changed as (
            update scrape_targets set next_attempt_at = $3, failures = 0, not_found_runs = 0
            where organization_id = $1 and id = $2
            returning platform, kind
         )
         insert into scrape_wakeups (organization_id, platform, kind, wake_at) select $1, platform, kind, $3 from changed",
    )
    .bind(write.organization())
    .bind(id)
    .bind(now)
    .execute(write.connection())
    .await?;
    write.record_target_change(id);
    Ok(())
}

/// Merges the target of a merged record into another. If both have one, `into`'s stays and takes over the lease unless it is
/// leased.
pub async fn merge(write: &mut Write, from: Uuid, into: Uuid) -> Result<(), Error> {
    for statement in [
        "update scrape_targets i set lease_owner = f.lease_owner, lease_until = f.lease_until
         from scrape_targets f
         where f.organization_id = $1 and f.id = $2 and i.organization_id = $1 and i.id = $3
           and (i.lease_until is null or i.lease_until < now())",
        "update scrape_targets set id = $3 where organization_id = $1 and id = $2
           and not exists (select from scrape_targets where id = $3)",
    ] {
        let query = sqlx::query(statement).bind(write.organization()).bind(from).bind(into);
        query.execute(write.connection()).await?;
    }
    write.record_target_change(into);
    remove(write, &[from]).await
}

/// Deletes targets of accounts or videos that are no longer tracked.
pub async fn remove(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
    sqlx::query(
        "with removed as (
            delete from scrape_targets where organization_id = $1 and id = any($2)
            returning platform, found_by, status, counted_failure
         )
         insert into target_counts (organization_id, platform, found_by, status, failure, targets, is_sum)
         select $1, platform, found_by, status, coalesce(counted_failure, ''), -count(*), false
         from removed where status is not null group by 2, 3, 4, 5",
    )
    .bind(write.organization())
    .bind(ids)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Why an attempt failed.
#[derive(Debug, Clone)]
pub struct AttemptFailure {
    pub reason: FailureReason,
    /// For people.
    pub error: String,
}

/// The result of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// When it began.
    pub at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    /// After how long the next one follows, unless the record's interval is shorter. `None`: after the interval.
    pub retry_delay: Option<TimeDelta>,
    pub failure: Option<AttemptFailure>,
    /// Attempts that failed since the last success.
    pub failures: i32,
    pub not_found_runs: i32,
    pub deep_reads: DeepReads,
}

/// Which deep reads of an account's posts a scrape includes, besides the newest posts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct DeepReads {
    pub weekly: bool,
    pub monthly: bool,
}

/// Ends an attempt in the unit of work that records its result, and returns Postgres' time. `None` if the lease was lost:
/// another process has the target, and this unit of work must not commit.
pub async fn finish_attempt(
    write: &mut Write,
    owner: Uuid,
    target: Uuid,
    attempt: AttemptResult,
) -> Result<Option<DateTime<Utc>>, Error> {
    write.advance_event_time(attempt.ended_at);
    let (reason, error) = attempt.failure.map(|failure| (failure.reason, failure.error)).unzip();
    let finished: Option<(DateTime<Utc>, bool, Option<bool>)> =
        sqlx::query_as(include_str!("finish_attempt.sql"))
            .bind(write.organization())
            .bind(target)
            .bind(owner)
            .bind(attempt.at)
            .bind(attempt.retry_delay)
            .bind(error)
            .bind(attempt.failures)
            .bind(attempt.not_found_runs)
            .bind(attempt.deep_reads.weekly)
            .bind(attempt.deep_reads.monthly)
            .bind(reason)
            .bind(ended_attempts::minute(attempt.ended_at))
            .fetch_optional(write.connection())
            .await?;
    Ok(finished.map(|(postgres_now, failure_changes, reports_failure)| {
        if failure_changes {
            write.record_target_change(target);
        }
        if let Some(is_failing) = reports_failure {
            let event_type = if is_failing { EventType::AccountFailing } else { EventType::AccountRecovered };
            let data = EventData { reason, ..EventData::default() };
            write.record_event(NewEvent::of_account(event_type, target, data), attempt.ended_at);
        }
        postgres_now
    }))
}
