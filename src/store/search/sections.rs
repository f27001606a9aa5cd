//! The search result sections as Postgres knows them: of the candidates, those that still match, ranked.
//!
//! Best first means the whole text, then its beginning, then anywhere in it; among equals the bigger, then by id.
//! Which candidates there are is decided in [`super::ranking`]; values are always bound, sizes are written out, so that
//! a plan is made for them.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::candidates::{Named, Tier};
use super::ranking::Way;
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

/// A kind of hit whose records Postgres keeps in the order of their sizes.
pub(super) trait Ranked: for<'r> FromRow<'r, PgRow> {
    const ENTITY: Entity;
    /// Where the records are, what is searched in them, and their size.
    const TABLE: &'static str;
    const TEXT: &'static str;
    const SIZE: &'static str;
    /// The columns of a hit, of `best` and `accounts`, and how the latter is joined.
    const COLUMNS: &'static str;
    const ACCOUNT: &'static str;
}

impl Ranked for AccountHit {
    const ENTITY: Entity = Entity::Account;
    const TABLE: &'static str = "accounts";
    const TEXT: &'static str = "username";
    const SIZE: &'static str = "follower_count";
    const COLUMNS: &'static str =
        "accounts.id, accounts.platform, accounts.username, accounts.name as display_name";
    const ACCOUNT: &'static str = "join accounts on accounts.id = best.id";
}

impl Ranked for VideoHit {
    const ENTITY: Entity = Entity::Video;
    const TABLE: &'static str = "videos";
    const TEXT: &'static str = "description_key";
    const SIZE: &'static str = "view_count";
    const COLUMNS: &'static str =
        "videos.id, videos.platform, videos.description as caption, videos.account_id,
        accounts.username as account_username";
    const ACCOUNT: &'static str =
        "join videos on videos.id = best.id left join accounts on accounts.id = videos.account_id";
}

/// Makes the query for the best of the records that the ways lead to, each with the number of its `tier`.
pub(super) fn ranked<H: Ranked>(
    organization: Uuid,
    text: &str,
    ways: &[Way; 3],
    limit: usize,
) -> QueryBuilder<Postgres> {
    let (table, column, size) = (H::TABLE, H::TEXT, H::SIZE);
    let mut looked_up = Vec::new();
    let mut query = QueryBuilder::new("with candidate as (");
    for (way, tier) in ways.iter().zip([Tier::Exact, Tier::Prefix, Tier::Anywhere]) {
        match way {
            Way::Not => {}
            Way::LookedUp(ids) => looked_up.extend_from_slice(ids),
            Way::Met { named, reach } => {
                query.push(format_args!("(select id from {table} where organization_id = "));
                // Written so that the names become a table to look into, row by row in the order of the index.
                query.push_bind(organization).push(" and (id in (select unnest(").push_bind(named.clone());
                query
                    .push(format_args!("::uuid[]))) is true order by {size} desc, id limit {reach}) union "));
            }
            Way::Compared(rows) => {
                query.push(format_args!(
                    "(select id from (select id, {size}, {column} from {table} where organization_id = "
                ));
                query.push_bind(organization);
                query.push(format_args!(" order by {size} desc, id limit {rows}) beginning where "));
                match tier {
                    Tier::Exact => query.push(format_args!("{column} = ")).push_bind(text.to_owned()),
                    Tier::Prefix => query
                        .push(format_args!("starts_with({column}, "))
                        .push_bind(text.to_owned())
                        .push(")"),
                    Tier::Anywhere => {
                        query.push(format_args!("strpos({column}, ")).push_bind(text.to_owned()).push(") > 0")
                    }
                };
                query.push(format_args!(" order by {size} desc, id limit {limit}) union "));
            }
        }
    }
    looked_up.sort_unstable();
    looked_up.dedup();
    query.push("select unnest(").push_bind(looked_up).push("::uuid[])), best as (select id, case when ");
    query.push(column).push(" = ").push_bind(text.to_owned());
    query.push(format_args!(" then 0 when starts_with({column}, ")).push_bind(text.to_owned());
    query.push(format_args!(
        ") then 1 else 2 end as tier, {size} as size from {table} where organization_id = "
    ));
    query.push_bind(organization).push(" and id in (select * from candidate)");
    query.push(format_args!(" and strpos({column}, ")).push_bind(text.to_owned()).push(") > 0");
    query.push(format_args!(" order by tier, size desc, id limit {limit}) select best.tier, {}", H::COLUMNS));
    query.push(format_args!(" from best {} order by best.tier, best.size desc, best.id", H::ACCOUNT));
    query
}

/// Returns the best of the creators named, or of all.
pub(super) async fn creators(
    pg: &PgPool,
    organization: Uuid,
    named: Named,
    text: &str,
    limit: usize,
) -> Result<Vec<CreatorHit>, Error> {
    let statement = match &named {
        Some(named) if named.is_empty() => return Ok(Vec::new()),
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
    let query = sqlx::query_as(statement).bind(organization).bind(named).bind(text).bind(limit as i64);
    Ok(query.fetch_all(pg).await?)
}
