//! The ranking of videos of either kind.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mcp::tool::{Answer, Tool};
use crate::http::input::{RankingOrder, RankingQuery};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, CachedPage, Ranking, RecordDependency, Result, WindowArgs};
use crate::model::content::ContentIdentity;
use crate::model::date_or_time::DateOrTime;
use crate::model::gains::{GainMetric, Metrics};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::model::unknown_counters::UnknownCounters;
use crate::store::analytics::top_content::{self, ContentRanking};
use crate::store::analytics::{SubjectScope, VersionedHistory};
use crate::store::records::content::{ContentFilter, RankedContent};

/// Which videos are ranked, by the day of their creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Posted {
    #[default]
    Any,
    InWindow,
}

/// The ranked content and the metric.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct RankingArgs {
    /// Counter whose gains count; `engagement` is likes, comments and shares.
    #[serde(default)]
    metric: GainMetric,
    #[serde(flatten)]
    filter: ContentFilter,
    /// `in_window` ranks only videos whose `create_time` is on a day of the window.
    #[serde(default)]
    posted: Posted,
    #[serde(flatten)]
    order: RankingOrder,
}

impl RankingArgs {
    /// All posts of a collection, on one platform or all.
    pub(super) fn all_of_collection(
        collection: Uuid,
        metric: GainMetric,
        platform: Option<Platform>,
    ) -> Self {
        let filter = ContentFilter { platform, collection_id: Some(collection), ..ContentFilter::default() };
        RankingArgs { metric, filter, posted: Posted::Any, order: RankingOrder::ALL }
    }

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
    /// Counters that the platform has and that were never known, for example hidden likes: their gains are 0.
    #[schemars(example = ["share_count", "saved_count"])]
    unknown_counters: UnknownCounters,
}

/// The window and the metric of a ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopContentMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// Metric that videos are ranked by.
    metric: GainMetric,
}

pub(super) const TOOL: Tool = Tool {
    name: "rank_content",
    description: "Rank posts (videos) by what they gained in a window of UTC days: views, likes, comments, shares or \
        engagement (likes, comments and shares). Use it for which posts performed best in a period, also per \
        account, creator, tag (category, metadata), hashtag or collection; each entry names its creator and \
        account. metrics are gains of the window, engagement_rate a fraction of the views gained, view_count \
        the latest total. posted=in_window ranks only posts of the window. order_direction=asc lists losses.",
    answer: Answer::Response("listTopContent"),
};

/// Rank videos by gains
///
/// Account-discovered and individually tracked videos that gained something over the window, by the metric and then by id;
/// with `order_direction=asc` all, from the largest loss on.
/// `data_as_of` is the latest observation of the accounts and videos in scope: those of the organization, limited by
/// `platform`, `account_id`, `creator_id`, `category` and `metadata.KEY`.
#[endpoint(
    operation_id = "listTopContent",
    responses((status_code = 404, description = "The account, creator or collection does not exist."))
)]
pub(super) async fn list(
    query: RankingQuery<RankingArgs>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<TopContent, TopContentMeta>>> {
    rank(query, &analytics).await
}

pub(super) async fn rank(
    query: RankingQuery<RankingArgs>,
    analytics: &Analytics,
) -> Result<CachedPage<Ranking<TopContent, TopContentMeta>>> {
    let request = analytics.window(query, |query| query.window)?;
    let WindowArgs { args: RankingQuery { rule: args, page, .. }, window, .. } = &request;
    let filter = args.filter(*window);
    let compute = async |scope: SubjectScope, history: VersionedHistory| {
        let filter = filter.with_membership(&analytics.pg, analytics.organization).await?;
        let ranking = ContentRanking {
            filter: &filter,
            metric: args.metric,
            window: *window,
            direction: args.order.direction(),
            include_all: args.order.includes_all(),
            after: page.after(),
            limit: page.entry_count(),
        };
        let ranked = top_content::rank(&analytics.pg, &history, &scope, &ranking).await?;
        let meta = TopContentMeta { window: request.meta(ranked.as_of), metric: args.metric };
        let page = page.page(ranked.videos, |video| (video.rank, video.identity.id))?;
        let entry = |RankedContent { identity, unknown_counters, .. }: &RankedContent| TopContent {
            identity: identity.clone(),
            metrics: ranked.gains.get(&identity.internal_id).copied().unwrap_or_default().into(),
            unknown_counters: unknown_counters.clone(),
        };
        let data = page.entries.iter().map(entry).collect();
        Ok(page.into_response(data, meta))
    };
    // Whether a video is unavailable has no version.
    let records = match args.filter.is_unavailable {
        Some(_) => RecordDependency::Tracking,
        None => RecordDependency::Profiles,
    };
    let scope_query = top_content::find_scope(analytics.organization, &filter);
    analytics.respond_page(&request, records, scope_query, compute).await
}
