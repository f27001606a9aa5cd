//! Videos that match a filter, for rankings and figures: any of them, given ones, or by id.

use std::collections::HashSet;

use chrono::NaiveDate;
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::{ContentFilter, IDENTITY, IDENTITY_JOINS, LabelScope, build_list};
use crate::model::content::ContentIdentity;
use crate::model::unknown_counters::UnknownCounters;
use crate::store::Error;
use crate::store::records::videos;

/// Videos of a statement that selects from given ones.
const MAX_SELECTED_IDS: usize = 20_000;

/// The ids of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct VideoKey {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
}

/// A video that may be part of a ranking.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub internal_id: i64,
    pub rank: i64,
}

impl Candidate {
    pub const fn new(video: VideoKey, rank: i64) -> Self {
        Candidate { internal_id: video.internal_id, rank }
    }
}

/// What identifies a video, and which of its counters were never known.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct IdentifiedContent {
    #[sqlx(flatten)]
    pub identity: ContentIdentity,
    #[sqlx(flatten)]
    pub unknown_counters: UnknownCounters,
}

/// A video of a ranking.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct RankedContent {
    #[sqlx(flatten)]
    pub identity: ContentIdentity,
    #[sqlx(flatten)]
    pub unknown_counters: UnknownCounters,
    pub rank: i64,
    /// Whether the counters of its first snapshot are gains.
    pub from_zero: bool,
    /// UTC day of its own earliest observation.
    pub tracked_since: Option<NaiveDate>,
}

/// Reads what identifies videos of the organization and which of their counters are unknown, in no particular order.
pub async fn fetch_identified(
    pg: &PgPool,
    organization: Uuid,
    ids: &[Uuid],
) -> Result<Vec<IdentifiedContent>, Error> {
    let mut query = QueryBuilder::new("select ");
    query.push(videos::columns(&["counters", "unknown_counters"])).push(", ");
    query.push(IDENTITY.as_str()).push(IDENTITY_JOINS);
    query.push(" where v.organization_id = ").push_bind(organization).push(" and v.id = any(");
    query.push_bind(ids).push(")");
    Ok(query.build_query_as().fetch_all(pg).await?)
}

/// Lists up to `limit` videos that match a filter, in no particular order.
pub async fn list_matching(
    pg: &PgPool,
    organization: Uuid,
    filter: &ContentFilter,
    limit: i64,
) -> Result<Vec<VideoKey>, Error> {
    let mut query = QueryBuilder::new(
        "select v.id, v.internal_id, v.subject_id from videos v where v.organization_id = ",
    );
    query.push_bind(organization).push(" and ");
    build_list(organization, filter, LabelScope::Organization).push_search_conditions(&mut query);
    query.push(format_args!(" limit {limit}"));
    Ok(query.build_query_as().persistent(!filter.needs_custom_plan()).fetch_all(pg).await?)
}

/// Those of some videos that exist and match a filter.
pub async fn select_matching(
    pg: &PgPool,
    organization: Uuid,
    filter: &ContentFilter,
    ids: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let mut matching = HashSet::new();
    for chunk in ids.chunks(MAX_SELECTED_IDS) {
        // `offset 0` keeps the planner from other indexes, as for candidates of a ranking.
        let mut query = QueryBuilder::new("select v.id from unnest(");
        query.push_bind(chunk).push(
            "::uuid[]) as candidate (id) cross join lateral (
                 select * from videos where id = candidate.id offset 0
             ) v where v.organization_id = ",
        );
        query.push_bind(organization).push(" and ");
        build_list(organization, filter, LabelScope::Organization).push_conditions(&mut query);
        let found: Vec<Uuid> =
            query.build_query_scalar().persistent(!filter.needs_custom_plan()).fetch_all(pg).await?;
        matching.extend(found);
    }
    Ok(matching)
}

/// A video and its hashtags.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct TaggedVideo {
    pub internal_id: i64,
    pub subject_id: i64,
    pub hashtags: Vec<String>,
}

