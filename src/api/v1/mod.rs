//! The deprecated v1: verbs in the path and bare JSON, over the functions of v2. It gets no new features.

mod accounts;
mod format;
mod videos;

use salvo::{Depot, Request, Router, handler};

pub use format::DeprecationHeaders;
use format::{DEPRECATED, SUNSET, Success};

use super::system::Meta;
use crate::http::forwarded::base_url;
use crate::http::route::get_or_head;

pub(super) fn public() -> Router {
    Router::with_path("meta").push(get_or_head(get_meta))
}

pub(super) fn private() -> Router {
    Router::new().push(accounts::router()).push(videos::router())
}

#[handler]
async fn get_meta(req: &mut Request, depot: &mut Depot) -> Success<Meta> {
    let value = Meta::deprecated(&base_url(req, depot), "v1", DEPRECATED, SUNSET);
    Success { name: "meta", value }
}
