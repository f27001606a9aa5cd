//! What the tracker reads regularly: when each account and each individually tracked video is due, who has it in
//! hand, and how its last attempts went.
//!
//! A target is enabled while its account and that account's creator, or its video, is active; whoever changes one
//! of these flags calls [`refresh`]. Nothing else decides what is collected.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use super::{Error, Write};
use crate::model::platform::Platform;

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
pub async fn refresh(write: &mut Write, ids: &[Uuid]) -> Result<(), Error> {
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

/// What kind of thing a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Kind {
    Account,
    Video,
}

/// A target that one tracker process has in hand until its lease ends.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Leased {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub platform: Platform,
    pub kind: Kind,
    pub failures: i32,
    pub not_found_runs: i32,
}

/// Takes targets in hand that are due at `now` and that nobody else holds. Leases run by the database's clock,
/// which every process shares and which no sandbox moves.
pub async fn lease(
    pg: &PgPool,
    owner: Uuid,
    platforms: &[Platform],
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Leased>, Error> {
    let leased = sqlx::query_as(
        "update scrape_targets t set lease_owner = $1, lease_until = now() + $5
         from (
            select id from scrape_targets
            where enabled and platform = any($2) and next_attempt_at <= $3
              and (lease_until is null or lease_until < now())
            order by next_attempt_at limit $4
            for update skip locked
         ) due
         where t.id = due.id
         returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs",
    )
    .bind(owner)
    .bind(platforms)
    .bind(now)
    .bind(limit)
    .bind(LEASE)
    .fetch_all(pg)
    .await?;
    Ok(leased)
}

/// How long a target stays in hand without a sign of life: a killed tracker's work is taken over within a minute.
const LEASE: PgInterval = PgInterval { months: 0, days: 0, microseconds: 45_000_000 };

/// Keeps in hand what the process works on; what it gave up without a word runs out.
pub async fn renew(pg: &PgPool, owner: Uuid, in_hand: &[Uuid]) -> Result<(), Error> {
    sqlx::query("update scrape_targets set lease_until = now() + $3 where lease_owner = $1 and id = any($2)")
        .bind(owner)
        .bind(in_hand)
        .bind(LEASE)
        .execute(pg)
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
}

/// Ends an attempt within the unit of work that records what it learned. False when the lease was lost meanwhile:
/// somebody else has the target, and this unit of work must not commit.
pub async fn finish(write: &mut Write, owner: Uuid, target: Uuid, attempt: Attempt) -> Result<bool, Error> {
    let finished = sqlx::query(
        "update scrape_targets set last_attempt_at = $4, next_attempt_at = $5, last_error = $6, failures = $7,
            not_found_runs = $8, lease_owner = null, lease_until = null
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
    .execute(write.connection())
    .await?;
    Ok(finished.rows_affected() == 1)
}

/// Gives back what is in hand, to be taken again at `next`: nothing was learned, and nothing went wrong with it.
pub async fn release(pg: &PgPool, owner: Uuid, target: Uuid, next: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query(
        "update scrape_targets set lease_owner = null, lease_until = null, next_attempt_at = greatest(next_attempt_at, $3)
         where id = $1 and lease_owner = $2",
    )
    .bind(target)
    .bind(owner)
    .bind(next)
    .execute(pg)
    .await?;
    Ok(())
}
