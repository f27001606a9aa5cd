//! The ranking of videos of either kind.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::{METRIC, read_content_filter};
use crate::http::input::{FromQuery, QueryParams, RankingParams, WindowParams};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, CachedPage, Query, Ranking, RecordDependency, Result, WindowArgs};
use crate::model::content::ContentIdentity;
use crate::model::date_or_time::DateOrTime;
use crate::model::gains::{GainMetric, Metrics};
use crate::model::period::Window;
use crate::store::analytics::top_content::{self, ContentRanking};
use crate::store::analytics::videos::{self, VideoRef};
use crate::store::analytics::{SubjectScope, VersionedHistory};
use crate::store::records::content::{ContentFilter, RankedContent};

/// Which videos are ranked, by the day of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Posted {
    Any,
    InWindow,
}

/// The ranked content and the metric.
#[derive(Serialize)]
struct RankingArgs {
    metric: GainMetric,
    filter: ContentFilter,
    posted: Posted,
    include_all: bool,
}

#[derive(Serialize)]
pub(super) struct TopContentQuery {
    window: WindowParams,
    args: RankingArgs,
    page: RankingParams,
}

impl FromQuery for TopContentQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let window = WindowParams::read(query);
        let args = RankingArgs {
            metric: query.describe(METRIC).variant_or("metric", GainMetric::Views),
            filter: read_content_filter(query),
            posted: query
                .describe("`in_window` ranks only videos whose `create_time` is on a day of the window.")
                .variant_or("posted", Posted::Any),
            include_all: query
                .describe("Whether videos are listed that gained nothing, or less.")
                .boolean_or("include_all", false),
        };
        TopContentQuery { page: RankingParams::read(query, &window, &args), window, args }
    }
}

impl RankingArgs {
    /// The filter with the days that `posted` allows.
    fn filter(&self, window: Window) -> ContentFilter {
        let mut filter = self.filter.clone();
        if self.posted == Posted::InWindow {
            let bounds = |own: Option<DateOrTime>, day| own.into_iter().chain([DateOrTime::Date(day)]);
            filter.posted_after = bounds(filter.posted_after, window.start).max_by_key(|bound| bound.first());
            filter.posted_before = bounds(filter.posted_before, window.end).min_by_key(|bound| bound.last());
        }
        filter
    }
}

/// A video in the ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopContent {
    #[serde(flatten)]
    identity: ContentIdentity,
    /// Gains of the window.
    metrics: Metrics,
}

/// The window and the metric of a ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopContentMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// Metric that videos are ranked by.
    metric: GainMetric,
}

/// Rank videos by gains
///
/// Account-discovered and individually tracked videos that gained something over the window, by the metric and then by id.
/// `data_as_of` is the latest observation of the accounts and videos in scope: those of the organization, limited by
/// `platform`, `account_id`, `creator_id` and `category`.
#[endpoint(
    operation_id = "listTopContent",
    responses((status_code = 404, description = "The account or creator does not exist."))
)]
pub(super) async fn list(
    query: Query<TopContentQuery>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<TopContent, TopContentMeta>>> {
    let request = analytics.window(query.0, |query| query.window)?;
    let WindowArgs { args: TopContentQuery { args, page, .. }, window, .. } = &request;
    let filter = args.filter(*window);
    let compute = async |scope: SubjectScope, history: VersionedHistory| {
        let ranking = ContentRanking {
            filter: &filter,
            metric: args.metric,
            window: *window,
            include_all: args.include_all,
            after: page.after(),
            limit: page.entry_count(),
        };
        let ranked = top_content::rank(&analytics.pg, &history, &scope, &ranking).await?;
        let meta = TopContentMeta { window: request.meta(ranked.as_of), metric: args.metric };
        let page = page.page(ranked.videos, |video| (video.gain, video.identity.id))?;
        let videos: Vec<_> = page.entries.iter().map(VideoRef::from).collect();
        let gains = videos::fetch_totals(&history, &videos, *window).await?;
        let entry = |video: &RankedContent| {
            let gains = gains.get(&video.into()).copied().unwrap_or_default();
            TopContent { identity: video.identity.clone(), metrics: gains.into() }
        };
        let data = page.entries.iter().map(entry).collect();
        Ok(page.into_response(data, meta))
    };
    // Whether a video is unavailable has no version.
    let records = match args.filter.is_unavailable {
        Some(_) => RecordDependency::Tracking,
        None => RecordDependency::Profiles,
    };
    let query = top_content::find_scope(analytics.organization, &filter);
    analytics.respond_page(&request, records, query, compute).await
}
