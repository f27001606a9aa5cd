//! Posts of a collection, and those that are put into it or kept out of it by hand.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::CollectionPath;
use crate::app::App;
use crate::http::input::{FromBody, ListQuery, ListSort};
use crate::http::{
    Args, Body, Caller, Collection, Data, FoundOrCreated, NoContent, Path, Result, WithMeta, in_transaction,
};
use crate::model::collection::{CollectionMark, Mark, deserialize_some};
use crate::model::limits::MAX_WRITE_BATCH;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::collections::marks::{self, MemberSort, MemberState, MemberVideo, UpdatedMarks};
use crate::store::records::videos::VideoSort;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct MarkPath {
    /// Collection id.
    collection_id: Uuid,
    /// Video id.
    video_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct MembersFilter {
    /// Filter by state: included or excluded by hand, or in the collection by its rule.
    state: Option<MemberState>,
}

impl ListSort for MemberSort {
    const DEFAULT: (Self, SortDirection) = (MemberSort::As(VideoSort::CreateTime), SortDirection::Desc);
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MarkBody {
    /// `included`: always in the collection; `excluded`: never.
    state: Mark,
}

impl FromBody for MarkBody {
    fn example() -> Value {
        json!({"state": "included"})
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MarksBody {
    /// Video ids.
    #[schemars(length(min = 1, max = MAX_WRITE_BATCH))]
    video_ids: Vec<Uuid>,
    /// `included`: always in the collection; `excluded`: never; null: as the rule says.
    #[serde(deserialize_with = "deserialize_some")]
    #[schemars(with = "Mark", extend("x-nullable" = true))]
    state: Option<Option<Mark>>,
}

impl FromBody for MarksBody {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "state": "excluded"})
    }
}

/// The effect of a change of many marks.
#[derive(Serialize, JsonSchema)]
pub(super) struct MarksUpdate {
    /// Number of the videos that have the state now.
    #[schemars(example = 1)]
    updated: usize,
}

/// Ids without a video.
#[derive(Serialize, JsonSchema)]
pub(super) struct MarksMeta {
    /// Ids that are not videos of the organization.
    not_found: Vec<Uuid>,
}

/// List a collection's videos
///
/// Those in the collection, and those that are excluded by hand; `state` tells which. By default, the newest comes first.
#[endpoint(operation_id = "listCollectionVideos")]
pub(super) async fn list(
    app: App,
    caller: Caller,
    args: Args<(Path<CollectionPath>, ListQuery<MembersFilter, MemberSort>)>,
) -> Result<Collection<MemberVideo>> {
    let Args((Path(CollectionPath { collection_id }), ListQuery { filter, params })) = args;
    let found =
        marks::list(&app.pg, caller.organization, &app.readable, collection_id, filter.state, &params.page)
            .await?;
    params.into_response(found)
}

/// Get a mark
///
/// 404 if the video is not marked in this collection.
#[endpoint(operation_id = "getCollectionMark")]
pub(super) async fn get(app: App, caller: Caller, path: Path<MarkPath>) -> Result<Data<CollectionMark>> {
    let MarkPath { collection_id, video_id } = path.0;
    let data = marks::get(&app.pg, caller.organization, collection_id, video_id).await?;
    Ok(Data { data })
}

/// Mark a video
///
/// An included video is in the collection, an excluded one is not, whatever the rule says.
#[endpoint(
    operation_id = "markCollectionVideo",
    responses((status_code = 409, description = "The collection has 50,000 marks."))
)]
pub(super) async fn put(
    app: App,
    caller: Caller,
    args: Args<(Path<MarkPath>, Body<MarkBody>)>,
) -> Result<FoundOrCreated<CollectionMark>> {
    let Args((Path(MarkPath { collection_id, video_id }), Body(MarkBody { state }))) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let (mark, is_new) = marks::put(&mut write, collection_id, video_id, state).await?;
        write.commit().await?;
        if !is_new {
            return FoundOrCreated::found(&mark);
        }
        FoundOrCreated::created(format!("/v2/collections/{collection_id}/videos/{video_id}"), &mark)
    })
    .await
}

/// Remove a mark
///
/// The rule decides again whether the video is in the collection.
#[endpoint(operation_id = "unmarkCollectionVideo")]
pub(super) async fn delete(app: App, caller: Caller, path: Path<MarkPath>) -> Result<NoContent> {
    let MarkPath { collection_id, video_id } = path.0;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        marks::delete(&mut write, collection_id, video_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}

/// Mark many videos
///
/// All at once or, if the collection would have more than 50,000 marks, none. A repeated request has the same effect.
#[endpoint(
    operation_id = "markCollectionVideos",
    responses((status_code = 409, description = "The collection would have more than 50,000 marks."))
)]
pub(super) async fn post(
    app: App,
    caller: Caller,
    args: Args<(Path<CollectionPath>, Body<MarksBody>)>,
) -> Result<WithMeta<MarksUpdate, MarksMeta>> {
    let Args((Path(CollectionPath { collection_id }), Body(MarksBody { video_ids, state }))) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let UpdatedMarks { updated, not_found } =
            marks::update(&mut write, collection_id, &video_ids, state.flatten()).await?;
        write.commit().await?;
        Ok(WithMeta { data: MarksUpdate { updated }, meta: MarksMeta { not_found } })
    })
    .await
}
