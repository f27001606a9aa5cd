//! Videos of either kind: discovered on an account, tracked individually, or both.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;

use super::fields::{PLATFORM_FILTER, VideoPath};
use super::{ages, breakouts, sparklines, top_content};
use crate::app::App;
use crate::http::input::{FromQuery, ListSort, QueryParams};
use crate::http::route::{get_or_head, parameter_except};
use crate::http::{Caller, Collection, Data, ListParams, Path, Query, Result};
use crate::model::content::Content;
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_MEDIA_TYPES, MEDIA_TYPE_CHARS, MIN_VIEWS};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::content::{self, ContentFilter, ContentSort};
use crate::store::records::videos::VideoSort;

pub(super) fn router() -> Router {
    Router::with_path("content")
        .push(get_or_head(list))
        .push(Router::with_path("top").push(get_or_head(top_content::list)))
        .push(Router::with_path("timeseries").push(get_or_head(sparklines::get_content)))
        .push(Router::with_path("ages").push(get_or_head(ages::get_many)))
        .push(Router::with_path("breakouts").push(get_or_head(breakouts::list)))
        .push(
            parameter_except("{video_id}", &["top", "timeseries", "ages", "breakouts"])
                .push(get_or_head(get))
                .push(Router::with_path("ages").push(get_or_head(ages::get_video))),
        )
}

impl ListSort for ContentSort {
    const DEFAULT: (Self, SortDirection) = (ContentSort::As(VideoSort::CreateTime), SortDirection::Desc);
}

const KIND_FILTER: &str = "Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds \
                           matches either.";
const MEDIA_TYPE_FILTER: &str = "Filter by media types, as the platform reports them, of which one matches exactly. \
                                 Videos without a media type do not match.";
const POSTED_AFTER: &str = "Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without \
                            a `create_time` do not match.";
const POSTED_BEFORE: &str = "Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without \
                             a `create_time` do not match.";

/// Reads the filters of lists and rankings of content.
pub(super) fn read_filter(query: &mut QueryParams<'_>) -> ContentFilter {
    ContentFilter {
        platform: query.describe(PLATFORM_FILTER).variant("platform"),
        account_id: query.describe("Filter by account.").uuid("account_id"),
        creator_id: query.describe("Filter by the creator of the account.").uuid("creator_id"),
        category: query
            .describe("Filter by the category of the account (exact match).")
            .text("category", MAX_CATEGORY_CHARS),
        kind: query.describe(KIND_FILTER).variant("kind"),
        is_active: query.describe("Filter by `is_active`.").boolean("is_active"),
        is_unavailable: query.describe("Filter by `is_unavailable`.").boolean("is_unavailable"),
        media_type: query.describe(MEDIA_TYPE_FILTER).texts("media_type", MAX_MEDIA_TYPES, &MEDIA_TYPE_CHARS),
        posted_after: query.describe(POSTED_AFTER).date_or_time("posted_after"),
        posted_before: query.describe(POSTED_BEFORE).date_or_time("posted_before"),
        min_views: query.describe("Lowest `view_count`.").integer("min_views", &MIN_VIEWS),
        q: query.describe("Filter by a substring of the caption, ignoring case.").search_text("q"),
    }
}

/// Filters and page of the list.
struct ContentQuery {
    filter: ContentFilter,
    params: ListParams<ContentSort>,
}

impl FromQuery for ContentQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let filter = read_filter(query);
        ContentQuery { params: ListParams::read(query, &filter), filter }
    }
}

/// List content
///
/// Videos discovered on accounts and videos tracked individually, each once; `kinds` tells which of both applies. By
/// default, the newest video comes first. `added_at` of a video of both kinds is the earlier one.
#[endpoint(operation_id = "listContent")]
async fn list(app: App, caller: Caller, query: Query<ContentQuery>) -> Result<Collection<Content>> {
    let ContentQuery { filter, params } = query.0;
    let found = content::list(&app.pg, caller.organization, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Get a video
///
/// Discovered on an account, tracked individually, or both. `added_at` of a video of both kinds is the earlier one.
#[endpoint(operation_id = "getContent")]
async fn get(app: App, caller: Caller, path: Path<VideoPath>) -> Result<Data<Content>> {
    let data = content::get(&app.pg, caller.organization, &app.readable, path.0.video_id).await?;
    Ok(Data { data })
}
