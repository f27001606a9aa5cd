//! Videos that were found on tracked accounts.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use uuid::Uuid;

use super::fields::{AccountIdPath, VideoPath, VideosQuery};
use super::metrics;
use crate::app::App;
use crate::http::input::{ApiEnum, FromQuery, ListSort, Parts, QueryParams, parse_uuid};
use crate::http::route::{get_or_head, parameter_except};
use crate::http::{Args, Caller, Collection, Data, ListParams, Path, Problem, Query};
use crate::model::video::{Video, VideoType};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::videos::{self, VideoFilter, VideoSort};

/// Segments beside `{video_id}` that are no videos.
const LITERALS: &[&str] = &["metrics"];

pub(super) fn router() -> Router {
    Router::with_path("account-videos")
        .push(get_or_head(list))
        .push(metrics::of_account_videos())
        .push(parameter_except("{video_id}", LITERALS).push(get_or_head(get)))
}

impl ApiEnum for VideoSort {
    const VARIANTS: &'static [(&'static str, Self)] = &[
        ("create_time", VideoSort::CreateTime),
        ("view_count", VideoSort::ViewCount),
        ("like_count", VideoSort::LikeCount),
        ("play_count", VideoSort::PlayCount),
    ];
}

impl ListSort for VideoSort {
    const DEFAULT: (Self, SortDirection) = (VideoSort::CreateTime, SortDirection::Desc);
}

/// The list of one account: its filter is the path.
pub(super) struct OfAccountQuery {
    filter: VideoFilter,
    params: ListParams<VideoSort>,
}

impl FromQuery for OfAccountQuery {
    fn read(query: &mut QueryParams<'_>, parts: &Parts<'_>) -> Self {
        let account = parts.request.params().get("account_id").and_then(|text| parse_uuid(text).ok());
        let filter =
            VideoFilter { account_id: Some(account.unwrap_or(Uuid::nil())), ..VideoFilter::default() };
        OfAccountQuery { params: ListParams::read(query, parts, &filter), filter }
    }
}

/// Lists the videos that were found on tracked accounts.
///
/// Those of all accounts together, newest first unless asked otherwise.
#[endpoint(operation_id = "listAccountVideos")]
async fn list(
    app: App,
    caller: Caller,
    query: Query<VideosQuery<VideoSort>>,
) -> Result<Collection<Video>, Problem> {
    let VideosQuery { filter, params } = query.0;
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Lists the videos that were found on one account.
///
/// Newest first, unless asked otherwise. `account_id` is an id here, not a username.
#[endpoint(operation_id = "listVideosOfAccount")]
pub(super) async fn list_of_account(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountIdPath>, Query<OfAccountQuery>)>,
) -> Result<Collection<Video>, Problem> {
    let Args((_, Query(OfAccountQuery { filter, params }))) = args;
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Reads one video that was found on a tracked account.
///
/// In the shape of the lists. A video that was only added on its own is found under `/videos`.
#[endpoint(operation_id = "getAccountVideo")]
async fn get(app: App, caller: Caller, path: Path<VideoPath>) -> Result<Data<Video>, Problem> {
    let (organization, view) = (caller.organization, VideoType::AccountVideo);
    let data = videos::get(&app.pg, organization, view, &app.readable, path.0.video_id).await?;
    Ok(Data { data })
}
