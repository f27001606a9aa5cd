//! The search result sections as Postgres knows them: of the candidates, those that still match, ranked.
//!
//! Best first means the whole text, then its beginning, then anywhere in it; among equals the bigger, then by id.
//! Counters live here alone, so a scrape that only moves them ranks at once and touches no index. The price is that
//! every candidate is looked at: on two busy cores and 250,000 captions, a frequent letter takes about 0.6 s, a frequent
//! word of three letters 30 ms, what is rarer or absent at most 5 ms.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

/// An account whose username was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountHit {
    /// The id of the account.
    pub id: Uuid,
    /// Where the account is.
    pub platform: Platform,
    /// The username on the platform.
    #[schemars(example = &"salt.and.tide")]
    pub username: String,
    /// The name that the profile shows.
    #[schemars(example = &"Salt & Tide")]
    pub display_name: Option<String>,
}

/// A creator whose name was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct CreatorHit {
    /// The id of the creator.
    pub id: Uuid,
    /// What the creator is called.
    #[schemars(example = &"Marta Soares")]
    pub name: String,
}

/// A video whose caption was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct VideoHit {
    /// The id of the video.
    pub id: Uuid,
    /// Where the video is.
    pub platform: Platform,
    /// The caption.
    #[schemars(example = &"First swell of the season. Sound on 🌊")]
    pub caption: Option<String>,
    /// The tracked account that it was found on; null without one.
    pub account_id: Option<Uuid>,
    /// The username of who posted it.
    #[schemars(example = &"salt.and.tide")]
    pub account_username: Option<String>,
}

pub(super) async fn accounts(
    pg: &PgPool,
    organization: Uuid,
    candidates: &[Uuid],
    query: &str,
    limit: usize,
) -> Result<Vec<AccountHit>, Error> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let hits = sqlx::query_as(
        "select id, platform, username, name as display_name
         from accounts
         where organization_id = $1 and id = any($2) and position($3 in username) > 0
         order by username = $3 desc, starts_with(username, $3) desc, follower_count desc, id
         limit $4",
    )
    .bind(organization)
    .bind(candidates)
    .bind(query)
    .bind(limit as i64)
    .fetch_all(pg)
    .await?;
    Ok(hits)
}

pub(super) async fn creators(
    pg: &PgPool,
    organization: Uuid,
    candidates: &[Uuid],
    query: &str,
    limit: usize,
) -> Result<Vec<CreatorHit>, Error> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let hits = sqlx::query_as(
        "select id, name
         from creators
         where organization_id = $1 and id = any($2) and position($3 in name_key) > 0
         order by name_key = $3 desc, starts_with(name_key, $3) desc,
             (select coalesce(sum(follower_count), 0) from accounts where creator_id = creators.id) desc, id
         limit $4",
    )
    .bind(organization)
    .bind(candidates)
    .bind(query)
    .bind(limit as i64)
    .fetch_all(pg)
    .await?;
    Ok(hits)
}

pub(super) async fn videos(
    pg: &PgPool,
    organization: Uuid,
    candidates: &[Uuid],
    query: &str,
    limit: usize,
) -> Result<Vec<VideoHit>, Error> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let hits = sqlx::query_as(
        "with best as (
             select id, platform, description, description_key, account_id, view_count
             from videos
             where organization_id = $1 and id = any($2) and position($3 in description_key) > 0
             order by description_key = $3 desc, starts_with(description_key, $3) desc, view_count desc, id
             limit $4
         )
         select best.id, best.platform, best.description as caption, best.account_id,
             accounts.username as account_username
         from best left join accounts on accounts.id = best.account_id
         order by best.description_key = $3 desc, starts_with(best.description_key, $3) desc, best.view_count desc,
             best.id",
    )
    .bind(organization)
    .bind(candidates)
    .bind(query)
    .bind(limit as i64)
    .fetch_all(pg)
    .await?;
    Ok(hits)
}
