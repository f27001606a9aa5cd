//! The figures of an overview that are in Postgres: numbers of records and of new posts.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{PgPool, QueryBuilder};
use uuid::Uuid;

use super::accounts::AccountFilter;
use super::new_posts;
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
    /// Creators; with a filter, those of the accounts that match.
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

/// Counts records: of the whole organization, on one platform or all, or those of the accounts that match.
pub async fn count_records(
    pg: &PgPool,
    organization: Uuid,
    filter: &AccountFilter,
) -> Result<RecordCounts, Error> {
    if filter.is_limited_to_accounts() {
        count_of_accounts(pg, organization, filter).await
    } else {
        count_all(pg, organization, filter.platform).await
    }
}

/// Counts all records. With a platform, creators are those with an account there. Discovered videos are the sum of the
/// accounts' own totals, which costs less than counting rows.
async fn count_all(
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

/// Counts accounts, their creators and their discovered videos.
async fn count_of_accounts(
    pg: &PgPool,
    organization: Uuid,
    filter: &AccountFilter,
) -> Result<RecordCounts, Error> {
    let mut query = QueryBuilder::new(
        "with matching as (
            select a.id, a.is_active, a.creator_id, a.total_post_count from accounts a where a.organization_id = ",
    );
    query.push_bind(organization);
    filter.push_to(&mut query);
    query.push(
        "), tracked as (
            select count(*) as videos from videos
            where is_tracked and account_id in (select id from matching) and organization_id = ",
    );
    query.push_bind(organization);
    query.push(
        ")
        select count(*) as accounts, count(*) filter (where is_active) as active_accounts,
               count(distinct creator_id) as creators,
               coalesce(sum(total_post_count), 0)::bigint as videos,
               coalesce(sum(total_post_count), 0)::bigint as account_videos,
               (select videos from tracked) as individual_videos
        from matching",
    );
    Ok(query.build_query_as().fetch_one(pg).await?)
}

/// Counts the posts of a window and of the window before it.
pub async fn count_new_posts(
    pg: &PgPool,
    organization: Uuid,
    filter: &AccountFilter,
    window: Window,
) -> Result<(i64, i64), Error> {
    let both = Window { start: window.previous().start, ..window };
    let days = new_posts::fetch(pg, organization, filter, both).await?;
    let sum = |is_current: bool| {
        days.iter().filter(|day| (day.day >= window.start) == is_current).map(|day| day.posts).sum()
    };
    Ok((sum(true), sum(false)))
}
