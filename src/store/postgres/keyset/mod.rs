//! Paging by key: a page begins after the row that the last one ended with, wherever that row stands by now.
//!
//! Here is what a page is: its sort, its position, its rows. The statement that reads it is in [`list`]. Ties break on
//! the id in the direction of the sort; rows without a sort value come last in both directions.

mod list;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(in crate::store) use list::{Blocks, List, Parents, Search, order};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SortDirection {
    Asc,
    Desc,
}

/// The sort value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SortKey {
    Null,
    Int(i64),
    Time(#[serde(with = "chrono::serde::ts_microseconds")] DateTime<Utc>),
    Text(String),
}

impl From<Option<DateTime<Utc>>> for SortKey {
    fn from(time: Option<DateTime<Utc>>) -> Self {
        time.map_or(SortKey::Null, SortKey::Time)
    }
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysetPosition {
    pub key: SortKey,
    pub id: Uuid,
}

/// A column that lists are sorted by.
#[derive(Debug, Clone, Copy)]
pub struct SortColumn {
    name: &'static str,
    nulls: Nulls,
}

/// Whether the column can be null, and where its index keeps the nulls, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    None,
    First,
    Last,
}

impl SortColumn {
    pub(in crate::store) const fn required(name: &'static str) -> Self {
        SortColumn { name, nulls: Nulls::None }
    }

    /// A nullable column whose index is `(… name …)`.
    pub(in crate::store) const fn nullable(name: &'static str) -> Self {
        SortColumn { name, nulls: Nulls::Last }
    }

    /// A nullable column whose index is `(… name desc nulls last …)`.
    pub(in crate::store) const fn nullable_in_descending_index(name: &'static str) -> Self {
        SortColumn { name, nulls: Nulls::First }
    }
}

/// What a list can be sorted by.
pub trait Sort: Copy {
    fn column(self) -> SortColumn;
}

/// Which page of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest<S> {
    pub sort: S,
    pub direction: SortDirection,
    pub after: Option<KeysetPosition>,
    /// Rows to leave out from there on; everything before the page is read, so a position is the better way.
    pub offset: i64,
    pub limit: i64,
    pub include_total: bool,
}

impl<S> PageRequest<S> {
    /// The rows to look at: those left out, the page, and one that tells whether there are more.
    const fn reach(&self) -> i64 {
        self.offset.saturating_add(self.limit + 1)
    }
}

/// A page of a list, with the position at which the next one begins.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub next: Option<KeysetPosition>,
    pub total: Option<i64>,
}

impl SortDirection {
    pub const fn as_str(self) -> &'static str {
        match self {
            SortDirection::Asc => "asc",
            SortDirection::Desc => "desc",
        }
    }
}

impl<T> ListPage<T> {
    /// Cuts the row beyond the page off and says where the next page begins.
    pub(in crate::store) fn new<S>(
        mut rows: Vec<T>,
        total: Option<i64>,
        page: &PageRequest<S>,
        position: impl Fn(&T) -> KeysetPosition,
    ) -> Self {
        let limit = usize::try_from(page.limit).unwrap_or_default();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(position);
        ListPage { items: rows, next, total }
    }
}
