//! Sparklines: one metric on each day of a short window, of many accounts, creators or videos.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::input::WindowParams;
use crate::http::input::window::sparkline_window;
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Cached, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::gains::GainMetric;
use crate::model::limits::MAX_QUERY_IDS;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::sparklines::{self, AccountGroup, GroupKind, SparklineMetric, Sparklines};
use crate::store::analytics::videos::{self, VideoRef};

/// The gain on a day without an observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Unobserved {
    #[default]
    Zero,
    Null,
}

impl Unobserved {
    const fn gain(self) -> Option<i64> {
        match self {
            Unobserved::Zero => Some(0),
            Unobserved::Null => None,
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct AccountSparklines {
    /// Account ids.
    #[serde(rename = "account_ids")]
    #[schemars(length(max = MAX_QUERY_IDS))]
    ids: Vec<Uuid>,
    /// Gain per day; `followers` is the level at the end of the day, `new_posts` the number of discovered videos posted.
    #[serde(default)]
    metric: SparklineMetric,
    /// What a gain is on days without an observation: `zero`, or `null`. Does not affect `followers` and `new_posts`.
    #[serde(default)]
    unobserved: Unobserved,
    #[serde(flatten)]
    #[schemars(schema_with = "sparkline_window")]
    window: WindowParams,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct CreatorSparklines {
    /// Creator ids.
    #[serde(rename = "creator_ids")]
    #[schemars(length(max = MAX_QUERY_IDS))]
    ids: Vec<Uuid>,
    /// Gain per day; `followers` is the level at the end of the day, `new_posts` the number of discovered videos posted.
    #[serde(default)]
    metric: SparklineMetric,
    /// What a gain is on days without an observation: `zero`, or `null`. Does not affect `followers` and `new_posts`.
    #[serde(default)]
    unobserved: Unobserved,
    #[serde(flatten)]
    #[schemars(schema_with = "sparkline_window")]
    window: WindowParams,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct ContentSparklines {
    /// Ids of account-discovered or individually tracked videos.
    #[schemars(length(max = MAX_QUERY_IDS))]
    ids: Vec<Uuid>,
    /// Counter whose gains count; `engagement` is likes, comments and shares.
    #[serde(default)]
    metric: GainMetric,
    /// What a gain is on days without an observation: `zero`, or `null`.
    #[serde(default)]
    unobserved: Unobserved,
    #[serde(flatten)]
    #[schemars(schema_with = "sparkline_window")]
    window: WindowParams,
}

/// Ids, a metric and a window.
#[derive(Serialize)]
struct SparklineArgs<M> {
    ids: Vec<Uuid>,
    metric: M,
    unobserved: Unobserved,
    window: WindowParams,
}

/// The window, its days, the metric, and the ids that were not found.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SparklineMeta<M> {
    #[serde(flatten)]
    window: WindowMeta,
    /// UTC days of the window, ascending: one for each value.
    #[schemars(example = &["2026-03-12", "2026-03-13", "2026-03-14"])]
    dates: Vec<NaiveDate>,
    /// Metric in effect.
    metric: M,
    /// Requested ids that do not exist, in request order.
    not_found: Vec<Uuid>,
}

/// The values of each day by id.
type Response<M> = WithMeta<BTreeMap<Uuid, Vec<Option<i64>>>, SparklineMeta<M>>;

fn build_response<M>(
    request: &WindowArgs<SparklineArgs<M>>,
    data: BTreeMap<Uuid, Vec<Option<i64>>>,
    data_as_of: Option<DateTime<Utc>>,
) -> Response<M>
where
    M: Copy,
{
    let SparklineArgs { ids, metric, .. } = &request.args;
    let known: HashSet<_> = data.keys().collect();
    let not_found = ids.iter().filter(|id| !known.contains(id)).copied().collect();
    let (window, dates) = (request.meta(data_as_of), request.window.iter_days().collect());
    WithMeta { data, meta: SparklineMeta { window, dates, metric: *metric, not_found } }
}

/// Get daily metrics of accounts
///
/// One metric of up to 100 accounts on each day of the window, of their account-discovered videos together. Days without an
/// observation gain 0, or null with `unobserved=null`; `followers` is null before the first observation.
#[endpoint(operation_id = "getAccountSparklines")]
pub(super) async fn get_accounts(
    query: Query<AccountSparklines>,
    analytics: Analytics,
) -> Result<Cached<Response<SparklineMetric>>> {
    let Query(AccountSparklines { ids, metric, unobserved, window }) = query;
    respond(&analytics, GroupKind::Account, SparklineArgs { ids, metric, unobserved, window }).await
}

/// Get daily metrics of creators
///
/// One metric of up to 100 creators on each day of the window, of all accounts that are linked now together. A creator
/// without accounts was never observed.
#[endpoint(operation_id = "getCreatorSparklines")]
pub(super) async fn get_creators(
    query: Query<CreatorSparklines>,
    analytics: Analytics,
) -> Result<Cached<Response<SparklineMetric>>> {
    let Query(CreatorSparklines { ids, metric, unobserved, window }) = query;
    respond(&analytics, GroupKind::Creator, SparklineArgs { ids, metric, unobserved, window }).await
}

async fn respond(
    analytics: &Analytics,
    kind: GroupKind,
    args: SparklineArgs<SparklineMetric>,
) -> Result<Cached<Response<SparklineMetric>>> {
    let request = analytics.window(args, |args| args.window)?;
    let WindowArgs { args: SparklineArgs { ids, metric, unobserved, .. }, window, .. } = &request;
    let compute = async |groups: Vec<AccountGroup>, history: VersionedHistory| {
        let fetched = sparklines::fetch(&history, &groups, *metric, *window, unobserved.gain());
        let Sparklines { by_id, as_of } = fetched.await?;
        Ok(build_response(&request, by_id, as_of))
    };
    let query = sparklines::find(analytics.organization, kind, ids, *metric, *window);
    analytics.respond(&request, RecordDependency::Videos, query, compute).await
}

/// Get daily metrics of videos
///
/// Gains of up to 100 account-discovered or individually tracked videos on each day of the window. Days without an
/// observation gain 0, or null with `unobserved=null`.
#[endpoint(operation_id = "getContentSparklines")]
pub(super) async fn get_content(
    query: Query<ContentSparklines>,
    analytics: Analytics,
) -> Result<Cached<Response<GainMetric>>> {
    let Query(ContentSparklines { ids, metric, unobserved, window }) = query;
    let request = analytics.window(SparklineArgs { ids, metric, unobserved, window }, |args| args.window)?;
    let compute = async |found: Vec<VideoRef>, history: VersionedHistory| {
        let fetched = sparklines::fetch_videos(&history, &found, metric, request.window, unobserved.gain());
        let gains = fetched.await?;
        let no_gains = || vec![unobserved.gain(); request.window.days() as usize];
        let data = found.iter().map(|video| (video.id, gains.get(video).cloned().unwrap_or_else(no_gains)));
        Ok(build_response(&request, data.collect(), gains.as_of))
    };
    let videos_query = videos::find(analytics.organization, &request.args.ids);
    analytics.respond(&request, RecordDependency::Videos, videos_query, compute).await
}
