//! Gains of many accounts, creators or videos over a window, by POST and by GET.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::input::{FromBody, WindowParams};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Body, Cached, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::account::AccountLabels;
use crate::model::gains::{AccountGains, Gains};
use crate::model::limits::MAX_BATCH_IDS;
use crate::store::analytics::subjects;
use crate::store::analytics::videos::{self, VideoGains, VideoRef};
use crate::store::analytics::{SubjectScope, VersionedHistory, accounts, creators};
use crate::store::postgres::RecordsQuery;

/// The window, and the ids that were not found.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct BatchMeta<Id> {
    #[serde(flatten)]
    window: WindowMeta,
    /// Requested ids that do not exist, in request order.
    not_found: Vec<Id>,
}

/// Totals by id.
type Totals<Id, T> = WithMeta<BTreeMap<Id, T>, BatchMeta<Id>>;

fn build_response<A, Id: Ord + Hash + Copy, T>(
    request: &WindowArgs<A>,
    ids: impl IntoIterator<Item = Id>,
    data: BTreeMap<Id, T>,
    data_as_of: Option<DateTime<Utc>>,
) -> Totals<Id, T> {
    let mut missing = HashSet::new();
    let not_found = ids.into_iter().filter(|id| !data.contains_key(id) && missing.insert(*id)).collect();
    WithMeta { data, meta: BatchMeta { window: request.meta(data_as_of), not_found } }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct AccountBatch {
    /// Account ids.
    #[serde(rename = "account_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    ids: Vec<Uuid>,
    #[serde(flatten)]
    window: WindowParams,
}

impl FromBody for AccountBatch {
    fn example() -> Value {
        json!({"account_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }
}

/// Query metrics of accounts
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryAccountMetrics")]
pub(super) async fn post_accounts(
    body: Body<AccountBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    respond_accounts(&analytics, body.0).await
}

/// Get metrics of accounts
///
/// Gains over the window. Takes up to 100 ids; `POST` takes up to 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getAccountMetrics")]
pub(super) async fn get_accounts(
    query: Query<AccountBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    respond_accounts(&analytics, query.0).await
}

async fn respond_accounts(
    analytics: &Analytics,
    batch: AccountBatch,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    let request = analytics.window(batch, |batch| batch.window)?;
    let ids = &request.args.ids;
    let query = accounts::find(analytics.organization, ids)
        .map(|found| found.into_iter().map(|account| (account.id, vec![account.internal_id])).collect());
    respond_sums(analytics, &request, ids, query).await
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct CreatorBatch {
    /// Creator ids.
    #[serde(rename = "creator_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    ids: Vec<Uuid>,
    #[serde(flatten)]
    window: WindowParams,
}

impl FromBody for CreatorBatch {
    fn example() -> Value {
        json!({"creator_ids": ["0198d1f2-7c4d-7b65-8e1f-4a3c9d2b8f76"], "period": "30d"})
    }
}

/// Query metrics of creators
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryCreatorMetrics")]
pub(super) async fn post_creators(
    body: Body<CreatorBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    respond_creators(&analytics, body.0).await
}

/// Get metrics of creators
///
/// Gains over the window, of the accounts that are linked now. Takes up to 100 ids; `POST` takes up to 1,000 and requires
/// the `write` scope.
#[endpoint(operation_id = "getCreatorMetrics")]
pub(super) async fn get_creators(
    query: Query<CreatorBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    respond_creators(&analytics, query.0).await
}

async fn respond_creators(
    analytics: &Analytics,
    batch: CreatorBatch,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    let request = analytics.window(batch, |batch| batch.window)?;
    let ids = &request.args.ids;
    let query = creators::find(analytics.organization, ids, &AccountLabels::default())
        .map(|found| found.into_iter().map(|creator| (creator.id, creator.subjects)).collect());
    respond_sums(analytics, &request, ids, query).await
}

/// The subjects of ids of accounts or creators.
type SubjectsById = Vec<(Uuid, Vec<i64>)>;

/// Sums the gains of accounts, which `query` returns as the subjects of each id that it finds.
async fn respond_sums<A: Serialize>(
    analytics: &Analytics,
    request: &WindowArgs<A>,
    ids: &[Uuid],
    query: RecordsQuery<SubjectsById>,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    let compute = async |found: SubjectsById, history: VersionedHistory| {
        let all_subjects: Vec<_> = found.iter().flat_map(|(_, subjects)| subjects.iter().copied()).collect();
        let totals = subjects::fetch_totals(&history, &all_subjects, request.window).await?;
        let latest = totals.values().map(|totals| totals.as_of).max();
        let scope = SubjectScope::from_subjects(all_subjects);
        let data_as_of = subjects::latest_observation_or(&history, &scope, request.window, latest).await?;
        let sum = |subjects: &[i64]| {
            let mut sum = AccountGains::default();
            let totals = subjects.iter().filter_map(|subject| totals.get(subject));
            totals.for_each(|totals| sum += totals.current);
            sum
        };
        let data = found.iter().map(|(id, subjects)| (*id, sum(subjects))).collect();
        Ok(build_response(request, ids.iter().copied(), data, data_as_of))
    };
    analytics.respond(request, RecordDependency::Accounts, query, compute).await
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct VideoBatch {
    /// Ids of account-discovered or individually tracked videos.
    #[serde(rename = "video_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    ids: Vec<Uuid>,
    #[serde(flatten)]
    window: WindowParams,
}

impl FromBody for VideoBatch {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }
}

/// Query metrics of videos
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryVideoMetrics")]
pub(super) async fn post_videos(
    body: Body<VideoBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, Gains>>> {
    respond_videos(&analytics, body.0).await
}

/// Get metrics of videos
///
/// Gains over the window, of account-discovered and individually tracked videos. Takes up to 100 ids; `POST` takes up to
/// 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getVideoMetrics")]
pub(super) async fn get_videos(
    query: Query<VideoBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<Uuid, Gains>>> {
    respond_videos(&analytics, query.0).await
}

async fn respond_videos(analytics: &Analytics, batch: VideoBatch) -> Result<Cached<Totals<Uuid, Gains>>> {
    let request = analytics.window(batch, |batch| batch.window)?;
    let ids = &request.args.ids;
    let compute = async |found: Vec<VideoRef>, history: VersionedHistory| {
        let gains = videos::fetch_totals(&history, &found, request.window).await?;
        let data = key_by(&found, &gains, |video| video.id);
        Ok(build_response(&request, ids.iter().copied(), data, gains.as_of))
    };
    let query = videos::find(analytics.organization, ids);
    analytics.respond(&request, RecordDependency::Videos, query, compute).await
}

/// Account-discovered videos by their internal ids.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-shared-limit" = ["instagram_post_ids", "tiktok_video_ids"]))]
struct AccountVideoBatch {
    /// Internal ids (`internal_id`) of account-discovered videos of this platform.
    #[serde(default, rename = "instagram_post_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    instagram: Vec<i64>,
    /// Internal ids (`internal_id`) of account-discovered videos of this platform.
    #[serde(default, rename = "tiktok_video_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    tiktok: Vec<i64>,
    #[serde(flatten)]
    window: WindowParams,
}

impl FromBody for AccountVideoBatch {
    fn example() -> Value {
        json!({"instagram_post_ids": [1201, 1202], "tiktok_video_ids": [1301], "period": "30d"})
    }
}

/// Query metrics of account videos
///
/// Like the `GET`, with up to 1,000 ids in both lists together. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryAccountVideoMetrics")]
pub(super) async fn post_account_videos(
    body: Body<AccountVideoBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<i64, Gains>>> {
    respond_account_videos(&analytics, body.0).await
}

/// Get metrics of account videos
///
/// Gains of account-discovered videos over the window. Send `instagram_post_ids`, `tiktok_video_ids` or both, with up to
/// 100 ids together; `POST` takes up to 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getAccountVideoMetrics")]
pub(super) async fn get_account_videos(
    query: Query<AccountVideoBatch>,
    analytics: Analytics,
) -> Result<Cached<Totals<i64, Gains>>> {
    respond_account_videos(&analytics, query.0).await
}

async fn respond_account_videos(
    analytics: &Analytics,
    batch: AccountVideoBatch,
) -> Result<Cached<Totals<i64, Gains>>> {
    let request = analytics.window(batch, |batch| batch.window)?;
    let AccountVideoBatch { instagram, tiktok, .. } = &request.args;
    let compute = async |found: Vec<VideoRef>, history: VersionedHistory| {
        let gains = videos::fetch_totals(&history, &found, request.window).await?;
        let data = key_by(&found, &gains, |video| video.internal_id);
        Ok(build_response(&request, instagram.iter().chain(tiktok).copied(), data, gains.as_of))
    };
    let query = videos::find_discovered(analytics.organization, instagram, tiktok);
    analytics.respond(&request, RecordDependency::Videos, query, compute).await
}

/// Keys gains by one of the videos' ids; a video that was not observed gained nothing.
fn key_by<Id: Ord>(
    videos: &[VideoRef],
    gains: &VideoGains<Gains>,
    id: impl Fn(&VideoRef) -> Id,
) -> BTreeMap<Id, Gains> {
    let gains = |video: &VideoRef| gains.get(video).copied().unwrap_or_default();
    videos.iter().map(|video| (id(video), gains(video))).collect()
}
