//! Search over usernames, creator names and captions at once.

use std::time::Instant;

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;
use tracing::Instrument;

use crate::app::App;
use crate::http::input::{FromQuery, Parts, QueryParams};
use crate::http::route::get_or_head;
use crate::http::{Caller, Problem, Query, WithMeta};
use crate::model::limits::{DEFAULT_SHORT_LIST_SIZE, SHORT_LIST_SIZE};
use crate::store::search::{EffectiveCaps, Sections};
use crate::telemetry::{metrics, trace};

pub(super) fn router() -> Router {
    Router::with_path("search").push(get_or_head(search))
}

struct SearchQuery {
    q: String,
    limit: i64,
}

impl FromQuery for SearchQuery {
    fn read(query: &mut QueryParams<'_>, _parts: &Parts<'_>) -> Self {
        SearchQuery {
            q: query
                .describe("What to look for; nothing is found by nothing.")
                .search_text("q")
                .unwrap_or_default(),
            limit: query.describe("The most matches of each kind.").integer_or(
                "limit",
                &SHORT_LIST_SIZE,
                DEFAULT_SHORT_LIST_SIZE,
            ),
        }
    }
}

/// What was searched for, and how many matches each section may have.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchMeta {
    /// The query as it was understood: trimmed.
    #[schemars(example = &"tide")]
    query: String,
    /// The `limit` that was asked for.
    #[schemars(example = 10)]
    limit_per_section: i64,
    /// How many matches each section may have in effect.
    effective_caps: EffectiveCaps,
}

/// Searches usernames, creator names and captions at once.
///
/// Finds every text that contains the query, in any case, best matches first.
#[endpoint(operation_id = "search")]
async fn search(
    app: App,
    caller: Caller,
    query: Query<SearchQuery>,
) -> Result<WithMeta<Sections, SearchMeta>, Problem> {
    let SearchQuery { q, limit } = query.0;
    let most = usize::try_from(limit).unwrap_or_default();
    let data = watched(app.search.search(&app.pg, caller.organization, &q, most)).await?;
    let meta = SearchMeta { query: q, limit_per_section: limit, effective_caps: data.effective_caps };
    Ok(WithMeta { data, meta })
}

/// Does a search so that traces and metrics see how long it takes, and nothing of what is sought.
async fn watched<T>(work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let span = crate::traced!("search", http.route = trace::current_route().as_deref());
    let done = work.instrument(span).await;
    if let Some(metrics) = metrics::instruments() {
        metrics::record_duration(&metrics.search_duration, began.elapsed(), &[]);
    }
    done
}
