//! Gains of many accounts, creators or videos over a window, by POST and by GET.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::VIDEO_IDS;
use crate::http::input::{BatchRequest, BatchSource, WindowParams, Windowed};
use crate::http::output::WindowMeta;
use crate::http::{Body, Cached, Query, Records, Result, WindowedRequest, WithMeta};
use crate::model::gains::{AccountGains, Gains};
use crate::model::period::Window;
use crate::store::analytics::subjects;
use crate::store::analytics::videos::{self, VideoGains, VideoRef};
use crate::store::analytics::{SubjectScope, accounts, creators};
use crate::store::postgres::RecordsQuery;

const INTERNAL_IDS: &str = "Internal ids (`internal_id`) of account-discovered videos of this platform.";

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
    request: &WindowedRequest<A>,
    ids: impl IntoIterator<Item = Id>,
    data: BTreeMap<Id, T>,
    data_as_of: Option<DateTime<Utc>>,
) -> Totals<Id, T> {
    let mut missing = HashSet::new();
    let not_found = ids.into_iter().filter(|id| !data.contains_key(id) && missing.insert(*id)).collect();
    WithMeta { data, meta: BatchMeta { window: request.meta(data_as_of), not_found } }
}

#[derive(Serialize)]
struct AccountBatch {
    ids: Vec<Uuid>,
    window: WindowParams,
}

impl BatchRequest for AccountBatch {
    fn example() -> Value {
        json!({"account_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }

    fn read(source: &mut BatchSource<'_, '_>) -> Self {
        let ids = source.describe("Account ids.").required_ids("account_ids");
        AccountBatch { ids, window: source.window() }
    }
}

impl Windowed for AccountBatch {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.window.resolve(now)
    }
}

/// Query metrics of accounts
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryAccountMetrics")]
pub(super) async fn post_accounts(
    request: WindowedRequest<Body<AccountBatch>>,
) -> Result<Totals<Uuid, AccountGains>> {
    let found = find_accounts(&request, &request.args.0.ids).fetch(&request.pg).await?;
    sum_accounts(&request, &request.args.0.ids, found).await
}

/// Get metrics of accounts
///
/// Gains over the window. Takes up to 100 ids; `POST` takes up to 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getAccountMetrics")]
pub(super) async fn get_accounts(
    request: WindowedRequest<Query<AccountBatch>>,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    let Query(AccountBatch { ids, .. }) = &request.args;
    let compute = async |found| sum_accounts(&request, ids, found).await;
    request.cached(Records::Accounts, find_accounts(&request, ids), compute).await
}

/// The subjects of ids of accounts or creators.
type SubjectsById = Vec<(Uuid, Vec<i64>)>;

fn find_accounts<A>(request: &WindowedRequest<A>, ids: &[Uuid]) -> RecordsQuery<SubjectsById> {
    accounts::find(request.organization, ids)
        .map(|found| found.into_iter().map(|account| (account.id, vec![account.internal_id])).collect())
}

#[derive(Serialize)]
struct CreatorBatch {
    ids: Vec<Uuid>,
    window: WindowParams,
}

impl BatchRequest for CreatorBatch {
    fn example() -> Value {
        json!({"creator_ids": ["0198d1f2-7c4d-7b65-8e1f-4a3c9d2b8f76"], "period": "30d"})
    }

    fn read(source: &mut BatchSource<'_, '_>) -> Self {
        let ids = source.describe("Creator ids.").required_ids("creator_ids");
        CreatorBatch { ids, window: source.window() }
    }
}

impl Windowed for CreatorBatch {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.window.resolve(now)
    }
}

/// Query metrics of creators
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryCreatorMetrics")]
pub(super) async fn post_creators(
    request: WindowedRequest<Body<CreatorBatch>>,
) -> Result<Totals<Uuid, AccountGains>> {
    let found = find_creators(&request, &request.args.0.ids).fetch(&request.pg).await?;
    sum_accounts(&request, &request.args.0.ids, found).await
}

/// Get metrics of creators
///
/// Gains over the window, of the accounts that are linked now. Takes up to 100 ids; `POST` takes up to 1,000 and requires
/// the `write` scope.
#[endpoint(operation_id = "getCreatorMetrics")]
pub(super) async fn get_creators(
    request: WindowedRequest<Query<CreatorBatch>>,
) -> Result<Cached<Totals<Uuid, AccountGains>>> {
    let Query(CreatorBatch { ids, .. }) = &request.args;
    let compute = async |found| sum_accounts(&request, ids, found).await;
    request.cached(Records::Accounts, find_creators(&request, ids), compute).await
}

fn find_creators<A>(request: &WindowedRequest<A>, ids: &[Uuid]) -> RecordsQuery<SubjectsById> {
    creators::find(request.organization, ids)
        .map(|found| found.into_iter().map(|creator| (creator.id, creator.subjects)).collect())
}

/// Sums the gains of accounts, which are given as the subjects of each id that was found.
async fn sum_accounts<A>(
    request: &WindowedRequest<A>,
    ids: &[Uuid],
    found: SubjectsById,
) -> Result<Totals<Uuid, AccountGains>> {
    let WindowedRequest { history, organization, window, .. } = request;
    let subjects: Vec<_> = found.iter().flat_map(|(_, subjects)| subjects.iter().copied()).collect();
    let totals = subjects::fetch_totals(history, *organization, &subjects, *window).await?;
    let latest = totals.iter().map(|totals| totals.as_of).max();
    let scope = SubjectScope::for_subjects(*organization, subjects);
    let data_as_of = subjects::resolve_as_of(history, &scope, *window, latest).await?;
    let totals: HashMap<_, _> = totals.iter().map(|totals| (totals.subject_id, totals)).collect();
    let sum = |subjects: &[i64]| {
        let mut sum = AccountGains::default();
        let totals = subjects.iter().filter_map(|subject| totals.get(subject));
        totals.for_each(|totals| sum += totals.gains);
        sum
    };
    let data = found.iter().map(|(id, subjects)| (*id, sum(subjects))).collect();
    Ok(build_response(request, ids.iter().copied(), data, data_as_of))
}

#[derive(Serialize)]
struct VideoBatch {
    ids: Vec<Uuid>,
    window: WindowParams,
}

impl BatchRequest for VideoBatch {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }

