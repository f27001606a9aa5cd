//! Views that videos gained over several look-back windows, by POST and by GET.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::input::FromBody;
use crate::http::{Analytics, Body, Cached, Query, RecordDependency, Result, WithMeta};
use crate::model::limits::{DEFAULT_DELTA_WINDOWS, MAX_BATCH_IDS, MAX_DELTA_DAYS, MAX_DELTA_WINDOWS};
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::videos::{self, VideoRef};

#[derive(Serialize, Deserialize, JsonSchema)]
struct DeltaBatch {
    /// Ids of account-discovered or individually tracked videos.
    #[serde(rename = "video_ids")]
    #[schemars(length(max = MAX_BATCH_IDS))]
    ids: Vec<Uuid>,
    /// Lengths of the look-back windows in days, including today. Default: 1, 7, 14 and 30.
    #[schemars(
        length(min = 1, max = MAX_DELTA_WINDOWS),
        inner(range(min = 1, max = MAX_DELTA_DAYS)),
        extend("default" = DEFAULT_DELTA_WINDOWS)
    )]
    windows: Vec<u16>,
}

impl FromBody for DeltaBatch {
    fn example() -> Value {
        json!({"video_ids": ["0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65"], "windows": [7, 30]})
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
