//! The sections of search results, fetched from Postgres: candidates that match by their current text, ranked.
//!
//! Exact matches first, then prefixes, then matches anywhere; equal ones by size, then by id. Numbers of rows are literals, so
//! that Postgres plans for them. The organization and the text are hidden from the planner: planning for them again in every
//! search takes longer than most searches.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use super::strategy::{Candidates, Strategy, Tier};
use crate::model::creator::AccountsSummary;
use crate::model::picture::PictureUrl;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::pictures::picture_url;
use crate::store::records::{creators, videos};
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
    /// Profile picture: a stable copy if there is one, otherwise the platform's URL.
    #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
    #[schemars(with = "Option<String>")]
    pub profile_pic_url: Option<PictureUrl>,
    /// Followers at the latest scrape.
    #[schemars(example = 48_210)]
    pub follower_count: i64,
    /// Name of the creator; null if it has none.
    #[schemars(example = &"Marta Soares")]
    pub creator_name: Option<String>,
}

/// A creator whose name matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct CreatorHit {
    /// Creator id.
    pub id: Uuid,
    /// Name of the creator.
    #[schemars(example = &"Marta Soares")]
    pub name: String,
    /// Linked accounts.
    #[sqlx(flatten)]
    pub accounts_summary: AccountsSummary,
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
    /// Name of that account's creator.
    #[schemars(example = &"Marta Soares")]
    pub creator_name: Option<String>,
    /// Cover image: a stable copy if there is one, otherwise the platform's URL.
    #[schemars(example = &"https://cdn.example/covers/7301.jpg")]
    #[schemars(with = "Option<String>")]
    pub cover_image_url: Option<PictureUrl>,
    /// Views at the latest scrape.
    #[schemars(example = 15_300)]
    pub view_count: i64,
    /// Time at which it was posted; null if unknown.
    pub create_time: Option<DateTime<Utc>>,
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

    /// Adds the condition that the text of a record `v` contains a text, for comparing all records of the organization.
    fn push_contains(query: &mut QueryBuilder<Postgres>, organization: Uuid, text: &str);
}

impl RankedHit for AccountHit {
    const ENTITY: Entity = Entity::Account;
    const TABLE: &'static str = "accounts";
    const TEXT_COLUMN: &'static str = "username";
    const SIZE_COLUMN: &'static str = "follower_count";
    const COLUMNS: &'static str = concat!(
        "accounts.id, accounts.platform, accounts.username, accounts.name as display_name,
        accounts.follower_count, creators.name as creator_name, ",
        picture_url!("accounts", "profile_pic_url"),
    );
    const JOIN: &'static str =
        "join accounts on accounts.id = best.id left join creators on creators.id = accounts.creator_id";

    fn push_contains(query: &mut QueryBuilder<Postgres>, _organization: Uuid, _text: &str) {
        query.push(" and ").push(condition("v.username", Tier::Anywhere));
    }
}

impl RankedHit for VideoHit {
    const ENTITY: Entity = Entity::Video;
    const TABLE: &'static str = "videos";
    const TEXT_COLUMN: &'static str = "description_key";
    const SIZE_COLUMN: &'static str = "view_count";
    const COLUMNS: &'static str = concat!(
        "videos.id, videos.platform, videos.description as caption, videos.account_id,
        accounts.username as account_username, creators.name as creator_name, videos.view_count,
        videos.create_time, ",
        picture_url!("videos", "cover_image_url"),
    );
    const JOIN: &'static str =
        "join videos on videos.id = best.id left join accounts on accounts.id = videos.account_id
        left join creators on creators.id = accounts.creator_id";

    fn push_contains(query: &mut QueryBuilder<Postgres>, organization: Uuid, text: &str) {
        videos::caption_blocks(organization).push_condition(query, text);
    }
}

/// The organization and the text of a query that starts with [`push_input`].
const ORGANIZATION: &str = "(select organization from input)";
const TEXT: &str = "(select text from input)";

/// Pushes the beginning of a query. The planner does not see values in a materialized common table expression, so that Postgres
/// soon keeps one plan for all values.
fn push_input(query: &mut QueryBuilder<Postgres>, organization: Uuid, text: &str) {
    query.push("with input as materialized (select ").push_bind(organization).push(" as organization, ");
    query.push_bind(text.to_owned()).push(" as text), ");
}

