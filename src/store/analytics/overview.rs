//! The headline figures of an organization that Postgres knows: what it holds, and how much was posted.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;

/// How much of everything an organization has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Holdings {
    /// Tracked accounts, paused ones too.
    #[schemars(example = 128)]
    pub accounts: i64,
    /// Accounts whose own `is_active` is true.
    #[schemars(example = 121)]
    pub active_accounts: i64,
    /// Creators; with `platform`, those with an account there.
    #[schemars(example = 64)]
    pub creators: i64,
    /// Videos of either kind, each once.
    #[schemars(example = 18_420)]
    pub videos: i64,
    /// Videos that were found on accounts.
    #[schemars(example = 18_377)]
    pub account_videos: i64,
    /// Videos that are tracked on their own.
    #[schemars(example = 96)]
    pub individual_videos: i64,
}

/// Counts what the organization has; with a platform, creators are those with an account there.
pub async fn holdings(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
) -> Result<Holdings, Error> {
    let holdings = sqlx::query_as(
        "select accounts, active_accounts,
                case when $2::text is null then (select count(*) from creators where organization_id = $1)
                     else creators end as creators,
                videos, account_videos, individual_videos
         from (
            select count(*) as accounts, count(*) filter (where is_active) as active_accounts,
                   count(distinct creator_id) as creators
            from accounts where organization_id = $1 and ($2::text is null or platform = $2)
         ) a cross join (
            select count(*) as videos, count(*) filter (where account_id is not null) as account_videos,
                   count(*) filter (where is_tracked) as individual_videos
            from videos where organization_id = $1 and ($2::text is null or platform = $2)
         ) v",
    )
    .bind(organization)
    .bind(platform)
    .fetch_one(pg)
    .await?;
    Ok(holdings)
}

/// Counts the posts of a window, and of the one before it.
pub async fn new_posts(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
    window: Window,
) -> Result<(i64, i64), Error> {
    let counts = sqlx::query_as(
        "select count(*) filter (where create_time >= $4::timestamp at time zone 'UTC'),
                count(*) filter (where create_time < $4::timestamp at time zone 'UTC')
         from videos
         where organization_id = $1 and ($2::text is null or platform = $2)
           and create_time >= $3::timestamp at time zone 'UTC'
           and create_time < ($5::timestamp + interval '1 day') at time zone 'UTC'",
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
