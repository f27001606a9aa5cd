//! Time series of an organization, and of a creator.

use chrono::{Days, NaiveDate};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::{AccountsQuery, CreatorPath};
use super::mcp::tool::{Answer, Tool};
use crate::http::input::WindowParams;
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Args, Cached, Path, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::gains::{Gains, Metrics};
use crate::model::period::{Granularity, Window};
use crate::store::analytics::timeseries::{self, Bucket, Figures, SeriesRecords, TimeSeries};
use crate::store::analytics::{SubjectFilter, SubjectScope, VersionedHistory, find_subjects, subjects};

/// How the rows are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroupBy {
    Platform,
}

/// The days that rows are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Compare {
    Previous,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct SeriesQuery {
    #[serde(flatten)]
    accounts: AccountsQuery,
    /// Adds the figures of each platform.
    group_by: Option<GroupBy>,
    /// Adds the row of the same position in the previous window, which has as many days.
    compare: Option<Compare>,
    /// One row for each day, week (from Monday) or month of the window, with its `end_date`. The window may cut the first
    /// and the last. Default: days, without `end_date`.
    granularity: Option<Granularity>,
}

/// Figures of one or more UTC days.
#[derive(Serialize, JsonSchema)]
struct SeriesFigures {
    #[serde(flatten)]
    metrics: Metrics,
    /// Followers of all accounts at the end; null before the first observation.
    #[schemars(example = 141_900)]
    followers: Option<i64>,
    /// Number of videos posted.
    #[schemars(example = 12)]
    new_posts: i64,
    /// Number of accounts, and of individually tracked videos without an account, that were observed; of several days, on
    /// the one with the most. An account is observed when its profile or one of its videos is.
    #[schemars(example = 64)]
    observed: u64,
}

impl From<Figures> for SeriesFigures {
    fn from(figures: Figures) -> Self {
        let Figures { gains, followers, new_posts, observed } = figures;
        SeriesFigures { metrics: gains.into(), followers, new_posts, observed }
    }
}

/// Figures by platform.
#[derive(Serialize, JsonSchema)]
struct FiguresByPlatform {
    /// Figures on Instagram.
    instagram: SeriesFigures,
    /// Figures on TikTok.
    tiktok: SeriesFigures,
}

/// One or more UTC days.
#[derive(Serialize, JsonSchema)]
struct SeriesBucket {
    /// UTC day, the first of several.
    date: NaiveDate,
    /// Last UTC day; only with `granularity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_date: Option<NaiveDate>,
    #[serde(flatten)]
    figures: SeriesFigures,
    /// Figures by platform; only with `group_by=platform`.
    #[serde(skip_serializing_if = "Option::is_none")]
    platforms: Option<FiguresByPlatform>,
}

/// One or more UTC days of the window.
#[derive(Serialize, JsonSchema)]
struct SeriesRow {
    #[serde(flatten)]
    current: SeriesBucket,
    /// The days of the same position in the previous window; only with `compare=previous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<SeriesBucket>,
}

pub(super) const TOOL: Tool = Tool {
    name: "get_timeseries",
    description: "What was gained on each day, week or month (granularity) of a window of UTC days, by the \
        organization, one account, one creator, or all accounts with a tag: views, plays, likes, comments, \
        shares, engagement and engagement_rate (a fraction of views), new_posts, followers at the end of the \
        day (null before the first observation) and how many accounts were observed. Use it for trends; for \
        totals of a window use get_overview. Long windows by day are too large for an answer: use week or \
        month.",
    answer: Answer::Response("getTimeseries"),
};

/// Get a time series
///
/// Gains, followers, new posts and the number of observed subjects on each day, week or month of the window. With
/// `account_id`, `creator_id`, `category` or `metadata.KEY`, individually tracked videos are not included.
#[endpoint(
    operation_id = "getTimeseries",
    responses((status_code = 404, description = "The account or creator does not exist."))
)]
pub(super) async fn get(
    query: Query<SeriesQuery>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<SeriesRow>, WindowMeta>>> {
    let request = analytics.window(query.0, |query| query.accounts.window)?;
    let WindowArgs { args, window, .. } = &request;
    let first = args.compare.map_or(*window, |Compare::Previous| window.previous());
    let days = Window { start: first.start, ..*window };
    let compute = async |records: SeriesRecords, history: VersionedHistory| {
        let series = timeseries::fetch(&history, &records, days).await?;
        Ok(WithMeta { data: args.build_rows(&series, *window), meta: request.meta(series.as_of) })
    };
    let records_query = timeseries::records(analytics.organization, &args.accounts.filter, days);
    analytics.respond(&request, RecordDependency::Videos, records_query, compute).await
}

impl SeriesQuery {
    fn build_rows(&self, series: &TimeSeries, window: Window) -> Vec<SeriesRow> {
        let buckets = window.buckets(self.granularity.unwrap_or(Granularity::Day));
        // A bucket of the previous window has as many days as that of the same position.
        let offset = Days::new(window.days());
        let row = |(start, end): (NaiveDate, NaiveDate)| SeriesRow {
            current: self.build_bucket(series, start, end),
            previous: self
                .compare
                .map(|Compare::Previous| self.build_bucket(series, start - offset, end - offset)),
        };
        buckets.into_iter().map(row).collect()
    }

    fn build_bucket(&self, series: &TimeSeries, start: NaiveDate, end: NaiveDate) -> SeriesBucket {
        let Bucket { total, platforms } = series.bucket(start, end);
        let [instagram, tiktok] = platforms.map(SeriesFigures::from);
        SeriesBucket {
            date: start,
            end_date: self.granularity.map(|_| end),
            figures: total.into(),
            platforms: self.group_by.map(|GroupBy::Platform| FiguresByPlatform { instagram, tiktok }),
        }
    }
}

/// Gains of a creator on one UTC day.
#[derive(Serialize, JsonSchema)]
struct CreatorDay {
    /// UTC day.
    date: NaiveDate,
    /// Views gained.
    views: i64,
    /// Likes, comments and shares gained.
    engagement: i64,
}

/// Get a creator's daily gains
///
/// Gains of all accounts that are linked now, on each day of the window. Their history before they were linked is included.
#[endpoint(operation_id = "getCreatorTimeseries")]
pub(super) async fn get_creator(
    args: Args<(Path<CreatorPath>, Query<WindowParams>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<CreatorDay>, WindowMeta>>> {
    let request = analytics.window(args, |Args((_, Query(window)))| *window)?;
    let WindowArgs { args: Args((Path(CreatorPath { creator_id }), _)), window, .. } = &request;
    let compute = async |subjects: Vec<i64>, history: VersionedHistory| {
        let scope = SubjectScope::from_subjects(subjects);
        let days = subjects::fetch_daily(&history, &scope, *window).await?;
        let latest = days.values().filter_map(|day| day.as_of).max();
        let data_as_of = subjects::latest_observation_or(&history, &scope, *window, latest).await?;
        let day = |date| {
            let gains = days.get(&date).map_or_else(Gains::default, |day| day.gains.gains);
            CreatorDay { date, views: gains.views, engagement: gains.engagement }
        };
        Ok(WithMeta { data: window.iter_days().map(day).collect(), meta: request.meta(data_as_of) })
    };
    let query = find_subjects(analytics.organization, &SubjectFilter::creator(*creator_id));
    analytics.respond(&request, RecordDependency::Accounts, query, compute).await
}