/// The query for the best records that the strategies find, each with its `tier`, and with the tiers that it cannot be certain of
/// in `uncertain_tiers`. A strategy finds the best of its tier and better ones. Candidates that match less well are left out:
/// others that do are unknown.
pub(super) fn ranked_query<H: RankedHit>(
    organization: Uuid,
    text: &str,
    strategies: &[Strategy; 3],
    limit: usize,
) -> QueryBuilder<Postgres> {
    let (table, column, size) = (H::TABLE, H::TEXT_COLUMN, H::SIZE_COLUMN);
    let mut query = QueryBuilder::default();
    push_input(&mut query, organization, text);
    let scans: Vec<_> = Scan::of(strategies, limit).collect();
    for scan in &scans {
        scan.push::<H>(&mut query);
    }
    query.push("candidate as (");
    push_candidates::<H>(&mut query, organization, text, strategies);
    let [is_exact, is_prefix, is_match] = Tier::ALL.map(|tier| condition(column, tier));
    let uncertain: String = scans.iter().map(Scan::uncertain_tier::<H>).collect();
    query.push(format_args!(
        "), matching as (
             select id, candidate.tier as found_tier,
                 case when {is_exact} then 0 when {is_prefix} then 1 else 2 end as tier, {size} as size
             from (select id, max(tier) as tier from candidate group by id) candidate join {table} using (id)
             where organization_id = {ORGANIZATION} and {is_match}"
    ));
    query.push(format_args!(
        "), best as (
             select id, tier, size from matching where tier <= found_tier order by tier, size desc, id limit {limit}
         ) select best.tier, array(select null::int where false{uncertain}) as uncertain_tiers, {}
         from best {} order by best.tier, best.size desc, best.id",
        H::COLUMNS,
        H::JOIN
    ));
    query
}

/// Pushes the select of the candidates of each strategy with its tier.
fn push_candidates<H: RankedHit>(
    query: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    text: &str,
    strategies: &[Strategy; 3],
) {
    query.push("select null::uuid as id, 0 as tier where false");
    if strategies.iter().any(|strategy| matches!(strategy, Strategy::CompareAll)) {
        let anywhere = Tier::Anywhere as i32;
        query.push(format_args!(
            " union all select v.id, {anywhere} from {} v where v.organization_id = {ORGANIZATION}",
            H::TABLE
        ));
        H::push_contains(query, organization, text);
    }
    for (strategy, tier) in strategies.iter().zip(Tier::ALL) {
        let number = tier as i32;
        match strategy {
            Strategy::Skip | Strategy::CompareAll => {}
            Strategy::LookUp(ids) => {
                query.push(" union all select unnest(").push_bind(ids.clone());
                query.push(format_args!("::uuid[]), {number}"));
            }
            Strategy::Scan { .. } => {
                query.push(format_args!(
                    " union all select id, {number} from first_{number}
                     union all select id, {number} from earlier_{number}"
                ));
            }
        }
    }
}

/// Reads the largest records of an organization in the index by size, until `limit` of them match. The index, read backwards, has
/// the last ids of a size first, so records of the size of the last match that come before it are read, too: at most `rows`.
struct Scan<'a> {
    tier: Tier,
    candidates: Option<&'a [Uuid]>,
    rows: usize,
    limit: usize,
}

