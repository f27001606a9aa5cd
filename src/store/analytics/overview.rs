//! The figures of an overview that are in Postgres: numbers of records and of new posts.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;

/// Number of records of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct RecordCounts {
    /// Accounts, including paused ones.
    #[schemars(example = 128)]
    pub accounts: i64,
    /// Accounts whose own `is_active` is true.
    #[schemars(example = 121)]
    pub active_accounts: i64,
    /// Creators; with `platform`, those with an account on it.
    #[schemars(example = 64)]
    pub creators: i64,
    /// Account-discovered and individually tracked videos, each counted once.
    #[schemars(example = 18_420)]
    pub videos: i64,
    /// Account-discovered videos.
    #[schemars(example = 18_377)]
    pub account_videos: i64,
    /// Individually tracked videos.
    #[schemars(example = 96)]
    pub individual_videos: i64,
}

/// Counts records. With a platform, creators are those with an account there. Discovered videos are the sum of the
/// accounts' own totals, which costs less than counting rows.
pub async fn count_records(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
) -> Result<RecordCounts, Error> {
    let counts = sqlx::query_as(
        "select accounts, active_accounts,
                case when $2::text is null then (select count(*) from creators where organization_id = $1)
                     else creators end as creators,
                account_videos + tracked_alone as videos, account_videos, individual_videos
         from (
            select count(*) as accounts, count(*) filter (where is_active) as active_accounts,
                   count(distinct creator_id) as creators,
                   coalesce(sum(total_post_count), 0)::bigint as account_videos
            from accounts where organization_id = $1 and ($2::text is null or platform = $2)
         ) a cross join (
            select count(*) filter (where account_id is null) as tracked_alone, count(*) as individual_videos
            from videos where organization_id = $1 and is_tracked and ($2::text is null or platform = $2)
         ) v",
    )
    .bind(organization)
    .bind(platform)
    .fetch_one(pg)
    .await?;
    Ok(counts)
}

/// Counts the posts of a window and of the window before it.
pub async fn count_new_posts(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
    window: Window,
) -> Result<(i64, i64), Error> {
    let counts = sqlx::query_as(
        "select coalesce(sum(posts) filter (where day >= $4), 0)::bigint,
                coalesce(sum(posts) filter (where day < $4), 0)::bigint
         from post_days
         where organization_id = $1 and ($2::text is null or platform = $2) and day between $3 and $5",
    )
    .bind(organization)
    .bind(platform)
    .bind(window.previous().start)
    .bind(window.start)
    .bind(window.end)
    .fetch_one(pg)
    .await?;
    Ok(counts)
}
