//! Statistics of the tracker's queues: how many targets are due and how late, and the load of tracked accounts.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::model::cost::ScrapeLoad;
use crate::model::platform::Platform;
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
    let (targets, queues) = (count_targets(pg).await?, fetch_all(pg, now).await?);
    let statuses = targets.into_iter().zip(queues);
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

/// Returns the queue of every platform, at `now` of the service clock. Scans due and failing targets; leased targets are
/// due until their attempt ends.
pub async fn fetch_all(pg: &PgPool, now: DateTime<Utc>) -> Result<Vec<Queue>, Error> {
    let queues = sqlx::query_as(
        "select p.platform, t.due, t.leased, failing.failing,
                coalesce(extract(epoch from $1 - t.due_since), 0)::bigint as lag_seconds,
                pause.paused_until, pause.cause, pause.reason
         from unnest($2::text[]) with ordinality as p(platform, rank)
         cross join lateral (
            select count(*) filter (where not coalesce(lease_until >= now(), false)) as due,
                count(*) filter (where lease_until >= now()) as leased,
                min(next_attempt_at) filter (where not coalesce(lease_until >= now(), false)) as due_since
            from scrape_targets where platform = p.platform and enabled and next_attempt_at <= $1
         ) t
         cross join lateral (
            select count(*) as failing from scrape_targets
            where platform = p.platform and enabled and failures > 0
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
