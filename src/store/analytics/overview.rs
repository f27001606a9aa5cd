//! The headline figures of an organization: what it holds, and what a window gained beside the one before it.

use clickhouse::{Client, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Scope, fetch_one, scoped};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;

/// How much of everything an organization has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Holdings {
    pub accounts: i64,
    pub active_accounts: i64,
    pub creators: i64,
    pub videos: i64,
    pub account_videos: i64,
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

/// Gains of a window and of the one before it.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct Gains {
    pub views: i64,
    pub plays: i64,
    pub likes: i64,
    pub comments: i64,
    pub shares: i64,
    pub previous_views: i64,
    pub previous_plays: i64,
    pub previous_likes: i64,
    pub previous_comments: i64,
    pub previous_shares: i64,
}

pub async fn gains(client: &Client, scope: Scope<'_>, window: Window) -> Result<Gains, Error> {
    fetch_one(scoped(client, include_str!("overview.sql"), scope, window)).await
}
