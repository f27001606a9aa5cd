//! Windowed totals of many accounts or videos at once, keyed by the ids that were asked for. A POST asks by its body,
//! a GET by its query, and both are answered by one function.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use chrono::{DateTime, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::VIDEO_IDS;
use crate::app::App;
use crate::http::input::batch::{Batch, BatchSource};
use crate::http::input::window::{WindowMeta, WindowParams};
use crate::http::route::read;
use crate::http::{Body, Caller, Kept, Problem, Query, WithMeta, kept};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::analytics::subjects::{self, GainColumns};
use crate::store::analytics::videos::{self, VideoRef};
use crate::store::analytics::{SubjectScope, accounts};
use crate::store::outbox::data_version::CacheDependencies;

const INTERNAL_IDS: &str = "Internal ids of videos that were found on accounts, as `internal_id` tells them.";

/// Below `accounts`.
pub(super) fn of_accounts() -> Router {
    Router::with_path("metrics").push(read(get_accounts)).push(Router::new().post(post_accounts))
}

/// Below `videos`.
pub(super) fn of_videos() -> Router {
    Router::with_path("metrics").push(read(get_videos)).push(Router::new().post(post_videos))
}

/// Below `account-videos`.
pub(super) fn of_account_videos() -> Router {
    Router::with_path("metrics").push(read(get_account_videos)).push(Router::new().post(post_account_videos))
}

/// What is told of a batch beside its data.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct BatchMeta<Id> {
    #[serde(flatten)]
    window: WindowMeta,
    /// Ids that are not the organization's, in the order in which they were asked for.
    not_found: Vec<Id>,
}

type Totals<Id, T> = WithMeta<BTreeMap<Id, T>, BatchMeta<Id>>;

/// The answer to a batch: what was found by its id, and the ids that were not.
fn answer<Id: Ord + Hash + Copy, T>(
    asked: Vec<Id>,
    data: BTreeMap<Id, T>,
    window: WindowMeta,
) -> Totals<Id, T> {
    let mut told = HashSet::new();
    let not_found = asked.into_iter().filter(|id| !data.contains_key(id) && told.insert(*id)).collect();
    WithMeta { data, meta: BatchMeta { window, not_found } }
}

/// Accounts and the window they are asked for.
struct Accounts {
    ids: Vec<Uuid>,
    window: WindowParams,
}

impl Batch for Accounts {
    fn example() -> Value {
        json!({"account_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }

    fn read<S: BatchSource>(source: &mut S) -> Self {
        let ids = source.about("Ids of accounts.").required_ids("account_ids");
        Accounts { ids, window: source.window() }
    }
}

/// What an account gained over the window, all its videos together.
#[derive(Serialize, JsonSchema)]
struct AccountTotals {
    #[serde(flatten)]
    gains: Gains,
    /// Gain in followers.
    followers: i64,
}

/// Totals what accounts gained over a window.
///
/// Reads only; still a `POST`, and needs the `write` scope. The `GET` takes fewer ids and any key.
#[endpoint(operation_id = "queryAccountMetrics")]
async fn post_accounts(
    app: App,
    caller: Caller,
    body: Body<Accounts>,
) -> Result<Totals<Uuid, AccountTotals>, Problem> {
    let now = app.clock.now().await;
    let window = body.0.window.at(now)?;
    account_totals(&app, &caller, body.0.ids, window, now).await
}

/// Totals what accounts gained over a window, as the POST does.
///
/// For any key, and for at most 100 ids.
#[endpoint(operation_id = "getAccountMetrics")]
async fn get_accounts(
    app: App,
    caller: Caller,
    query: Query<Accounts>,
) -> Result<Kept<Totals<Uuid, AccountTotals>>, Problem> {
    let Query(batch) = query;
    let now = app.clock.now().await;
    let window = batch.window.at(now)?;
    let about = (batch.ids.clone(), window, window.complete_through(now));
    let basis = CacheDependencies { until: window.end, videos: false };
    let work = account_totals(&app, &caller, batch.ids, window, now);
    kept(&app, &caller, "getAccountMetrics", &about, basis, work).await
}

async fn account_totals(
    app: &App,
    caller: &Caller,
    asked: Vec<Uuid>,
    window: Window,
    now: DateTime<Utc>,
) -> Result<Totals<Uuid, AccountTotals>, Problem> {
    let found = accounts::find(&app.pg, caller.organization, &asked).await?;
    let ids = found.iter().map(|account| account.internal_id).collect();
    let scope = SubjectScope::for_subjects(caller.organization, None, ids);
    let totals = subjects::fetch_totals(&app.history, &scope, window, GainColumns::All).await?;
    let latest = totals.iter().map(|totals| totals.as_of).max();
    let data_as_of = subjects::resolve_as_of(&app.history, &scope, window, latest).await?;
    let totals: HashMap<_, _> = totals.iter().map(|totals| (totals.subject_id(), totals)).collect();
    let data = found.iter().map(|account| {
        let totals = totals.get(&account.internal_id);
        let gains = totals.map_or_else(Gains::default, |totals| totals.gains());
        (account.id, AccountTotals { gains, followers: totals.map_or(0, |totals| totals.followers()) })
    });
    Ok(answer(asked, data.collect(), WindowMeta::new(window, now, data_as_of)))
}

/// Videos of either kind and the window they are asked for.
struct Videos {
    ids: Vec<Uuid>,
    window: WindowParams,
}

impl Batch for Videos {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "period": "30d"})
    }

    fn read<S: BatchSource>(source: &mut S) -> Self {
        let ids = source.about(VIDEO_IDS).required_ids("video_ids");
        Videos { ids, window: source.window() }
    }
}

