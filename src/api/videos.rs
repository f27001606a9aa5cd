//! Videos of an organization.

use salvo::Router;

use super::{daily, deltas, metrics};
use crate::http::route::{parameter, read};

/// Segments beside `{video_id}` that are no videos.
const LITERALS: &[&str] = &["metrics", "deltas"];

pub(super) fn router() -> Router {
    Router::with_path("videos").push(metrics::of_videos()).push(deltas::of_videos()).push(
        parameter("{video_id}", LITERALS).push(Router::with_path("analytics").push(read(daily::of_video))),
    )
}
