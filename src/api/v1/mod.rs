//! The retired first version: verbs in the path and bare JSON over the functions of the second. It gets nothing
//! new. Its form, its errors included, and the headers that say that it goes are `http::legacy`'s.

mod accounts;
mod videos;

use salvo::{Depot, Request, Router, handler};

use super::system::Meta;
use crate::http::input::fields::Params;
use crate::http::input::{FromQuery, Parts};
use crate::http::legacy::{Success, deprecated_on, sunset_on};
use crate::http::output::page::{ListSort, base_url};
use crate::http::route::read;
use crate::model::limits;
use crate::store::postgres::keyset::PageRequest;

pub(super) fn public() -> Router {
    Router::with_path("meta").push(read(read_meta))
}

pub(super) fn private() -> Router {
    Router::new().push(accounts::router()).push(videos::router())
}

/// Which part of a list is asked for.
struct PageQuery {
    limit: i64,
    offset: i64,
}

impl FromQuery for PageQuery {
    fn read(query: &mut Params<'_>, _parts: &Parts<'_>) -> Self {
        PageQuery {
            limit: query.integer("limit", &limits::PAGE_SIZE).unwrap_or(limits::DEFAULT_PAGE_SIZE),
            offset: query.integer("offset", &limits::OFFSET).unwrap_or(0),
        }
    }
}

impl PageQuery {
    /// The part in the order in which the second version lists by default.
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

/// Says that this version goes, and when.
#[handler]
async fn read_meta(req: &mut Request, depot: &mut Depot) -> Success<Meta> {
    let value = Meta::deprecated(&base_url(req, depot), "v1", deprecated_on(), sunset_on());
    Success { name: "meta", value }
}
