//! Gains in views of many videos over several look-back windows at once, by POST and by GET.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::VIDEO_IDS;
use crate::app::App;
use crate::http::input::batch::{Batch, BatchSource, Entry};
use crate::http::input::fields::{integer, integer_within};
use crate::http::openapi::schema_recorder;
use crate::http::route::read;
use crate::http::{Body, Caller, Kept, Problem, Query, WithMeta, kept};
use crate::model::limits::{DEFAULT_DELTA_WINDOWS, DELTA_DAYS, DELTA_WINDOW_COUNT};
use crate::store::analytics::videos;
use crate::store::outbox::data_version::CacheDependencies;

const WINDOWS: &str =
    "Lengths of look-back windows in days, today included; 1, 7, 14 and 30 when nothing is said.";

/// Below `videos`.
pub(super) fn of_videos() -> Router {
    Router::with_path("deltas").push(read(get_deltas)).push(Router::new().post(post_deltas))
}

/// The length of a look-back window in days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Length(u16);

impl Length {
    fn of_integer(days: i64) -> Result<Self, String> {
        let days = integer_within(days, &DELTA_DAYS)?;
        u16::try_from(days).map(Length).map_err(|error| error.to_string())
    }
}

impl Entry for Length {
    fn schema() -> Value {
        schema_recorder::integer(&DELTA_DAYS)
    }

    fn of_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an integer".to_owned()).and_then(Length::of_integer)
    }

    fn of_json(value: &Value) -> Result<Self, String> {
        integer(value).and_then(Length::of_integer)
    }
}

/// Videos of either kind, and the windows they are asked for.
struct Deltas {
    ids: Vec<Uuid>,
    windows: Vec<u16>,
}

impl Batch for Deltas {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "windows": [7, 30]})
    }

    fn read<S: BatchSource>(source: &mut S) -> Self {
        let ids = source.about(VIDEO_IDS).required_ids("video_ids");
        let windows = source.about(WINDOWS).list("windows", DELTA_WINDOW_COUNT);
        let windows = windows.map(|windows| windows.into_iter().map(|Length(days)| days).collect());
        Deltas { ids, windows: windows.unwrap_or_else(|| DEFAULT_DELTA_WINDOWS.to_vec()) }
    }
}

/// What is told of deltas beside them.
#[derive(Serialize, JsonSchema)]
struct DeltasMeta {
    /// Lengths of the windows in days, today included.
    #[schemars(example = [7, 30])]
    windows: Vec<u16>,
    /// Number of videos that were found.
    #[schemars(example = 1)]
    video_count: usize,
    /// Ids that are not the organization's, in the order in which they were asked for.
    not_found: Vec<Uuid>,
    /// The last whole UTC day, yesterday.
    complete_through: NaiveDate,
    /// The latest observation of the videos; null without any.
    data_as_of: Option<DateTime<Utc>>,
}

/// Gains in views by the names of the windows.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, example = json!({"7d": 1_840, "30d": 9_210}))]
struct ByWindow(BTreeMap<String, i64>);

type Answer = WithMeta<BTreeMap<Uuid, ByWindow>, DeltasMeta>;

/// Says what videos gained in views over several windows that end today.
///
/// Reads only; still a `POST`, and needs the `write` scope. The `GET` takes fewer ids and any key.
#[endpoint(operation_id = "queryVideoDeltas")]
async fn post_deltas(app: App, caller: Caller, body: Body<Deltas>) -> Result<Answer, Problem> {
    let today = app.clock.now().await.date_naive();
    deltas(&app, &caller, body.0, today).await
}

/// Says what videos gained in views over several windows that end today, as the POST does.
///
/// For any key, and for at most 100 ids.
#[endpoint(operation_id = "getVideoDeltas")]
async fn get_deltas(app: App, caller: Caller, query: Query<Deltas>) -> Result<Kept<Answer>, Problem> {
    let today = app.clock.now().await.date_naive();
    let about = (today, query.0.ids.clone(), query.0.windows.clone());
    let basis = CacheDependencies { until: today, videos: true };
    kept(&app, &caller, "getVideoDeltas", &about, basis, deltas(&app, &caller, query.0, today)).await
}

async fn deltas(app: &App, caller: &Caller, batch: Deltas, today: NaiveDate) -> Result<Answer, Problem> {
    let Deltas { ids, windows } = batch;
    let found = videos::find(&app.pg, caller.organization, &ids).await?;
    let gains = videos::fetch_view_deltas(&app.history, caller.organization, &found, today, &windows).await?;
    let data: BTreeMap<_, _> = found
        .iter()
        .map(|video| {
            let gains = gains.of.get(&video.internal_id);
            let gain = |place| gains.and_then(|gains| gains.get(place)).copied().unwrap_or_default();
            let windows = windows.iter().enumerate().map(|(place, days)| (format!("{days}d"), gain(place)));
            (video.id, ByWindow(windows.collect()))
        })
        .collect();
    let meta = DeltasMeta {
        windows,
        video_count: data.len(),
        not_found: ids.into_iter().filter(|id| !data.contains_key(id)).collect(),
        complete_through: today - Days::new(1),
        data_as_of: gains.as_of,
    };
    Ok(WithMeta { data, meta })
}
