//! Statistics of the tracker's queues: how many targets are due and how late, and the load of tracked accounts.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::cost::ScrapeLoad;
use crate::model::platform::{Platform, names};
use crate::store::Error;
use crate::store::tracking::source_pauses::PauseCause;

/// The state of one platform's queue.
#[derive(Debug, Clone, PartialEq, Serialize, sqlx::FromRow)]
pub struct Queue {
    pub platform: Platform,
    /// Due targets that are not leased.
    pub due: i64,
    pub leased: i64,
    /// Targets whose last attempt failed, due or not.
    pub failing: i64,
    /// How long the target that is due longest has waited.
    pub lag_seconds: i64,
    /// The end of the longest pause of its sources, if any is paused. The queue goes on while another source works.
    pub paused_until: Option<DateTime<Utc>>,
    pub cause: Option<PauseCause>,
    /// The paused sources, each with its reason.
    pub reason: Option<String>,
}

/// A queue and its number of targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueStatus {
    #[serde(flatten)]
    pub queue: Queue,
    /// Enabled accounts and individually tracked videos.
    pub targets: i64,
}

/// Returns every platform's queue and number of targets, at `now` of the service clock.
pub async fn fetch_status(pg: &PgPool, now: DateTime<Utc>) -> Result<Vec<QueueStatus>, Error> {
    let (counts, queues) = (count_targets(pg).await?, fetch_all(pg, now).await?);
    let statuses = counts.into_iter().zip(queues);
    Ok(statuses.map(|((_, targets), queue)| QueueStatus { queue, targets }).collect())
}

/// Counts the enabled targets of every platform. Scans all of them.
pub async fn count_targets(pg: &PgPool) -> Result<Vec<(Platform, i64)>, Error> {
    let targets = sqlx::query_as(
        "select p.platform, t.targets
         from unnest($1::text[]) with ordinality as p(platform, rank)
         cross join lateral (
            select count(*) as targets from scrape_targets where platform = p.platform and enabled
         ) t
         order by p.rank",
    )
    .bind(Platform::ALL.map(Platform::as_str))
    .fetch_all(pg)
    .await?;
    Ok(targets)
}

/// The queues of some platforms together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueTotals {
    pub due: i64,
    pub failing: i64,
    pub lag_seconds: i64,
}

/// Adds up the queues of some platforms, at `now` of the service clock.
pub async fn fetch_totals(
    pg: &PgPool,
    platforms: &[Platform],
    now: DateTime<Utc>,
) -> Result<QueueTotals, Error> {
    let queues = fetch_all(pg, now).await?;
    let queues = queues.iter().filter(|queue| platforms.contains(&queue.platform));
    Ok(queues.fold(QueueTotals::default(), |total, queue| QueueTotals {
        due: total.due + queue.due,
        failing: total.failing + queue.failing,
        lag_seconds: total.lag_seconds.max(queue.lag_seconds),
    }))
}

/// Returns the queue of every platform, at `now` of the service clock, without targets of deleted organizations, which no
/// tracker leases. Scans due and failing targets and those with a refresh; leased targets are due or have a refresh until
/// their attempt ends.
pub async fn fetch_all(pg: &PgPool, now: DateTime<Utc>) -> Result<Vec<Queue>, Error> {
    let queues = sqlx::query_as(
        "with deleted as (select id from organizations where deleted_at is not null)
         select p.platform, t.due, t.leased + not_due.leased as leased, failing.failing,
                coalesce(extract(epoch from $1 - t.due_since), 0)::bigint as lag_seconds,
                pause.paused_until, pause.cause, pause.reason
         from unnest($2::text[]) with ordinality as p(platform, rank)
         cross join lateral (
            select count(*) filter (where not coalesce(lease_until >= now(), false)) as due,
                count(*) filter (where lease_until >= now()) as leased,
                min(next_attempt_at) filter (where not coalesce(lease_until >= now(), false)) as due_since
            from scrape_targets where platform = p.platform and enabled and next_attempt_at <= $1
                and organization_id <> all(array(table deleted))
         ) t
         cross join lateral (
            select count(*) as leased from scrape_targets
            where platform = p.platform and refresh_requested_at is not null and next_attempt_at > $1
                and enabled and lease_until >= now() and organization_id <> all(array(table deleted))
         ) not_due
         cross join lateral (
            select count(*) as failing from scrape_targets
            where platform = p.platform and enabled and failures > 0
                and organization_id <> all(array(table deleted))
         ) failing
         cross join lateral (
            select max(until) as paused_until, min(cause) as cause,
                string_agg(source || ': ' || reason, '; ' order by source) as reason
            from source_pauses where platform = p.platform
         ) pause
         order by p.rank",
    )
    .bind(now)
    .bind(Platform::ALL.map(Platform::as_str))
    .fetch_all(pg)
    .await?;
    Ok(queues)
}

