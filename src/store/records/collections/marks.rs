//! Marks: posts that are in a collection, or not, by hand.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::membership::{self, Membership};
use crate::model::collection::{CollectionMark, CollectionMarkType, Mark};
use crate::model::content::Content;
use crate::model::limits::MAX_MARKS;
use crate::model::readable::ReadablePlatforms;
use crate::model::video::{Video, VideoType};
use crate::store::postgres::keyset::{KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn};
use crate::store::records::videos::{self, VideoSort};
use crate::store::{Error, Write};

/// Why a post is listed with a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum MemberState {
    /// Included by hand.
    Included,
    /// Excluded by hand: not in the collection.
    Excluded,
    /// In the collection by its rule.
    Rule,
}

/// The result of a change of marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedMarks {
    /// How many of the ids have the state now.
    pub updated: usize,
    /// Ids that are not videos of the organization.
    pub not_found: Vec<Uuid>,
}

/// Reads the mark of a video. Fails if there is none.
pub async fn get(
    pg: &PgPool,
    organization: Uuid,
    collection: Uuid,
    video: Uuid,
) -> Result<CollectionMark, Error> {
    super::require(pg, organization, collection).await?;
    let state = find(pg, organization, collection, video).await?.ok_or(Error::NotFound("mark"))?;
    Ok(mark(collection, video, state))
}

const fn mark(collection_id: Uuid, video_id: Uuid, state: Mark) -> CollectionMark {
    CollectionMark { r#type: CollectionMarkType::CollectionMark, collection_id, video_id, state }
}

async fn find(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    collection: Uuid,
    video: Uuid,
) -> Result<Option<Mark>, Error> {
    Ok(sqlx::query_scalar(
        "select state from collection_marks where organization_id = $1 and collection_id = $2 and video_id = $3",
    )
    .bind(organization)
    .bind(collection)
    .bind(video)
    .fetch_optional(pg)
    .await?)
}

/// Marks a video. Returns the mark, and whether there was none. Fails if the collection or the video does not exist.
pub async fn put(
    write: &mut Write,
    collection: Uuid,
    video: Uuid,
    state: Mark,
) -> Result<(CollectionMark, bool), Error> {
    let (organization, mark) = (write.organization(), mark(collection, video, state));
    super::lock(write, collection).await?;
    let before = find(write.connection(), organization, collection, video).await?;
    if before != Some(state) && set(write, collection, &[video], state).await?.is_empty() {
        return Err(Error::NotFound("video"));
    }
    Ok((mark, before.is_none()))
}

/// Removes the mark of a video. Fails if there is none.
pub async fn delete(write: &mut Write, collection: Uuid, video: Uuid) -> Result<(), Error> {
    super::lock(write, collection).await?;
    match remove(write, collection, &[video]).await? {
        0 => Err(Error::NotFound("mark")),
        _ => Ok(()),
    }
}

/// Gives videos a mark, or removes those they have.
pub async fn update(
    write: &mut Write,
    collection: Uuid,
    videos: &[Uuid],
    state: Option<Mark>,
) -> Result<UpdatedMarks, Error> {
    super::lock(write, collection).await?;
    let known: Vec<Uuid> = sqlx::query_scalar(
        "select id from videos where organization_id = $1 and id = any($2) order by id for key share",
    )
    .bind(write.organization())
    .bind(videos)
    .fetch_all(write.connection())
    .await?;
    match state {
        Some(state) => drop(set(write, collection, &known, state).await?),
        None => drop(remove(write, collection, &known).await?),
    }
    let is_known: HashSet<_> = known.iter().collect();
    let not_found = videos.iter().filter(|id| !is_known.contains(id)).copied().collect();
    Ok(UpdatedMarks { updated: known.len(), not_found })
}

/// Marks those of the videos that exist, and returns them.
async fn set(write: &mut Write, collection: Uuid, videos: &[Uuid], state: Mark) -> Result<Vec<Uuid>, Error> {
    let marked: Vec<Uuid> = sqlx::query_scalar(
        "insert into collection_marks (organization_id, collection_id, video_id, state)
         select organization_id, $2, id, $4 from videos where organization_id = $1 and id = any($3) order by id
         on conflict (collection_id, video_id) do update set state = excluded.state
         returning video_id",
    )
    .bind(write.organization())
    .bind(collection)
    .bind(videos)
    .bind(state)
    .fetch_all(write.connection())
    .await?;
    let count: i64 = sqlx::query_scalar(
        "select count(*) from collection_marks where organization_id = $1 and collection_id = $2",
    )
    .bind(write.organization())
    .bind(collection)
    .fetch_one(write.connection())
    .await?;
    if count > MAX_MARKS {
        return Err(Error::Conflict(format!(
            "the collection would have more than {MAX_MARKS} marks: use its rule, or another collection"
        )));
    }
    write.record_collection_change(collection);
    Ok(marked)
}

async fn remove(write: &mut Write, collection: Uuid, videos: &[Uuid]) -> Result<u64, Error> {
    let removed = sqlx::query(
        "delete from collection_marks where organization_id = $1 and collection_id = $2 and video_id = any($3)",
    )
    .bind(write.organization())
    .bind(collection)
    .bind(videos)
    .execute(write.connection())
    .await?;
    write.record_collection_change(collection);
    Ok(removed.rows_affected())
}

/// Moves the marks of a video to the one that it is merged into, unless that has one of its own. The others are deleted with
/// the video.
pub(in crate::store) async fn merge(write: &mut Write, remaining: Uuid, merged: Uuid) -> Result<(), Error> {
    let collections: Vec<Uuid> = sqlx::query_scalar(
        "update collection_marks m set video_id = $2
         where m.organization_id = $1 and m.video_id = $3 and not exists (
             select from collection_marks o where o.collection_id = m.collection_id and o.video_id = $2
         )
         returning collection_id",
    )
    .bind(write.organization())
    .bind(remaining)
    .bind(merged)
    .fetch_all(write.connection())
    .await?;
    collections.into_iter().for_each(|collection| write.record_collection_change(collection));
    record_removal(write, &[merged]).await
}

/// Records that the marks of videos change, because these are deleted next. The videos have to be locked, so that they get no
/// more marks.
pub(in crate::store) async fn record_removal(write: &mut Write, videos: &[Uuid]) -> Result<(), Error> {
    if videos.is_empty() {
        return Ok(());
    }
    let collections: Vec<Uuid> = sqlx::query_scalar(
        "select distinct collection_id from collection_marks where organization_id = $1 and video_id = any($2)",
    )
    .bind(write.organization())
    .bind(videos)
    .fetch_all(write.connection())
    .await?;
    collections.into_iter().for_each(|collection| write.record_collection_change(collection));
    Ok(())
}

/// A video with its state in a collection.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CollectionVideo")]
pub struct MemberVideo {
    #[serde(flatten)]
    pub content: Content,
    /// Why the video is listed: it is included or excluded by hand, or in the collection by its rule.
    pub state: MemberState,
}

impl<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> for MemberVideo {
    fn from_row(row: &'r sqlx::postgres::PgRow) -> sqlx::Result<Self> {
        use sqlx::Row as _;
        Ok(MemberVideo { content: Video::from_row(row)?.into(), state: row.try_get("state")? })
    }
}

/// Sorts by time of posting, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberSort {
    #[serde(untagged)]
    As(VideoSort),
}

