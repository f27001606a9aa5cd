//! Daily history of a video, an account or a creator.

use chrono::NaiveDate;
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fields::{AccountIdPath, CreatorPath, VideoPath};
use crate::http::input::WindowParams;
use crate::http::input::window::daily_window;
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Args, Cached, Path, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::counters::Counters;
use crate::store::analytics::days::{self, DailyHistory, HistoryDay};
use crate::store::analytics::videos::{self, VideoRef};
use crate::store::analytics::{SubjectFilter, VersionedHistory, find_subjects};

/// The meaning of the counters of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum Values {
    /// Gained on the day.
    #[default]
    Gains,
    /// Counters at the end of the day.
    Cumulative,
    /// Gains, and counters at the end of the day as `levels`.
    Both,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct DailyQuery {
    #[serde(flatten)]
    #[schemars(schema_with = "daily_window")]
    window: WindowParams,
    /// Return what was gained on each day, the counters at its end, or both.
    #[serde(default)]
    values: Values,
}

type DailyArgs<P> = Args<(Path<P>, Query<DailyQuery>)>;

/// Counters of one UTC day.
#[derive(Serialize, JsonSchema)]
struct DayCounters {
    /// UTC day.
    date: NaiveDate,
    #[serde(flatten)]
    counters: Counters,
    /// Counters at the end of the day; only with `values=both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<Counters>,
}

/// One UTC day of a video.
#[derive(Serialize, JsonSchema)]
pub(super) struct VideoDay {
    #[serde(flatten)]
    counters: DayCounters,
    /// Whether the video was observed on this day.
    observed: bool,
    /// Day of the observation before, since which it gained what this day shows; null without one, and on days without an
    /// observation. Only with `values=both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NaiveDate>", extend("x-nullable" = true))]
    since: Option<Option<NaiveDate>>,
}

/// One UTC day of an account.
#[derive(Serialize, JsonSchema)]
pub(super) struct AccountDay {
    #[serde(flatten)]
    counters: DayCounters,
    /// Followers at the end of the day, whatever `values`; null before the first observation.
    follower_count: Option<i64>,
    /// Whether the account or one of its videos was observed on this day.
    observed: bool,
}

/// One UTC day of all accounts of a creator.
#[derive(Serialize, JsonSchema)]
pub(super) struct AccountsDay {
    #[serde(flatten)]
    counters: DayCounters,
    /// Number of accounts that were observed on this day, themselves or one of their videos.
    observed: u64,
}

/// The window, and the gains over all of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct DailyMeta {
    /// Id of the video, account or creator.
    id: Uuid,
    #[serde(flatten)]
    window: WindowMeta,
    /// Whether rows have `gains` of each day, `cumulative` counters at its end, or `both`.
    values: Values,
    /// Gains over the whole window, whatever `values`.
    totals: Counters,
}

type Daily<Day> = WithMeta<Vec<Day>, DailyMeta>;

/// Get a video's daily analytics
///
/// Gains of each day, counters at its end, or both. The video may be account-discovered, individually tracked, or both.
#[endpoint(operation_id = "getVideoAnalytics")]
pub(super) async fn get_video(
    args: DailyArgs<VideoPath>,
    analytics: Analytics,
) -> Result<Cached<Daily<VideoDay>>> {
    let request = analytics.window(args, window)?;
    let Args((Path(VideoPath { video_id: id }), _)) = &request.args;
    let compute = async |video: VideoRef, history: VersionedHistory| {
        let days = days::fetch_video(&history, video, request.window).await?;
        Ok(build_response(&request, *id, &days, VideoDay::new))
    };
    let query = videos::get(analytics.organization, *id);
    analytics.respond(&request, RecordDependency::Videos, query, compute).await
}

/// Get an account's daily analytics
///
/// Gains of each day, counters at its end, or both, of the account-discovered videos together, and the follower count. Videos
/// that are only tracked individually are not included.
#[endpoint(operation_id = "getAccountAnalytics")]
pub(super) async fn get_account(
    args: DailyArgs<AccountIdPath>,
    analytics: Analytics,
) -> Result<Cached<Daily<AccountDay>>> {
    let Args((Path(AccountIdPath { account_id: id }), _)) = args;
    respond_accounts(&analytics, args, id, &SubjectFilter::account(id), AccountDay::new).await
}

/// Get a creator's daily analytics
///
/// Gains of each day, counters at its end, or both, of the account-discovered videos of all accounts that are linked now. Their
/// history before they were linked is included.
#[endpoint(operation_id = "getCreatorAnalytics")]
pub(super) async fn get_creator(
    args: DailyArgs<CreatorPath>,
    analytics: Analytics,
) -> Result<Cached<Daily<AccountsDay>>> {
    let Args((Path(CreatorPath { creator_id: id }), _)) = args;
    respond_accounts(&analytics, args, id, &SubjectFilter::creator(id), AccountsDay::new).await
}

/// Responds with the history of one account, or of a creator's accounts together.
async fn respond_accounts<P: Serialize, Day: Serialize>(
    analytics: &Analytics,
    args: DailyArgs<P>,
    id: Uuid,
    filter: &SubjectFilter,
    day: impl Fn(&HistoryDay, Values) -> Day,
) -> Result<Cached<Daily<Day>>> {
    let request = analytics.window(args, window)?;
    let compute = async |subjects: Vec<i64>, history: VersionedHistory| {
        let days = days::fetch_subjects(&history, &subjects, request.window).await?;
        Ok(build_response(&request, id, &days, day))
    };
    let query = find_subjects(analytics.organization, filter);
    analytics.respond(&request, RecordDependency::Accounts, query, compute).await
}

const fn window<P>(Args((_, Query(query))): &DailyArgs<P>) -> WindowParams {
    query.window
}

fn build_response<P, Day>(
    request: &WindowArgs<DailyArgs<P>>,
    id: Uuid,
    history: &DailyHistory,
    day: impl Fn(&HistoryDay, Values) -> Day,
) -> Daily<Day> {
    let Args((_, Query(DailyQuery { values, .. }))) = request.args;
    let data = history.days.iter().map(|row| day(row, values)).collect();
    let (window, totals) = (request.meta(history.as_of), Counters::from_array(history.totals().map(Some)));
    WithMeta { data, meta: DailyMeta { id, window, values, totals } }
}

impl DayCounters {
    fn new(day: &HistoryDay, values: Values) -> Self {
        let gains = Counters::from_array(day.gains.map(Some));
        let (counters, levels) = match values {
            Values::Gains => (gains, None),
            Values::Cumulative => (day.counts, None),
            Values::Both => (gains, Some(day.counts)),
        };
        DayCounters { date: day.date, counters, levels }
    }
}

impl VideoDay {
    fn new(day: &HistoryDay, values: Values) -> Self {
        VideoDay {
            counters: DayCounters::new(day, values),
            observed: day.observed > 0,
            since: (values == Values::Both).then_some(day.since),
        }
    }
}

impl AccountDay {
    fn new(day: &HistoryDay, values: Values) -> Self {
        AccountDay {
            counters: DayCounters::new(day, values),
            follower_count: day.followers,
            observed: day.observed > 0,
        }
    }
}

impl AccountsDay {
    fn new(day: &HistoryDay, values: Values) -> Self {
        AccountsDay { counters: DayCounters::new(day, values), observed: day.observed }
    }
}