/// An organization's part of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct OrganizationQueue {
    /// Accounts and individually tracked videos whose next attempt is due and has not begun.
    #[schemars(example = 4)]
    pub due: i64,
    /// Attempts in progress.
    #[schemars(example = 2)]
    pub in_flight: i64,
    /// How long the oldest due attempt has waited; 0 if none is due.
    #[schemars(example = 12)]
    pub lag_seconds: i64,
}

/// Reads an organization's part of the queues. Leased targets are due or have a refresh until their attempt ends. Row
/// comparisons give the planner only the index of an organization's due targets, as in [`wakeups`](super::wakeups). Public
/// for tests of its plan.
pub const ORGANIZATION_QUEUE: &str = "select passed - leased as due, leased + refreshed as in_flight,
        coalesce(extract(epoch from $2 - oldest.due_since), 0)::bigint as lag_seconds
     from (
        select count(*) as passed, count(*) filter (where lease_until >= now()) as leased
        from scrape_targets
        where organization_id = $1 and platform = any($3) and next_attempt_at <= $2 and enabled
     ) t cross join (
        select count(*) as refreshed from scrape_targets
        where organization_id = $1 and platform = any($3) and refresh_requested_at is not null
            and next_attempt_at > $2 and enabled and lease_until >= now()
     ) not_due cross join (
        select min(next_attempt_at) as due_since
        from unnest($3::text[]) as p(platform)
        cross join lateral (
            select next_attempt_at from scrape_targets
            where (platform, organization_id, next_attempt_at) >= (p.platform, $1, '-infinity')
                and (platform, organization_id, next_attempt_at) <= (p.platform, $1, $2) and enabled
                and (lease_until is null or lease_until < now())
            order by platform, organization_id, next_attempt_at limit 1
        ) first
     ) oldest";

/// Returns an organization's part of the queues of some platforms, at `now` of the service clock.
pub async fn fetch_organization(
    pg: &PgPool,
    organization: Uuid,
    platforms: &[Platform],
    now: DateTime<Utc>,
) -> Result<OrganizationQueue, Error> {
    let queue = sqlx::query_as(ORGANIZATION_QUEUE)
        .bind(organization)
        .bind(now)
        .bind(names(platforms))
        .fetch_one(pg)
        .await?;
    Ok(queue)
}

/// Returns the load of each tracked account of a platform. An account of several organizations counts once, with the
/// shortest interval and the longest lookback.
pub async fn fetch_scrape_loads(
    pg: &PgPool,
    platform: Platform,
    now: DateTime<Utc>,
) -> Result<Vec<ScrapeLoad>, Error> {
    let loads = sqlx::query_as(
        "select min(a.scrape_interval_hours) as interval_hours, max(a.lookback_days) as lookback_days,
                max(p.posts_14d) as posts_14d, max(p.posts_90d) as posts_90d, max(p.posts_total) as posts_total
         from (
            select a.id, a.username, a.platform_id, a.scrape_interval_hours,
                coalesce(a.post_lookback_days, o.default_post_lookback_days) as lookback_days,
                coalesce(a.max_recent_posts, o.default_max_recent_posts) as max_posts
            from scrape_targets t join accounts a on a.id = t.id join organizations o on o.id = a.organization_id
            where t.platform = $1 and t.enabled
         ) a
         cross join lateral (
            select least(count(*) filter (where create_time > $2 - interval '14 days'), a.max_posts) as posts_14d,
                least(count(*) filter (where create_time > $2 - interval '90 days'), a.max_posts) as posts_90d,
                least(count(*), a.max_posts) as posts_total
            from videos v
            where v.account_id = a.id and create_time > $2 - make_interval(days => a.lookback_days)
         ) p
         group by a.username, a.platform_id",
    )
    .bind(platform)
    .bind(now)
    .fetch_all(pg)
    .await?;
    Ok(loads)
}

/// Returns the scrape intervals of a platform's individually tracked videos, each video once.
pub async fn fetch_video_intervals(pg: &PgPool, platform: Platform) -> Result<Vec<i32>, Error> {
    let intervals = sqlx::query_scalar(
        "select min(v.scrape_interval_hours) from scrape_targets t join videos v on v.id = t.id
         where t.platform = $1 and t.enabled and t.kind = 'video' group by coalesce(v.external_id, v.shortcode)",
    )
    .bind(platform)
    .fetch_all(pg)
    .await?;
    Ok(intervals)
}
