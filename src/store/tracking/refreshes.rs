//! Refreshes: targets that a user asked to scrape now, whenever they are due. The next attempt ends a refresh, however it ends.

use chrono::{DateTime, Utc};
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use super::leases::TargetKind;
use crate::model::platform::Platform;
use crate::model::readable::FoundBy;
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::postgres::notifications::Topic;

/// The state that decides whether a target can be refreshed.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct RefreshTarget {
    pub id: Uuid,
    pub platform: Platform,
    pub found_by: FoundBy,
    pub is_unavailable: bool,
    /// Whether neither it nor its creator is paused.
    pub is_enabled: bool,
    pub is_leased: bool,
    pub is_queued: bool,
    pub last_success_at: Option<DateTime<Utc>>,
}

const LOCK: &str =
    "select from scrape_targets where organization_id = $1 and id = any($2) order by id for update";

/// Public for tests of its plan.
pub const SELECT_ACCOUNTS: &str = "
    select t.id, t.platform, t.found_by, a.is_unavailable, t.enabled as is_enabled,
        coalesce(t.lease_until > now(), false) as is_leased, t.refresh_requested_at is not null as is_queued,
        a.last_scrape_time as last_success_at
    from accounts a join scrape_targets t on t.id = a.id
    where a.organization_id = $1 and a.id = any($2)
    order by t.id";

/// Public for tests of its plan.
pub const SELECT_VIDEOS: &str = "
    select t.id, t.platform, t.found_by, v.is_unavailable, t.enabled as is_enabled,
        coalesce(t.lease_until > now(), false) as is_leased, t.refresh_requested_at is not null as is_queued,
        v.last_scrape_time as last_success_at
    from videos v join scrape_targets t on t.id = v.id
    where v.organization_id = $1 and v.id = any($2) and v.is_tracked
    order by t.id";

/// Reads the targets of a kind, in the order of their ids.
pub async fn fetch(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    kind: TargetKind,
    ids: &[Uuid],
) -> Result<Vec<RefreshTarget>, Error> {
    let select = match kind {
        TargetKind::Account => SELECT_ACCOUNTS,
        TargetKind::Video => SELECT_VIDEOS,
    };
    Ok(sqlx::query_as(select).bind(organization).bind(ids).fetch_all(pg).await?)
}

/// Queues the targets that `decide` names, and returns what else it returns.
pub async fn queue<T>(
    pg: &PgPool,
    organization: Uuid,
    kind: TargetKind,
    ids: &[Uuid],
    decide: impl FnOnce(&[RefreshTarget]) -> (Vec<Uuid>, T),
) -> Result<T, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    // Before the records are read, so that they are as the last attempt left them.
    sqlx::query(LOCK).bind(organization).bind(ids).execute(&mut *transaction).await?;
    let targets = fetch(&mut *transaction, organization, kind, ids).await?;
    let (accepted, decision) = decide(&targets);
    sqlx::query(
        "update scrape_targets set refresh_requested_at = clock_timestamp()
         where organization_id = $1 and id = any($2)",
    )
    .bind(organization)
    .bind(accepted)
    .execute(&mut *transaction)
    .await?;
    transaction.commit_and_notify(Topic::Writes).await?;
    Ok(decision)
}

/// Public for tests of its plan. The order leaves the planner only the index of refreshes, also without statistics of it.
pub const QUEUED_PLATFORMS: &str = "select p.platform
     from unnest($1::text[]) as p(platform)
     cross join lateral (
        select from scrape_targets
        where platform = p.platform and refresh_requested_at is not null and enabled
        order by organization_id, refresh_requested_at limit 1
     ) queued";

/// Returns the platforms that have queued refreshes.
pub async fn fetch_queued_platforms(pg: &PgPool) -> Result<Vec<Platform>, Error> {
    let platforms = Platform::ALL.map(Platform::as_str);
    Ok(sqlx::query_scalar(QUEUED_PLATFORMS).bind(platforms).fetch_all(pg).await?)
}

/// The number of an organization's queued refreshes.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct QueuedRefreshes {
    pub platform: Platform,
    pub organization_id: Uuid,
    pub targets: i64,
}

/// Counts the queued refreshes of all organizations that have any.
pub async fn count_queued(pg: &PgPool) -> Result<Vec<QueuedRefreshes>, Error> {
    let queued = sqlx::query_as(
        "select platform, organization_id, count(*) as targets from scrape_targets
         where refresh_requested_at is not null and enabled group by 1, 2",
    )
    .fetch_all(pg)
    .await?;
    Ok(queued)
}
