//! Videos of either kind: discovered on an account, tracked individually, or both.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;

use super::fields::VideoPath;
use super::mcp::tool::{Answer, Tool};
use super::{ages, breakouts, hashtags, sparklines, top_content};
use crate::app::App;
use crate::http::input::{ListQuery, ListSort};
use crate::http::route::{get_or_head, get_records, parameter_except};
use crate::http::{Caller, Collection, Data, Path, Result};
use crate::model::content::Content;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::content::{self, ContentFilter, ContentSort};
use crate::store::records::videos::VideoSort;

pub(super) fn router() -> Router {
    Router::with_path("content")
        .push(get_records(list))
        .push(Router::with_path("top").push(get_or_head(top_content::list)))
        .push(Router::with_path("timeseries").push(get_or_head(sparklines::get_content)))
        .push(Router::with_path("ages").push(get_or_head(ages::get_many)))
        .push(Router::with_path("breakouts").push(get_or_head(breakouts::list)))
        .push(Router::with_path("hashtags").push(get_or_head(hashtags::list)))
        .push(
            parameter_except("{video_id}", &["top", "timeseries", "ages", "breakouts", "hashtags"])
                .push(get_records(get))
                .push(Router::with_path("ages").push(get_or_head(ages::get_video))),
        )
}

impl ListSort for ContentSort {
    const DEFAULT: (Self, SortDirection) = (ContentSort::As(VideoSort::CreateTime), SortDirection::Desc);
}

pub(super) const LIST_TOOL: Tool = Tool {
    name: "list_content",
    description: "List posts (videos) with their latest counters, newest first by default; order_by=view_count for the \
        most viewed ever. Filters: platform, account, creator, tag (category, metadata), hashtag, \
        collection, kind, posting date, min_views, caption text. view_count, like_count, comment_count, \
        share_count, saved_count and play_count are totals since posting, null when unknown; engagement_rate \
        is a fraction of views. For what posts gained in a period use rank_content.",
    answer: Answer::Response("listContent"),
};

/// List content
///
/// Videos discovered on accounts and videos tracked individually, each once; `kinds` tells which of both applies. By
/// default, the newest video comes first. `added_at` of a video of both kinds is the earlier one.
#[endpoint(operation_id = "listContent")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<ContentFilter, ContentSort>,
) -> Result<Collection<Content>> {
    let ListQuery { filter, params } = query;
    let found = content::list(&app.pg, caller.organization, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

pub(super) const GET_TOOL: Tool = Tool {
    name: "get_video",
    description: "One post (video) by its id: caption, hashtags, link, author, posting time (UTC), the latest counters \
        of the platform since posting (null when unknown), and whether it is still available and tracked.",
    answer: Answer::Response("getContent"),
};

/// Get a video
///
/// Discovered on an account, tracked individually, or both. `added_at` of a video of both kinds is the earlier one.
#[endpoint(operation_id = "getContent")]
async fn get(app: App, caller: Caller, path: Path<VideoPath>) -> Result<Data<Content>> {
    let data = content::get(&app.pg, caller.organization, &app.readable, path.0.video_id).await?;
    Ok(Data { data })
}