    fn read(source: &mut BatchSource<'_, '_>) -> Self {
        let ids = source.describe(VIDEO_IDS).required_ids("video_ids");
        VideoBatch { ids, window: source.window() }
    }
}

impl Windowed for VideoBatch {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.window.resolve(now)
    }
}

/// Query metrics of videos
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryVideoMetrics")]
pub(super) async fn post_videos(request: WindowedRequest<Body<VideoBatch>>) -> Result<Totals<Uuid, Gains>> {
    let found = videos::find(request.organization, &request.args.0.ids).fetch(&request.pg).await?;
    fetch_video_totals(&request, &request.args.0.ids, &found).await
}

/// Get metrics of videos
///
/// Gains over the window, of account-discovered and individually tracked videos. Takes up to 100 ids; `POST` takes up to
/// 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getVideoMetrics")]
pub(super) async fn get_videos(
    request: WindowedRequest<Query<VideoBatch>>,
) -> Result<Cached<Totals<Uuid, Gains>>> {
    let Query(VideoBatch { ids, .. }) = &request.args;
    let compute = async |found: Vec<VideoRef>| fetch_video_totals(&request, ids, &found).await;
    request.cached(Records::Videos, videos::find(request.organization, ids), compute).await
}

async fn fetch_video_totals<A>(
    request: &WindowedRequest<A>,
    ids: &[Uuid],
    found: &[VideoRef],
) -> Result<Totals<Uuid, Gains>> {
    let WindowedRequest { history, organization, window, .. } = request;
    let gains = videos::fetch_totals(history, *organization, found, *window).await?;
    Ok(build_response(request, ids.iter().copied(), key_by(found, &gains, |video| video.id), gains.as_of))
}

/// Account-discovered videos by their internal ids.
#[derive(Serialize)]
struct AccountVideoBatch {
    instagram: Vec<i64>,
    tiktok: Vec<i64>,
    window: WindowParams,
}

impl BatchRequest for AccountVideoBatch {
    fn example() -> Value {
        json!({"instagram_post_ids": [1201, 1202], "tiktok_video_ids": [1301], "period": "30d"})
    }

    fn read(source: &mut BatchSource<'_, '_>) -> Self {
        let lists @ [instagram, tiktok] = ["instagram_post_ids", "tiktok_video_ids"];
        source.require_either(lists);
        let ids = AccountVideoBatch {
            instagram: source.describe(INTERNAL_IDS).ids(instagram).unwrap_or_default(),
            tiktok: source.describe(INTERNAL_IDS).ids(tiktok).unwrap_or_default(),
            window: source.window(),
        };
        let max_ids = source.max_ids();
        if ids.instagram.len() + ids.tiktok.len() > max_ids {
            source.add_violation(tiktok, format!("both lists together must have at most {max_ids} ids"));
        }
        ids
    }
}

impl Windowed for AccountVideoBatch {
    fn window(&self, now: DateTime<Utc>) -> Result<Window> {
        self.window.resolve(now)
    }
}

/// Query metrics of account videos
///
/// Like the `GET`, with up to 1,000 ids in both lists together. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryAccountVideoMetrics")]
pub(super) async fn post_account_videos(
    request: WindowedRequest<Body<AccountVideoBatch>>,
) -> Result<Totals<i64, Gains>> {
    let AccountVideoBatch { instagram, tiktok, .. } = &request.args.0;
    let found = videos::find_discovered(request.organization, instagram, tiktok).fetch(&request.pg).await?;
    fetch_account_video_totals(&request, &request.args.0, &found).await
}

/// Get metrics of account videos
///
/// Gains of account-discovered videos over the window. Send `instagram_post_ids`, `tiktok_video_ids` or both, with up to
/// 100 ids together; `POST` takes up to 1,000 and requires the `write` scope.
#[endpoint(operation_id = "getAccountVideoMetrics")]
pub(super) async fn get_account_videos(
    request: WindowedRequest<Query<AccountVideoBatch>>,
) -> Result<Cached<Totals<i64, Gains>>> {
    let Query(batch) = &request.args;
    let compute = async |found: Vec<VideoRef>| fetch_account_video_totals(&request, batch, &found).await;
    let query = videos::find_discovered(request.organization, &batch.instagram, &batch.tiktok);
    request.cached(Records::Videos, query, compute).await
}

async fn fetch_account_video_totals<A>(
    request: &WindowedRequest<A>,
    AccountVideoBatch { instagram, tiktok, .. }: &AccountVideoBatch,
    found: &[VideoRef],
) -> Result<Totals<i64, Gains>> {
    let WindowedRequest { history, organization, window, .. } = request;
    let gains = videos::fetch_totals(history, *organization, found, *window).await?;
    let ids = instagram.iter().chain(tiktok).copied();
    Ok(build_response(request, ids, key_by(found, &gains, |video| video.internal_id), gains.as_of))
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