/// Totals what videos gained over a window, discovered and individually tracked ones alike.
///
/// Reads only; still a `POST`, and needs the `write` scope. The `GET` takes fewer ids and any key.
#[endpoint(operation_id = "queryVideoMetrics")]
async fn post_videos(app: App, caller: Caller, body: Body<Videos>) -> Result<Totals<Uuid, Gains>, Problem> {
    let now = app.clock.now().await;
    let window = body.0.window.at(now)?;
    video_totals(&app, &caller, body.0.ids, window, now).await
}

/// Totals what videos gained over a window, as the POST does.
///
/// For any key, and for at most 100 ids.
#[endpoint(operation_id = "getVideoMetrics")]
async fn get_videos(
    app: App,
    caller: Caller,
    query: Query<Videos>,
) -> Result<Kept<Totals<Uuid, Gains>>, Problem> {
    let Query(batch) = query;
    let now = app.clock.now().await;
    let window = batch.window.at(now)?;
    let about = (batch.ids.clone(), window, window.complete_through(now));
    let basis = CacheDependencies { until: window.end, videos: true };
    let work = video_totals(&app, &caller, batch.ids, window, now);
    kept(&app, &caller, "getVideoMetrics", &about, basis, work).await
}

async fn video_totals(
    app: &App,
    caller: &Caller,
    asked: Vec<Uuid>,
    window: Window,
    now: DateTime<Utc>,
) -> Result<Totals<Uuid, Gains>, Problem> {
    let found = videos::find(&app.pg, caller.organization, &asked).await?;
    let (data, data_as_of) = gains_by(app, caller, &found, window, |video| video.id).await?;
    Ok(answer(asked, data, WindowMeta::new(window, now, data_as_of)))
}

/// Account-discovered videos by their internal ids, and the window they are asked for.
struct AccountVideos {
    instagram: Vec<i64>,
    tiktok: Vec<i64>,
    window: WindowParams,
}

impl Batch for AccountVideos {
    fn example() -> Value {
        json!({"instagram_post_ids": [1201, 1202], "tiktok_video_ids": [1301], "period": "30d"})
    }

    fn read<S: BatchSource>(source: &mut S) -> Self {
        let lists @ [instagram, tiktok] = ["instagram_post_ids", "tiktok_video_ids"];
        source.require_either(lists);
        let ids = AccountVideos {
            instagram: source.about(INTERNAL_IDS).ids(instagram).unwrap_or_default(),
            tiktok: source.about(INTERNAL_IDS).ids(tiktok).unwrap_or_default(),
            window: source.window(),
        };
        if ids.instagram.len() + ids.tiktok.len() > S::MOST {
            let message = format!("both lists together must have at most {} ids", S::MOST);
            source.violations().add(tiktok, message);
        }
        ids
    }
}

/// Totals what account-discovered videos gained over a window.
///
/// Reads only; still a `POST`, and needs the `write` scope. The `GET` takes fewer ids and any key.
#[endpoint(operation_id = "queryAccountVideoMetrics")]
async fn post_account_videos(
    app: App,
    caller: Caller,
    body: Body<AccountVideos>,
) -> Result<Totals<i64, Gains>, Problem> {
    let now = app.clock.now().await;
    let window = body.0.window.at(now)?;
    account_video_totals(&app, &caller, body.0, window, now).await
}

/// Totals what account-discovered videos gained over a window, as the POST does.
///
/// For any key, and for at most 100 ids. One of the two lists has to be there.
#[endpoint(operation_id = "getAccountVideoMetrics")]
async fn get_account_videos(
    app: App,
    caller: Caller,
    query: Query<AccountVideos>,
) -> Result<Kept<Totals<i64, Gains>>, Problem> {
    let Query(batch) = query;
    let now = app.clock.now().await;
    let window = batch.window.at(now)?;
    let about = (batch.instagram.clone(), batch.tiktok.clone(), window, window.complete_through(now));
    let basis = CacheDependencies { until: window.end, videos: true };
    let work = account_video_totals(&app, &caller, batch, window, now);
    kept(&app, &caller, "getAccountVideoMetrics", &about, basis, work).await
}

async fn account_video_totals(
    app: &App,
    caller: &Caller,
    AccountVideos { instagram, tiktok, window: _ }: AccountVideos,
    window: Window,
    now: DateTime<Utc>,
) -> Result<Totals<i64, Gains>, Problem> {
    let discovered = |platform, ids| videos::find_discovered(&app.pg, caller.organization, platform, ids);
    let (mut found, on_tiktok) = tokio::try_join!(
        discovered(Platform::Instagram, instagram.as_slice()),
        discovered(Platform::Tiktok, tiktok.as_slice()),
    )?;
    found.extend(on_tiktok);
    let (data, data_as_of) = gains_by(app, caller, &found, window, |video| video.internal_id).await?;
    Ok(answer([instagram, tiktok].concat(), data, WindowMeta::new(window, now, data_as_of)))
}

/// What each of the videos gained, nothing included, by one of its ids; and the latest observation.
async fn gains_by<Id: Ord>(
    app: &App,
    caller: &Caller,
    found: &[VideoRef],
    window: Window,
    id: impl Fn(&VideoRef) -> Id,
) -> Result<(BTreeMap<Id, Gains>, Option<DateTime<Utc>>), Problem> {
    let totals = videos::fetch_totals(&app.history, caller.organization, found, window).await?;
    let gains = |video: &VideoRef| totals.of.get(&video.internal_id).copied().unwrap_or_default();
    Ok((found.iter().map(|video| (id(video), gains(video))).collect(), totals.as_of))
}
