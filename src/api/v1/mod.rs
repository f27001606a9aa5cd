//! The deprecated v1: verbs in the path and bare JSON, over the functions of v2. It gets no new features.

mod accounts;
mod format;
mod videos;

use salvo::{Depot, Request, Router, handler};

pub use format::DeprecationHeaders;
use format::{Success, deprecated_on, sunset_on};

use super::system::Meta;
use crate::http::forwarded::base_url;
use crate::http::input::{FromQuery, ListSort, Parts, QueryParams};
use crate::http::route::get_or_head;
use crate::model::limits;
use crate::store::postgres::keyset::PageRequest;

pub(super) fn public() -> Router {
    Router::with_path("meta").push(get_or_head(read_meta))
}

pub(super) fn private() -> Router {
    Router::new().push(accounts::router()).push(videos::router())
}

struct PageQuery {
    limit: i64,
    offset: i64,
}

impl FromQuery for PageQuery {
    fn read(query: &mut QueryParams<'_>, _parts: &Parts<'_>) -> Self {
        PageQuery {
            limit: query.integer("limit", &limits::PAGE_SIZE).unwrap_or(limits::DEFAULT_PAGE_SIZE),
            offset: query.integer("offset", &limits::OFFSET).unwrap_or(0),
        }
    }
}

impl PageQuery {
    /// The page in the default order of v2.
    fn page<S: ListSort>(&self) -> PageRequest<S> {
        let (sort, direction) = S::DEFAULT;
        PageRequest {
            sort,
            direction,
            after: None,
            offset: self.offset,
            limit: self.limit,
            include_total: false,
        }
    }
}

#[handler]
async fn read_meta(req: &mut Request, depot: &mut Depot) -> Success<Meta> {
    let value = Meta::deprecated(&base_url(req, depot), "v1", deprecated_on(), sunset_on());
    Success { name: "meta", value }
}