impl Scan<'_> {
    fn of(strategies: &[Strategy; 3], limit: usize) -> impl Iterator<Item = Scan<'_>> {
        strategies.iter().zip(Tier::ALL).filter_map(move |(strategy, tier)| match strategy {
            Strategy::Scan { candidates, rows } => {
                Some(Scan { tier, candidates: candidates.as_deref(), rows: *rows, limit })
            }
            _ => None,
        })
    }

    /// Pushes the common table expressions of what it finds.
    fn push<H: RankedHit>(&self, query: &mut QueryBuilder<Postgres>) {
        let (size, tier) = (H::SIZE_COLUMN, self.tier as i32);
        if let Some(candidates) = self.candidates {
            query
                .push(format_args!("listed_{tier} as materialized (select "))
                .push_bind(candidates.to_owned());
            query.push("::uuid[] as ids), ");
        }
        let first = self.matches::<H>("", &format!("{size} desc, id desc"));
        let earlier = self.matches::<H>(&self.range_before_last::<H>(), "id");
        query.push(format_args!(
            "first_{tier} as materialized ({first}),
             last_{tier} as (select {size}, id from first_{tier} order by {size}, id limit 1),
             earlier_{tier} as materialized ({earlier}), "
        ));
    }

    /// The condition of records of the size of the last match that come before it.
    fn range_before_last<H: RankedHit>(&self) -> String {
        let (size, tier) = (H::SIZE_COLUMN, self.tier as i32);
        format!(" and {size} = (select {size} from last_{tier}) and id < (select id from last_{tier})")
    }

    /// The select of the tier if better matches may be hidden between the ends of the size of the last match: more records than
    /// `rows` come before that match, and those that are read hold fewer than `limit` with the larger ones.
    fn uncertain_tier<H: RankedHit>(&self) -> String {
        let (table, size, tier) = (H::TABLE, H::SIZE_COLUMN, self.tier as i32);
        let (rows, limit) = (self.rows, self.limit);
        let range = self.range_before_last::<H>();
        format!(
            " union all select {tier} where
             (select count(*) from first_{tier} where {size} > (select {size} from last_{tier}))
                 + (select count(*) from earlier_{tier}) < {limit}
             and exists (select from {table} where organization_id = {ORGANIZATION}{range} order by id offset {rows})"
        )
    }

    /// The select of matches in an order of the index. Texts are compared while the scan runs, which ends with the last match
    /// that is needed.
    fn matches<H: RankedHit>(&self, range: &str, order: &str) -> String {
        let (table, column, size) = (H::TABLE, H::TEXT_COLUMN, H::SIZE_COLUMN);
        let (rows, limit, tier) = (self.rows, self.limit, self.tier as i32);
        let scanned = format!(
            "from {table} where organization_id = {ORGANIZATION}{range} order by {order} limit {rows}"
        );
        if self.candidates.is_some() {
            // The index has all that is read of other records. `offset 0` and `is true` keep the planner from joining in
            // another order: each row of the scan is looked up in a hash table.
            let is_match = condition(&format!("v.{column}"), self.tier);
            format!(
                "select id, {size} from (select id, {size} {scanned}) scanned
                 cross join lateral (select from {table} v where v.id = scanned.id and {is_match} offset 0) matching
                 where (id in (select unnest(ids) from listed_{tier})) is true order by {order} limit {limit}"
            )
        } else {
            let is_match = condition(column, self.tier);
            format!(
                "select id, {size} from (select id, {size}, {column} {scanned}) scanned
                 where {is_match} order by {order} limit {limit}"
            )
        }
    }
}

/// The condition of a tier.
fn condition(column: &str, tier: Tier) -> String {
    match tier {
        Tier::Exact => format!("{column} = {TEXT}"),
        Tier::Prefix => format!("starts_with({column}, {TEXT})"),
        Tier::Anywhere => format!("strpos({column}, {TEXT}) > 0"),
    }
}

/// Fetches the best of the candidates, or of all creators.
pub(super) async fn fetch_creators(
    connection: &mut PgConnection,
    organization: Uuid,
    candidates: Candidates,
    text: &str,
    limit: usize,
) -> Result<Vec<CreatorHit>, Error> {
    if candidates.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let name = creators::SEARCH_KEY;
    let [is_exact, is_prefix, is_match] = Tier::ALL.map(|tier| condition(name, tier));
    let mut query = QueryBuilder::default();
    push_input(&mut query, organization, text);
    query.push(format_args!("page as (select id, {is_exact} as is_exact, {is_prefix} as is_prefix, "));
    match candidates {
        Some(ids) => query
            .push(
                "(select coalesce(sum(follower_count), 0) from accounts
                  where organization_id = creators.organization_id and creator_id = creators.id) as followers
                 from creators where id = any(",
            )
            .push_bind(ids)
            .push(")"),
        None => query.push(format_args!(
            "coalesce(total.followers, 0) as followers from creators left join (
                 select creator_id, sum(follower_count) as followers from accounts
                 where creator_id is not null and organization_id = {ORGANIZATION} group by creator_id
             ) total on total.creator_id = creators.id where true"
        )),
    };
    query.push(format_args!(
        " and organization_id = {ORGANIZATION} and {is_match}
         order by is_exact desc, is_prefix desc, followers desc, id limit {limit}) "
    ));
    query.push(creators::SELECT);
    query.push(" order by page.is_exact desc, page.is_prefix desc, page.followers desc, page.id");
    Ok(query.build_query_as().fetch_all(connection).await?)
}
