//! Scrape targets: when each account and each individually tracked video is due, and how its last attempts ended.
//!
//! A target is enabled while its account and that account's creator are active, or its video is. A change of one of these
//! flags has to call [`refresh_enabled`].

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::ended_attempts;
use crate::model::tracking::FailureReason;
use crate::store::{Error, Write};

/// Adds targets of accounts, due at `now`, unless they exist.
pub async fn add_accounts(write: &mut Write, accounts: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query(
        "insert into scrape_targets (id, organization_id, platform, kind, enabled, next_attempt_at)
         select a.id, a.organization_id, a.platform, 'account', a.is_active and coalesce(c.is_active, true), $3
         from accounts a left join creators c on c.id = a.creator_id
         where a.organization_id = $1 and a.id = any($2)
         on conflict do nothing",
    )
    .bind(write.organization())
    .bind(accounts)
    .bind(now)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Adds targets of individually tracked videos, due at `now`, unless they exist.
pub async fn add_videos(write: &mut Write, videos: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    if videos.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into scrape_targets (id, organization_id, platform, kind, enabled, next_attempt_at)
         select id, organization_id, platform, 'video', is_active, $3
         from videos where organization_id = $1 and id = any($2) and is_tracked
         on conflict do nothing",
    )
    .bind(write.organization())
    .bind(videos)
    .bind(now)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Not by the organization of the targets: while statistics do not know its new ones, the planner would expect one, and read
/// all of them for each id.
pub const REFRESH_ENABLED: &str = "update scrape_targets t set enabled = x.enabled
     from (
        select a.id, a.is_active and coalesce(c.is_active, true) as enabled
        from accounts a left join creators c on c.id = a.creator_id
        where a.organization_id = $1 and a.id = any($2)
        union all
        select id, is_active from videos where organization_id = $1 and id = any($2) and is_tracked
     ) x
     where t.id = x.id and t.enabled <> x.enabled";

/// Enables or disables targets of accounts and videos by their own and their creators' flags.
pub async fn refresh_enabled(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
    sqlx::query(REFRESH_ENABLED).bind(write.organization()).bind(ids).execute(write.connection()).await?;
    Ok(())
}

/// Returns the scrape interval of an account or a video.
pub async fn fetch_interval_hours(pg: &PgPool, organization: Uuid, id: Uuid) -> Result<Option<i32>, Error> {
    let hours = sqlx::query_scalar(
        "select scrape_interval_hours from accounts where organization_id = $1 and id = $2
         union all
         select scrape_interval_hours from videos where organization_id = $1 and id = $2",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(pg)
    .await?;
    Ok(hours)
}

/// Public for tests of its plan.
pub const SET_INTERVAL: &str = "update scrape_targets set next_attempt_at = case
         when failures = 0 then last_attempt_at + make_interval(hours => $3)
         else least(next_attempt_at, last_attempt_at + make_interval(hours => $3)) end
     where organization_id = $1 and id = any($2) and last_attempt_at is not null";

/// Reschedules targets to an interval after their last attempt. While attempts fail, only to an earlier time.
pub async fn set_interval(write: &mut Write, ids: &[Uuid], hours: i32) -> Result<(), Error> {
    let query = sqlx::query(SET_INTERVAL).bind(write.organization()).bind(ids).bind(hours);
    query.execute(write.connection()).await?;
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
        "delete from scrape_targets where organization_id = $1 and id = $2 and id <> $3",
    ] {
        let query = sqlx::query(statement).bind(write.organization()).bind(from).bind(into);
        query.execute(write.connection()).await?;
    }
    Ok(())
}

/// Deletes targets of accounts or videos that are no longer tracked.
pub async fn remove(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
    sqlx::query("delete from scrape_targets where organization_id = $1 and id = any($2)")
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
    pub next: DateTime<Utc>,
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
    let (reason, error) = attempt.failure.map(|failure| (failure.reason, failure.error)).unzip();
    let finished_at = sqlx::query_scalar(
        "with finished as (
            update scrape_targets set last_attempt_at = $4, next_attempt_at = $5, last_error = $6, failures = $7,
                not_found_runs = $8, lease_owner = null, lease_until = null,
                weekly_read_at = case when $9 then $4 else weekly_read_at end,
                monthly_read_at = case when $10 then $4 else monthly_read_at end, last_failure = $11,
                refresh_requested_at = null
            where organization_id = $1 and id = $2 and lease_owner = $3
            returning organization_id, last_failure is null as succeeded
         )
         insert into ended_attempts (organization_id, minute, succeeded, failed, is_sum)
         select organization_id, $12, succeeded::integer, (not succeeded)::integer, false from finished
         returning clock_timestamp()",
    )
    .bind(write.organization())
    .bind(target)
    .bind(owner)
    .bind(attempt.at)
    .bind(attempt.next)
    .bind(error)
    .bind(attempt.failures)
    .bind(attempt.not_found_runs)
    .bind(attempt.deep_reads.weekly)
    .bind(attempt.deep_reads.monthly)
    .bind(reason)
    .bind(ended_attempts::minute(attempt.ended_at))
    .fetch_optional(write.connection())
    .await?;
    Ok(finished_at)
}
