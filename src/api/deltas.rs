//! Views that videos gained over several look-back windows, by POST and by GET.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::VIDEO_IDS;
use crate::http::input::{BatchItem, BatchRequest, BatchSource, check_range, parse_integer};
use crate::http::openapi::schema;
use crate::http::{Analytics, Body, Cached, Query, RecordDependency, Result, WithMeta};
use crate::model::limits::{DEFAULT_DELTA_WINDOWS, DELTA_DAYS, DELTA_WINDOW_COUNT};
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::videos::{self, VideoRef};

const WINDOWS: &str = "Lengths of the look-back windows in days, including today. Default: 1, 7, 14 and 30.";

/// Length of a look-back window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct DayCount(u16);

impl DayCount {
    fn new(days: i64) -> Result<Self, String> {
        let days = check_range(days, &DELTA_DAYS)?;
        u16::try_from(days).map(DayCount).map_err(|error| error.to_string())
    }
}

impl BatchItem for DayCount {
    fn schema() -> Value {
        schema::integer(&DELTA_DAYS)
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an integer".to_owned()).and_then(DayCount::new)
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        parse_integer(value).and_then(DayCount::new)
    }
}

#[derive(Serialize)]
struct DeltaBatch {
    ids: Vec<Uuid>,
    /// Lengths in days.
    windows: Vec<u16>,
}

impl BatchRequest for DeltaBatch {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "windows": [7, 30]})
    }

    fn read(source: &mut BatchSource<'_, '_>) -> Self {
        let ids = source.describe(VIDEO_IDS).required_ids("video_ids");
        let windows = source.describe(WINDOWS).list("windows", DELTA_WINDOW_COUNT);
        let windows = windows.map(|windows| windows.into_iter().map(|DayCount(days)| days).collect());
        DeltaBatch { ids, windows: windows.unwrap_or_else(|| DEFAULT_DELTA_WINDOWS.to_vec()) }
    }
}

/// The look-back windows and the videos found.
#[derive(Serialize, JsonSchema)]
struct DeltasMeta {
    /// Lengths of the windows in days, including today.
    #[schemars(example = [7, 30])]
    windows: Vec<u16>,
    /// Number of videos found.
    #[schemars(example = 1)]
    video_count: usize,
    /// Requested ids that do not exist, in request order.
    not_found: Vec<Uuid>,
    /// Last complete UTC day: yesterday.
    complete_through: NaiveDate,
    /// Time of the latest observation of the videos; null if there is none.
    data_as_of: Option<DateTime<Utc>>,
}

/// Views gained by look-back window.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, example = json!({"7d": 1_840, "30d": 9_210}))]
struct ViewsByWindow(BTreeMap<String, i64>);

type DeltasByVideo = WithMeta<BTreeMap<Uuid, ViewsByWindow>, DeltasMeta>;

/// Query view deltas of videos
///
/// Like the `GET`, with up to 1,000 ids. Changes nothing, but requires the `write` scope.
#[endpoint(operation_id = "queryVideoDeltas")]
pub(super) async fn post(body: Body<DeltaBatch>, analytics: Analytics) -> Result<Cached<DeltasByVideo>> {
    respond(&analytics, body.0).await
}

/// Get view deltas of videos
///
/// Views gained over look-back windows that end today. Takes up to 100 ids; `POST` takes up to 1,000 and requires the
/// `write` scope.
#[endpoint(operation_id = "getVideoDeltas")]
pub(super) async fn get(query: Query<DeltaBatch>, analytics: Analytics) -> Result<Cached<DeltasByVideo>> {
    respond(&analytics, query.0).await
}

async fn respond(analytics: &Analytics, batch: DeltaBatch) -> Result<Cached<DeltasByVideo>> {
    let longest = batch.windows.iter().copied().max().unwrap_or(1);
    let request = analytics.last_days(batch, longest);
    let DeltaBatch { ids, windows } = &request.args;
    let compute = async |found: Vec<VideoRef>, history: VersionedHistory| {
        let gains = videos::fetch_view_deltas(&history, &found, request.window.end, windows).await?;
        let views = |video: &VideoRef| {
            let views = gains.get(video);
            let gain = |index| views.and_then(|views| views.get(index)).copied().unwrap_or_default();
            let windows = windows.iter().enumerate().map(|(index, days)| (format!("{days}d"), gain(index)));
            ViewsByWindow(windows.collect())
        };
        let data: BTreeMap<_, _> = found.iter().map(|video| (video.id, views(video))).collect();
        let meta = DeltasMeta {
            windows: windows.clone(),
            video_count: data.len(),
            not_found: ids.iter().copied().filter(|id| !data.contains_key(id)).collect(),
            complete_through: request.complete_through,
            data_as_of: gains.as_of,
        };
        Ok(WithMeta { data, meta })
    };
    let query = videos::find(analytics.organization, ids);
    analytics.respond(&request, RecordDependency::Videos, query, compute).await
}