/// Lists up to `limit` videos that have hashtags and match a filter, in no particular order.
pub async fn list_tagged(
    pg: &PgPool,
    organization: Uuid,
    filter: &ContentFilter,
    limit: i64,
) -> Result<Vec<TaggedVideo>, Error> {
    let mut query = QueryBuilder::new(
        "select v.internal_id, v.subject_id, v.hashtags from videos v where v.hashtags <> '{}' and v.organization_id = ",
    );
    query.push_bind(organization).push(" and ");
    build_list(organization, filter, LabelScope::Organization).push_search_conditions(&mut query);
    query.push(format_args!(" limit {limit}"));
    Ok(query.build_query_as().persistent(!filter.needs_custom_plan()).fetch_all(pg).await?)
}

/// Lists up to `limit` videos that match a filter, by id, after an id.
pub async fn list_by_id(
    pg: &PgPool,
    organization: Uuid,
    filter: &ContentFilter,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<VideoKey>, Error> {
    let mut query = list_by_id_query(organization, filter, after, limit);
    Ok(query.build_query_as().persistent(!filter.needs_custom_plan()).fetch_all(pg).await?)
}

/// Builds the query of [`list_by_id`].
pub fn list_by_id_query(
    organization: Uuid,
    filter: &ContentFilter,
    after: Option<Uuid>,
    limit: i64,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "select v.id, v.internal_id, v.subject_id from videos v where v.organization_id = ",
    );
    query.push_bind(organization).push(" and ");
    build_list(organization, filter, LabelScope::Organization).push_conditions(&mut query);
    if let Some(after) = after {
        query.push(" and v.id > ").push_bind(after);
    }
    query.push(format_args!(" order by v.id limit {limit}"));
    query
}

/// Selects up to `limit` of the candidates that exist and match a filter, by rank and then id, after a rank and an id.
pub async fn select_candidates(
    pg: &PgPool,
    organization: Uuid,
    filter: &ContentFilter,
    candidates: &[Candidate],
    after: Option<(i64, Uuid)>,
    limit: i64,
) -> Result<Vec<RankedContent>, Error> {
    let mut query = candidates_query(organization, filter, candidates, after, limit);
    Ok(query.build_query_as().persistent(!filter.needs_custom_plan()).fetch_all(pg).await?)
}

/// Builds the query of [`select_candidates`].
pub fn candidates_query(
    organization: Uuid,
    filter: &ContentFilter,
    candidates: &[Candidate],
    after: Option<(i64, Uuid)>,
    limit: i64,
) -> QueryBuilder<Postgres> {
    let column = |value: fn(&Candidate) -> i64| candidates.iter().map(value).collect::<Vec<_>>();
    let mut query = QueryBuilder::new("with page as materialized (select v.id as page_id, rank from unnest(");
    query.push_bind(column(|candidate| candidate.internal_id)).push("::bigint[], ");
    query.push_bind(column(|candidate| candidate.rank));
    // `offset 0` keeps the planner from other indexes. While statistics do not know the new videos of an organization or a
    // subject, it would expect one of them, and read all for each candidate.
    query.push(
        "::bigint[]) as candidate (internal_id, rank)
         cross join lateral (
             select * from videos where internal_id = candidate.internal_id offset 0
         ) v where v.organization_id = ",
    );
    query.push_bind(organization).push(" and ");
    build_list(organization, filter, LabelScope::Organization).push_conditions(&mut query);
    if let Some((rank, id)) = after {
        query.push(" and (rank < ").push_bind(rank).push(" or rank = ").push_bind(rank);
        query.push(" and v.id > ").push_bind(id).push(")");
    }
    query.push(format_args!(" order by rank desc, v.id limit {limit}) select rank, v.tracked_since, "));
    query.push(videos::FROM_ZERO).push(", ").push(videos::columns(&["counters", "unknown_counters"]));
    query.push(", ").push(IDENTITY.as_str()).push(IDENTITY_JOINS);
    query.push(" join page on page_id = v.id order by rank desc, v.id");
    query
}
