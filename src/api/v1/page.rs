//! Paging in v1: by offset, in the default order of v2.

use crate::http::input::{FromQuery, ListSort, QueryParams};
use crate::model::limits;
use crate::store::postgres::keyset::PageRequest;

pub(super) struct PageQuery {
    limit: i64,
    offset: i64,
}

impl FromQuery for PageQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        PageQuery {
            limit: query.integer("limit", &limits::PAGE_SIZE).unwrap_or(limits::DEFAULT_PAGE_SIZE),
            offset: query.integer("offset", &limits::OFFSET).unwrap_or(0),
        }
    }
}

impl PageQuery {
    pub(super) fn page<S: ListSort>(&self) -> PageRequest<S> {
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
