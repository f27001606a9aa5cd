//! Full-text search over usernames, creator names and captions.

use std::time::Instant;

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Instrument;

use super::mcp::tool::{Answer, Tool};
use crate::app::App;
use crate::http::{Caller, Query, Result, WithMeta};
use crate::model::limits::{DEFAULT_SHORT_LIST_SIZE, MAX_QUERY_CHARS, MAX_SHORT_LIST_SIZE};
use crate::store::search::{EffectiveCaps, Sections};
use crate::telemetry::{metrics, trace};

#[derive(Deserialize, JsonSchema)]
struct SearchQuery {
    /// Text to find; an empty one finds nothing.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    q: Option<String>,
    /// Maximum number of matches per section.
    #[schemars(range(min = 1, max = MAX_SHORT_LIST_SIZE), extend("default" = DEFAULT_SHORT_LIST_SIZE))]
    limit: i64,
}

/// The query, and the limits of its sections.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchMeta {
    /// The query, trimmed.
    #[schemars(example = &"tide")]
    query: String,
    /// The requested `limit`.
    #[schemars(example = 10)]
    limit_per_section: i64,
    /// Limits in effect.
    effective_caps: EffectiveCaps,
}

pub(super) const TOOL: Tool = Tool {
    name: "search",
    description: "Find accounts by username, creators by name and posts by caption, ignoring case; best matches first, \
        in three sections. Use it to get the id of something that is named in words before calling other \
        tools. follower_count and view_count are latest counters. For posts with a hashtag, use list_content \
        or rank_content instead.",
    answer: Answer::Response("search"),
};

/// Search names and captions
///
/// Finds usernames, creator names and captions that contain the query, ignoring case. Best matches come first.
#[endpoint(operation_id = "search")]
pub(super) async fn search(
    app: App,
    caller: Caller,
    query: Query<SearchQuery>,
) -> Result<WithMeta<Sections, SearchMeta>> {
    let SearchQuery { q, limit } = query.0;
    let q = q.unwrap_or_default();
    let cap = usize::try_from(limit).unwrap_or_default();
    // The span and the metric omit the query, which is client text.
    let span = crate::traced!("search", http.route = trace::current_route().as_deref());
    let started = Instant::now();
    let found = app.search.search(&app.pg, caller.organization, &q, cap).instrument(span).await;
    if let Some(metrics) = metrics::instruments() {
        metrics::record_duration(&metrics.search_duration, started.elapsed(), &[]);
    }
    let data = found?;
    let meta = SearchMeta { query: q, limit_per_section: limit, effective_caps: data.effective_caps };
    Ok(WithMeta { data, meta })
}
