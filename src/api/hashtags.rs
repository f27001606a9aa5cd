//! The ranking of hashtags.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::input::WindowParams;
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Cached, Query, RecordDependency, Result, WindowArgs, WithMeta};
use crate::model::gains::{GainMetric, Metrics};
use crate::model::limits::{DEFAULT_HASHTAGS_SIZE, MAX_RANKING_SIZE};
use crate::store::analytics::hashtags::{self, HashtagRanking, RankedHashtag};
use crate::store::analytics::{SubjectScope, VersionedHistory, top_content};
use crate::store::records::content::ContentFilter;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct HashtagsQuery {
    #[serde(flatten)]
    window: WindowParams,
    /// Counter whose gains count; `engagement` is likes, comments and shares.
    #[serde(default)]
    metric: GainMetric,
    #[serde(flatten)]
    filter: ContentFilter,
    /// Maximum number of hashtags.
    #[schemars(range(min = 1, max = MAX_RANKING_SIZE), extend("default" = DEFAULT_HASHTAGS_SIZE))]
    limit: usize,
}

/// A hashtag with the videos that carry it.
#[derive(Serialize, JsonSchema)]
pub(super) struct HashtagEntry {
    /// Hashtag in lower case, without `#`.
    #[schemars(example = &"surf")]
    hashtag: String,
    /// Number of videos that carry it, whenever they were posted.
    #[schemars(example = 42)]
    videos: i64,
    /// Gains of these videos in the window.
    metrics: Metrics,
}

/// Rank hashtags by gains
///
/// Hashtags of the videos that match, by what these gained over the window and then by name. Those without gains are
/// included. If more than 300,000 videos with hashtags match, the response is 409 and `detail` says what to narrow.
#[endpoint(
    operation_id = "listHashtags",
    responses(
        (status_code = 404, description = "The account, creator or collection does not exist."),
        (status_code = 409, description = "Too many videos match."),
    )
)]
pub(super) async fn list(
    query: Query<HashtagsQuery>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<HashtagEntry>, WindowMeta>>> {
    let request = analytics.window(query.0, |query| query.window)?;
    let WindowArgs { args, window, .. } = &request;
    let HashtagsQuery { filter, metric, limit, .. } = args;
    let compute = async |scope: SubjectScope, history: VersionedHistory| {
        let filter = &filter.with_membership(&analytics.pg, analytics.organization).await?;
        let ranking = HashtagRanking { filter, metric: *metric, window: *window, limit: *limit };
        let (ranked, as_of) = hashtags::rank(&analytics.pg, &history, &scope, &ranking).await?;
        let entry = |RankedHashtag { hashtag, videos, gains }| HashtagEntry {
            hashtag,
            videos,
            metrics: gains.into(),
        };
        Ok(WithMeta { data: ranked.into_iter().map(entry).collect(), meta: request.meta(as_of) })
    };
    // Whether a video is unavailable has no version.
    let records = match filter.is_unavailable {
        Some(_) => RecordDependency::Tracking,
        None => RecordDependency::Profiles,
    };
    let scope_query = top_content::find_scope(analytics.organization, filter);
    analytics.respond(&request, records, scope_query, compute).await
}
