//! Hashtags of captions, in the column `videos.hashtags`: the condition of filters, and the hashtags of rows without.

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::hashtag;
use crate::store::Error;
use crate::store::postgres::keyset::TagFilter;

/// Limits a list of videos `v` to those that have any of some hashtags.
pub(super) fn filter(organization: Uuid, tags: Vec<String>) -> TagFilter {
    TagFilter { column: "v.hashtags", organization, tags, push_indexed: push_condition }
}

/// Pushes the condition that a video `v` has any of some hashtags.
///
/// The index finds numbers of hashtags, which are compared again. `coalesce` keeps the planner from taking that for a second
/// condition that is as selective.
pub(super) fn push_condition(query: &mut QueryBuilder<Postgres>, organization: Uuid, tags: &[String]) {
    query.push("v.hashtags <> '{}' and hashtag_keys(v.organization_id, v.hashtags) && hashtag_keys(");
    query.push_bind(organization).push(", ").push_bind(tags).push(") and coalesce(v.hashtags && ");
    query.push_bind(tags).push(", false)");
}

#[derive(FromRow)]
struct Caption {
    id: Uuid,
    description: Option<String>,
}

#[derive(Serialize)]
struct Hashtags<'a> {
    id: Uuid,
    description: Option<&'a str>,
    hashtags: Vec<String>,
}

/// Fills the hashtags of up to `limit` rows, and returns how many. Leaves rows whose caption changes meanwhile: that change
/// writes their hashtags, or the next pass does.
pub async fn fill_missing(pg: &PgPool, limit: i64) -> Result<u64, Error> {
    let captions: Vec<Caption> =
        sqlx::query_as("select id, description from videos where hashtags is null order by id limit $1")
            .bind(limit)
            .fetch_all(pg)
            .await?;
    let rows: Vec<_> = captions
        .iter()
        .map(|Caption { id, description }| Hashtags {
            id: *id,
            description: description.as_deref(),
            hashtags: description.as_deref().map(hashtag::hashtags).unwrap_or_default(),
        })
        .collect();
    let filled = sqlx::query(
        "update videos v set hashtags = x.hashtags
         from jsonb_to_recordset($1) as x(id uuid, description text, hashtags text[])
         where v.id = x.id and v.hashtags is null and v.description is not distinct from x.description",
    )
    .bind(Json(rows))
    .execute(pg)
    .await?;
    Ok(filled.rows_affected())
}
