//! Wakeups: when to look for due targets of an organization, so that leases skip organizations with nothing due.
//!
//! A write that adds a target, enables it or makes it due earlier appends one. A wakeup may be early, never late.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::leases::TargetKind;
use crate::model::platform::Platform;
use crate::store::Error;

/// Passed wakeups that one statement checks.
const MAX_CHECKED_WAKEUPS: i64 = 1_000;

/// Adds wakeups.
pub(super) async fn append(
    connection: &mut PgConnection,
    organization: Uuid,
    wakeups: HashMap<(Platform, TargetKind), DateTime<Utc>>,
) -> Result<(), Error> {
    for ((platform, kind), wake_at) in wakeups {
        sqlx::query(
            "insert into scrape_wakeups (organization_id, platform, kind, wake_at) values ($1, $2, $3, $4)",
        )
        .bind(organization)
        .bind(platform)
        .bind(kind)
        .bind(wake_at)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Returns the next wakeup on some platforms: not before `now`, none if there is none.
pub async fn fetch_next(
    pg: &PgPool,
    platforms: &[Platform],
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Error> {
    let next = sqlx::query_scalar(
        "select min(greatest(next.wake_at, $2))
         from unnest($1::text[]) as p(platform)
         cross join lateral (
            select wake_at from scrape_wakeups where platform = p.platform order by platform, wake_at limit 1
         ) next",
    )
    .bind(platforms.iter().map(|platform| platform.as_str()).collect::<Vec<_>>())
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(next)
}

/// Replaces passed wakeups of organizations that have nothing due, or several wakeups, by their next attempt; the longest
/// passed first. Targets that are being scraped are due.
///
/// A concurrent transaction that adds a target adds a wakeup too. This statement sees both or neither. It replaces all that
/// it sees: one that stays could be deleted by another process, which does not see the target yet. Row comparisons leave the
/// planner only the index of due targets, however many an organization has.
pub async fn advance(
    pg: &PgPool,
    platform: Platform,
    kind: Option<TargetKind>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "with passed as (
            select ctid as row, organization_id, kind from scrape_wakeups
            where platform = $1 and wake_at <= $2 and ($3::text is null or kind = $3)
            order by wake_at limit $4
            for update skip locked
         ), replaced as (
            select o.organization_id, o.kind, next.next_attempt_at
            from (select organization_id, kind, count(*) as wakeups from passed group by 1, 2) o
            left join lateral (
                select next_attempt_at from scrape_targets t
                where (platform, organization_id, next_attempt_at) >= ($1, o.organization_id, '-infinity')
                    and (platform, organization_id, next_attempt_at) <= ($1, o.organization_id, 'infinity')
                    and enabled and t.kind = o.kind
                order by platform, organization_id, next_attempt_at limit 1
            ) next on true
            where next.next_attempt_at is null or next.next_attempt_at > $2 or o.wakeups > 1
         ), removed as (
            delete from scrape_wakeups where ctid = any(array(
                select row from passed join replaced using (organization_id, kind)
            ))
         )
         insert into scrape_wakeups (organization_id, platform, kind, wake_at)
         select organization_id, $1, kind, next_attempt_at from replaced where next_attempt_at is not null",
    )
    .bind(platform)
    .bind(now)
    .bind(kind)
    .bind(MAX_CHECKED_WAKEUPS)
    .execute(pg)
    .await?;
    Ok(())
}
