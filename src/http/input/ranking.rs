//! The page of a ranking: its size, and the cursor of the entry that it starts after.
//!
//! Rankings are computed as a whole, because gains are sums. Entries are in descending order of a value, then by id.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::list::read_cursor;
use super::query::QueryParams;
use super::window::WindowParams;
use crate::http::output::cursor::{self, Binding};
use crate::http::output::page::{Pagination, Ranking};
use crate::http::output::problem::Problem;
use crate::model::limits::{DEFAULT_RANKING_SIZE, RANKING_SIZE};
use crate::store::postgres::keyset::{KeysetPosition, SortKey};

/// A requested page of a ranking.
#[derive(Debug, Clone, Serialize)]
pub struct RankingParams {
    limit: i64,
    after: Option<KeysetPosition>,
    #[serde(skip)]
    binding: Binding,
}

/// The page of a ranking, and where the next one starts.
#[derive(Debug)]
pub struct RankingPage<T> {
    pub entries: Vec<T>,
    pagination: Pagination,
}

impl RankingParams {
    /// Reads the page. Its cursor is bound to the window and to the filter, which includes what entries are ranked by.
    pub fn read(query: &mut QueryParams<'_>, window: &WindowParams, filter: &impl Serialize) -> Self {
        let organization = query.context.caller.map(|caller| caller.organization).unwrap_or_default();
        let canonical = json!([filter, window.canonical()]).to_string();
        let binding = Binding::new(&[
            query.context.request.matched_path().as_bytes(),
            organization.as_bytes(),
            canonical.as_bytes(),
        ]);
        let has_valid_filters = query.violations.is_empty();
        let limit = query.describe("Page size.").integer_or("limit", &RANKING_SIZE, DEFAULT_RANKING_SIZE);
        RankingParams { limit, after: read_cursor(query, &binding, has_valid_filters), binding }
    }

    /// The number of entries that decide a page: its own, and one that shows whether there is a next page.
    pub fn entry_count(&self) -> usize {
        usize::try_from(self.limit).unwrap_or_default() + 1
    }

    /// The value and the id of the entry after which the page starts.
    pub const fn after(&self) -> Option<(i64, Uuid)> {
        match &self.after {
            Some(KeysetPosition { key: SortKey::Int(value), id }) => Some((*value, *id)),
            _ => None,
        }
    }

    /// Sorts entries by their values and ids, and returns those of the page.
    pub fn select<T>(
        &self,
        mut entries: Vec<T>,
        position: impl Fn(&T) -> (i64, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        let order = |entry: &T| {
            let (value, id) = position(entry);
            (Reverse(value), id)
        };
        entries.sort_unstable_by_key(order);
        let start = self
            .after()
            .map_or(0, |(value, id)| entries.partition_point(|entry| order(entry) <= (Reverse(value), id)));
        self.page(entries.split_off(start), position)
    }

    /// Returns the page from the sorted entries after its start, of which there may be more than it shows.
    pub fn page<T>(
        &self,
        mut entries: Vec<T>,
        position: impl Fn(&T) -> (i64, Uuid),
    ) -> Result<RankingPage<T>, Problem> {
        let limit = usize::try_from(self.limit).unwrap_or_default();
        let has_next = entries.len() > limit;
        entries.truncate(limit);
        let encode = |last: &T| {
            let (value, id) = position(last);
            cursor::encode(&self.binding, &KeysetPosition { key: SortKey::Int(value), id })
        };
        let next_cursor = entries.last().filter(|_| has_next).map(encode).transpose()?;
        let pagination = Pagination { next_cursor, has_next, limit: self.limit, total_count: None };
        Ok(RankingPage { entries, pagination })
    }
}

impl<T> RankingPage<T> {
    /// Builds the response from what is shown of the entries.
    pub fn into_response<S, M>(self, data: Vec<S>, meta: M) -> Ranking<S, M> {
        Ranking { data, pagination: self.pagination, meta }
    }
}
