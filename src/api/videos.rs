//! Individually tracked videos.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use serde_json::{Value, json};

use super::fields::VideoPath;
use super::new_records::NewVideoBody;
use super::{batches, daily, deltas, metrics, refreshes};
use crate::app::App;
use crate::http::input::{FromBody, ListQuery, ListSort};
use crate::http::route::{get_or_head, get_records, parameter_except, post_without_body};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, Deadline, ExternalTimeout, IdempotencyKey, NoContent,
    Path, Problem, Result, in_transaction,
};
use crate::model::identifier::{ShortLink, VideoIdentifier, VideoReference};
use crate::model::video::{Video, VideoType};
use crate::platforms::short_links::{self, ShortLinkError};
use crate::store::Write;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::videos::change::{self, NewVideo, VideoChange};
use crate::store::records::videos::{self, TrackedVideoSort, VideoFilter};

pub(super) fn router() -> Router {
    Router::with_path("videos")
        .push(get_records(list))
        .post(create)
        .push(Router::with_path("batch").post(batches::create_videos))
        .push(Router::with_path("metrics").push(get_or_head(metrics::get_videos)).post(metrics::post_videos))
        .push(Router::with_path("deltas").push(get_or_head(deltas::get)).post(deltas::post))
        .push(
            parameter_except("{video_id}", &["batch", "metrics", "deltas"])
                .push(get_records(get))
                .patch(patch)
                .delete(delete)
                .push(Router::with_path("analytics").push(get_or_head(daily::get_video)))
                .push(Router::with_path("refresh").push(post_without_body(refreshes::refresh_video))),
        )
}

impl ListSort for TrackedVideoSort {
    const DEFAULT: (Self, SortDirection) = (TrackedVideoSort::AddedAt, SortDirection::Desc);
}

impl FromBody for VideoChange {
    fn example() -> Value {
        json!({"is_active": false, "metadata": {"campaign": "summer"}})
    }
}

/// List individually tracked videos
///
/// By default, the latest added video comes first. Videos that were only discovered on an account are listed under
/// `/account-videos`.
#[endpoint(operation_id = "listVideos")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<VideoFilter, TrackedVideoSort>,
) -> Result<Collection<Video>> {
    let ListQuery { filter, params } = query;
    let (organization, view) = (caller.organization, VideoType::Video);
    let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// Track a video
///
/// Returns at once; the first scrape follows within seconds. A video that was discovered on an account keeps its id and is
/// in both lists. If the video is already tracked individually, the response is 409 and `detail` names it. A short link is
/// resolved by a request to the platform, which may take up to 10 seconds.
#[endpoint(
    operation_id = "createVideo",
    responses((status_code = 502, description = "The platform did not resolve the short link."))
)]
async fn create(
    app: App,
    caller: Caller,
    deadline: Deadline,
    args: Args<(Body<NewVideoBody>, IdempotencyKey)>,
) -> Result<Created<Video>> {
    let Args((Body(body), idempotency)) = args;
    let (video, _in_flight) = match body.identifier(&app, "identifier")? {
        VideoIdentifier::Video(video) => (video, None),
        VideoIdentifier::ShortLink(link) => {
            if let Some(first) = idempotency.stored_response(&app, caller.organization).await? {
                return Ok(first);
            }
            let in_flight = idempotency.begin(&app, caller.organization)?;
            (resolve_short_link(&app, &deadline, "identifier", link).await?, in_flight)
        }
    };
    let now = app.clock.now().await;
    let new = NewVideo { platform: body.platform, video, tracking: body.tracking };
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let id = change::create(&mut write, &new, now).await?;
        let created = Created::at(format!("/v2/videos/{id}"), &fetch(&app, &mut write, id).await?)?;
        idempotency.store(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

/// Resolves a short link by a request to the platform.
pub(super) async fn resolve_short_link(
    app: &App,
    deadline: &Deadline,
    field: &'static str,
    link: ShortLink,
) -> Result<VideoReference> {
    let failed = |cause: &str| {
        Problem::upstream(
            "the platform did not resolve the short link: try again, or send the video URL",
            cause,
        )
    };
    let resolve = short_links::resolve(link, app.settings.short_link_url.as_ref());
    match deadline.await_external(short_links::RESOLVE_TIMEOUT, resolve).await {
        Ok(Ok(video)) => Ok(video),
        Ok(Err(error @ ShortLinkError::NoVideo)) => {
            Err(Problem::invalid_field(field, format!("is not a video: {error}")))
        }
        Ok(Err(ShortLinkError::Failed(cause))) => Err(failed(&cause)),
        Err(ExternalTimeout) => Err(failed("timed out")),
    }
}

async fn fetch(app: &App, write: &mut Write, id: uuid::Uuid) -> Result<Video> {
    let (organization, view) = (write.organization(), VideoType::Video);
    Ok(videos::get(write.connection(), organization, view, &app.readable, id).await?)
}

/// Get an individually tracked video
///
/// A video that was only discovered on an account is under `/account-videos`.
#[endpoint(operation_id = "getVideo")]
async fn get(app: App, caller: Caller, path: Path<VideoPath>) -> Result<Data<Video>> {
    let (organization, view) = (caller.organization, VideoType::Video);
    let data = videos::get(&app.pg, organization, view, &app.readable, path.0.video_id).await?;
    Ok(Data { data })
}

/// Update a video
///
/// Changes only the fields that are sent. They affect individual tracking only: a video that was also discovered on an
/// account is still updated with that account.
#[endpoint(operation_id = "updateVideo")]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<VideoPath>, Body<VideoChange>)>,
) -> Result<Data<Video>> {
    let Args((Path(path), Body(change))) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        change::update(&mut write, path.video_id, &change).await?;
        let data = fetch(&app, &mut write, path.video_id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Stop tracking a video
///
/// Deletes the video and its history, unless it was also discovered on a tracked account.
#[endpoint(operation_id = "deleteVideo")]
async fn delete(app: App, caller: Caller, path: Path<VideoPath>) -> Result<NoContent> {
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        change::delete(&mut write, path.0.video_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
