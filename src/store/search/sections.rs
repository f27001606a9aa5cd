//! The sections of search results, fetched from Postgres: candidates that match by their current text, ranked.
//!
//! Exact matches first, then prefixes, then matches anywhere; equal ones by size, then by id. Values are bound; numbers of
//! rows are literals, so that Postgres plans for them.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::strategy::{Candidates, Strategy, Tier};
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::write::Entity;

/// An account whose username matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountHit {
    /// Account id.
    pub id: Uuid,
    /// Platform of the account.
    pub platform: Platform,
    /// Username on the platform.
    #[schemars(example = &"salt.and.tide")]
    pub username: String,
    /// Display name.
    #[schemars(example = &"Salt & Tide")]
    pub display_name: Option<String>,
}

/// A creator whose name matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct CreatorHit {
    /// Creator id.
    pub id: Uuid,
    /// Name of the creator.
    #[schemars(example = &"Marta Soares")]
    pub name: String,
}

/// A video whose caption matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct VideoHit {
    /// Video id.
    pub id: Uuid,
    /// Platform of the video.
    pub platform: Platform,
    /// Caption.
    #[schemars(example = &"First swell of the season. Sound on 🌊")]
    pub caption: Option<String>,
    /// Tracked account on which the video was discovered; null if none.
    pub account_id: Option<Uuid>,
    /// Username of the account that posted it.
    #[schemars(example = &"salt.and.tide")]
    pub account_username: Option<String>,
}

/// A hit whose records Postgres has in an index by size.
pub(super) trait RankedHit: for<'r> FromRow<'r, PgRow> {
    const ENTITY: Entity;
    const TABLE: &'static str;
    const TEXT_COLUMN: &'static str;
    const SIZE_COLUMN: &'static str;
    /// The columns of a hit.
    const COLUMNS: &'static str;
    /// Joins the tables of the columns to `best`.
    const JOIN: &'static str;
}

impl RankedHit for AccountHit {
    const ENTITY: Entity = Entity::Account;
    const TABLE: &'static str = "accounts";
    const TEXT_COLUMN: &'static str = "username";
    const SIZE_COLUMN: &'static str = "follower_count";
    const COLUMNS: &'static str =
        "accounts.id, accounts.platform, accounts.username, accounts.name as display_name";
    const JOIN: &'static str = "join accounts on accounts.id = best.id";
}

impl RankedHit for VideoHit {
    const ENTITY: Entity = Entity::Video;
    const TABLE: &'static str = "videos";
    const TEXT_COLUMN: &'static str = "description_key";
    const SIZE_COLUMN: &'static str = "view_count";
    const COLUMNS: &'static str =
        "videos.id, videos.platform, videos.description as caption, videos.account_id,
        accounts.username as account_username";
    const JOIN: &'static str =
        "join videos on videos.id = best.id left join accounts on accounts.id = videos.account_id";
}

/// The query for the best records that the strategies find, each with its `tier`.
pub(super) fn ranked_query<H: RankedHit>(
    organization: Uuid,
    text: &str,
    strategies: &[Strategy; 3],
    limit: usize,
) -> QueryBuilder<Postgres> {
    let (table, column, size) = (H::TABLE, H::TEXT_COLUMN, H::SIZE_COLUMN);
    let mut lookups = Vec::new();
    let mut query = QueryBuilder::new("with candidate as (");
    for (strategy, tier) in strategies.iter().zip(Tier::ALL) {
        match strategy {
            Strategy::Skip => {}
            Strategy::LookUp(ids) => lookups.extend_from_slice(ids),
            Strategy::Scan { candidates, rows } => {
                query.push(format_args!("(select id from {table} where organization_id = "));
                // `is true` keeps the planner from joining: each row of the ordered scan is looked up in a hash table.
                query
                    .push_bind(organization)
                    .push(" and (id in (select unnest(")
                    .push_bind(candidates.clone());
                query.push(format_args!("::uuid[]))) is true order by {size} desc, id limit {rows}) union "));
            }
            Strategy::Compare { rows } => {
                query.push(format_args!(
                    "(select id from (select id, {size}, {column} from {table} where organization_id = "
                ));
                query.push_bind(organization);
                query.push(format_args!(" order by {size} desc, id limit {rows}) largest where "));
                push_match(&mut query, column, tier, text);
                query.push(format_args!(" order by {size} desc, id limit {limit}) union "));
            }
        }
    }
    lookups.sort_unstable();
    lookups.dedup();
    query.push("select unnest(").push_bind(lookups).push("::uuid[])), best as (select id, case when ");
    push_match(&mut query, column, Tier::Exact, text);
    query.push(" then 0 when ");
    push_match(&mut query, column, Tier::Prefix, text);
    query.push(format_args!(
        " then 1 else 2 end as tier, {size} as size from {table} where organization_id = "
    ));
    query.push_bind(organization).push(" and id in (select * from candidate) and ");
    push_match(&mut query, column, Tier::Anywhere, text);
    query.push(format_args!(" order by tier, size desc, id limit {limit}) select best.tier, {}", H::COLUMNS));
    query.push(format_args!(" from best {} order by best.tier, best.size desc, best.id", H::JOIN));
    query
}

/// Adds the condition of a tier.
fn push_match(query: &mut QueryBuilder<Postgres>, column: &str, tier: Tier, text: &str) {
    let (function, end) = match tier {
        Tier::Exact => {
            query.push(format_args!("{column} = ")).push_bind(text.to_owned());
            return;
        }
        Tier::Prefix => ("starts_with", ")"),
        Tier::Anywhere => ("strpos", ") > 0"),
    };
    query.push(format_args!("{function}({column}, ")).push_bind(text.to_owned()).push(end);
}

/// Fetches the best of the candidates, or of all creators.
pub(super) async fn fetch_creators(
    pg: &PgPool,
    organization: Uuid,
    candidates: Candidates,
    text: &str,
    limit: usize,
) -> Result<Vec<CreatorHit>, Error> {
    let statement = match &candidates {
        Some(ids) if ids.is_empty() => return Ok(Vec::new()),
        Some(_) => {
            "select id, name
             from creators
             where organization_id = $1 and id = any($2) and strpos(name_key, $3) > 0
             order by name_key = $3 desc, starts_with(name_key, $3) desc,
                 (select coalesce(sum(follower_count), 0) from accounts
                  where organization_id = $1 and creator_id = creators.id) desc, id
             limit $4"
        }
        None => {
            "select id, name
             from creators
             left join (
                 select creator_id, sum(follower_count) as followers from accounts
                 where organization_id = $1 and creator_id is not null group by creator_id
             ) total on total.creator_id = creators.id
             where organization_id = $1 and $2::uuid[] is null and strpos(name_key, $3) > 0
             order by name_key = $3 desc, starts_with(name_key, $3) desc, coalesce(followers, 0) desc, id
             limit $4"
        }
    };
    let query = sqlx::query_as(statement).bind(organization).bind(candidates).bind(text).bind(limit as i64);
    Ok(query.fetch_all(pg).await?)
}