impl Sort for MemberSort {
    type Record = MemberVideo;

    fn column(self) -> SortColumn {
        let MemberSort::As(sort) = self;
        sort.column()
    }

    fn position(self, video: &MemberVideo) -> KeysetPosition {
        let MemberSort::As(sort) = self;
        sort.position(&video.content.video)
    }
}

/// Lists the videos of a collection, and those that are excluded by hand. Fails if the collection does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    readable: &ReadablePlatforms,
    collection: Uuid,
    state: Option<MemberState>,
    page: &PageRequest<MemberSort>,
) -> Result<ListPage<MemberVideo>, Error> {
    let membership = membership::get(pg, organization, collection).await?;
    let conditions = |query: &mut QueryBuilder<Postgres>| {
        query.push("v.organization_id = ").push_bind(organization).push(" and (");
        push_state(query, &membership, state);
        query.push(")");
    };
    let (id, text) = ("v.id", None);
    let list = List {
        table: "videos v",
        id,
        conditions,
        parents: None,
        sorted: None,
        text,
        tags: None,
        custom_plan: true,
    };
    let query = list.select_page(page, |query| {
        videos::push_select_with(query, VideoType::Content, readable, |query| {
            query.push(
                "coalesce((select state from collection_marks where video_id = v.id and collection_id = ",
            );
            query.push_bind(collection).push("), 'rule') as state, ");
        });
    });
    list.fetch_page(pg, page, query).await
}

fn push_state(query: &mut QueryBuilder<Postgres>, membership: &Membership, state: Option<MemberState>) {
    match state {
        None => {
            query.push("(");
            membership.push_condition(query);
            query.push(") or ");
            membership.push_marked(query, "in", "excluded");
        }
        Some(MemberState::Included) => membership.push_marked(query, "in", "included"),
        Some(MemberState::Excluded) => membership.push_marked(query, "in", "excluded"),
        Some(MemberState::Rule) => {
            membership.push_condition(query);
            query.push(" and ");
            membership.push_marked(query, "not in", "included");
        }
    }
}
