//! What the tracker reads regularly: when each account and each individually tracked video is due, and how its last
//! attempts went. Who has a target in hand is the matter of `leases`.
//!
//! A target is enabled while its account and that account's creator, or its video, is active; whoever changes one
//! of these flags calls [`refresh_enabled`]. Nothing else decides what is collected.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::{Error, Write};

/// Makes accounts due at once, those that have a target already excepted.
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

/// Makes individually tracked videos due at once, those that have a target already excepted.
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

/// Enables or pauses the targets of accounts and videos as their own flags and their creators' say.
pub async fn refresh_enabled(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
    sqlx::query(
        "update scrape_targets t set enabled = x.enabled
         from (
            select a.id, a.is_active and coalesce(c.is_active, true) as enabled
            from accounts a left join creators c on c.id = a.creator_id
            where a.organization_id = $1 and a.id = any($2)
            union all
            select id, is_active from videos where organization_id = $1 and id = any($2) and is_tracked
         ) x
         where t.organization_id = $1 and t.id = x.id and t.enabled <> x.enabled",
    )
    .bind(write.organization())
    .bind(ids)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// The interval at which an account or an individually tracked video is read.
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

/// Counts another interval from the last attempt; while attempts fail, it only bounds how long to wait.
pub async fn set_interval(write: &mut Write, id: Uuid, hours: i32) -> Result<(), Error> {
    sqlx::query(
        "update scrape_targets set next_attempt_at = case
             when failures = 0 then last_attempt_at + make_interval(hours => $3)
             else least(next_attempt_at, last_attempt_at + make_interval(hours => $3)) end
         where organization_id = $1 and id = $2 and last_attempt_at is not null",
    )
    .bind(write.organization())
    .bind(id)
    .bind(hours)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Gives the target of a record that goes to the one that it was merged into. Where both have one, the latter's
/// stays; a scrape that has the former in hand has the latter in hand from now on, unless somebody else does.
pub async fn merge(write: &mut Write, lost: Uuid, kept: Uuid) -> Result<(), Error> {
    for statement in [
        "update scrape_targets k set lease_owner = l.lease_owner, lease_until = l.lease_until
         from scrape_targets l
         where l.organization_id = $1 and l.id = $2 and k.organization_id = $1 and k.id = $3
           and (k.lease_until is null or k.lease_until < now())",
        "update scrape_targets set id = $3 where organization_id = $1 and id = $2
           and not exists (select from scrape_targets where id = $3)",
        "delete from scrape_targets where organization_id = $1 and id = $2 and id <> $3",
    ] {
        let query = sqlx::query(statement).bind(write.organization()).bind(lost).bind(kept);
        query.execute(write.connection()).await?;
    }
    Ok(())
}

/// Forgets targets whose account or video is no longer tracked.
pub async fn remove(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
    sqlx::query("delete from scrape_targets where organization_id = $1 and id = any($2)")
        .bind(write.organization())
        .bind(ids)
        .execute(write.connection())
        .await?;
    Ok(())
}

/// How an attempt ended, and what comes next.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub at: DateTime<Utc>,
    pub next: DateTime<Utc>,
    pub error: Option<String>,
    pub failures: i32,
    pub not_found_runs: i32,
    /// How deep an account was read.
    pub deep_reads: DeepReads,
}

/// How far back an account's posts are read: the newest at every scrape, older ones seldom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct DeepReads {
    /// To the posts that are read weekly.
    pub weekly: bool,
    /// To those that are read monthly.
    pub monthly: bool,
}

/// Ends an attempt within the unit of work that records what it learned. False when the lease was lost meanwhile:
/// somebody else has the target, and this unit of work must not commit.
pub async fn finish_attempt(
    write: &mut Write,
    owner: Uuid,
    target: Uuid,
    attempt: Attempt,
) -> Result<bool, Error> {
    let finished = sqlx::query(
        "update scrape_targets set last_attempt_at = $4, next_attempt_at = $5, last_error = $6, failures = $7,
            not_found_runs = $8, lease_owner = null, lease_until = null,
            weekly_read_at = case when $9 then $4 else weekly_read_at end,
            monthly_read_at = case when $10 then $4 else monthly_read_at end
         where organization_id = $1 and id = $2 and lease_owner = $3",
    )
    .bind(write.organization())
    .bind(target)
    .bind(owner)
    .bind(attempt.at)
    .bind(attempt.next)
    .bind(attempt.error)
    .bind(attempt.failures)
    .bind(attempt.not_found_runs)
    .bind(attempt.deep_reads.weekly)
    .bind(attempt.deep_reads.monthly)
    .execute(write.connection())
    .await?;
    Ok(finished.rows_affected() == 1)
}
