//! Account-discovered videos.

use salvo::{Router, Writer};
use salvo_oapi::{Operation, endpoint};

use super::fields::{AccountIdPath, VideoPath};
use super::metrics;
use crate::app::App;
use crate::http::input::violations::Violations;
use crate::http::input::{ListQuery, ListSort, RequestContext, RequestPart, parse_uuid};
use crate::http::route::{get_or_head, get_records, parameter_except};
use crate::http::{Args, Caller, Collection, Data, ListParams, Path, Result};
use crate::model::video::{Video, VideoType};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::videos::{self, VideoFilter, VideoSort};

pub(super) fn router() -> Router {
    Router::with_path("account-videos")
        .push(get_records(list))
        .push(
            Router::with_path("metrics")
                .push(get_or_head(metrics::get_account_videos))
                .post(metrics::post_account_videos),
        )
        .push(parameter_except("{video_id}", &["metrics"]).push(get_records(get)))
}

impl ListSort for VideoSort {
    const DEFAULT: (Self, SortDirection) = (VideoSort::CreateTime, SortDirection::Desc);
}

/// The page of one account's list, which is filtered by the path.
pub(super) struct AccountVideosQuery {
    filter: VideoFilter,
    params: ListParams<VideoSort>,
}

impl RequestPart for AccountVideosQuery {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let account_id = context.request.params().get("account_id").and_then(|text| parse_uuid(text).ok());
        let filter = VideoFilter { account_id, ..VideoFilter::default() };
        Some(AccountVideosQuery { params: ListParams::read(context, violations, &filter)?, filter })
    }

    fn describe(operation: &mut Operation) {
        ListParams::<VideoSort>::describe(operation);
    }
}

/// List account-discovered videos
///
/// Videos of all accounts; by default, the newest comes first.
#[endpoint(operation_id = "listAccountVideos")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<VideoFilter, VideoSort>,
) -> Result<Collection<Video>> {
    let ListQuery { filter, params } = query;
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// List an account's videos
///
/// Its account-discovered videos; by default, the newest video comes first. `account_id` must be an id, not a username.
#[endpoint(operation_id = "listVideosOfAccount")]
pub(super) async fn list_by_account(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountIdPath>, AccountVideosQuery)>,
) -> Result<Collection<Video>> {
    let Args((_, AccountVideosQuery { filter, params })) = args;
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Get an account-discovered video
///
/// A video that is only tracked individually is under `/videos`.
#[endpoint(operation_id = "getAccountVideo")]
async fn get(app: App, caller: Caller, path: Path<VideoPath>) -> Result<Data<Video>> {
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let data = videos::get(&app.pg, organization, view, &app.readable, path.0.video_id).await?;
    Ok(Data { data })
}
