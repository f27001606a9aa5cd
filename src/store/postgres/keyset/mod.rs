//! Keyset pagination: a page starts after the sort key and id of the last row of the previous page.
//!
//! Ties are broken by id in the direction of the sort. Rows without a sort value come last in both directions. The
//! statement that reads a page is in [`list`].

mod filters;
mod list;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(in crate::store) use filters::{
    ParentFilter, SortedRows, TagFilter, TextBlocks, TextFilter, push_equal, push_labels,
};
pub(in crate::store) use list::List;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SortDirection {
    Asc,
    #[default]
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

/// The sort key and id of the last row of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysetPosition {
    pub key: SortKey,
    pub id: Uuid,
}

/// A column that a list is sorted by.
#[derive(Debug, Clone, Copy)]
pub struct SortColumn {
    name: &'static str,
    nulls: Nulls,
}

/// Where an ascending scan of the column's index returns nulls.
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

/// A sort of a list of records.
pub trait Sort: Copy {
    type Record;

    fn column(self) -> SortColumn;

    /// Returns the position of a record: its value of the column, and its id.
    fn position(self, record: &Self::Record) -> KeysetPosition;
}

/// A request for a page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest<S> {
    pub sort: S,
    pub direction: SortDirection,
    pub after: Option<KeysetPosition>,
    /// Rows to skip after `after`. They are read, so keyset pagination is faster.
    pub offset: i64,
    pub limit: i64,
    pub include_total: bool,
}

impl<S> PageRequest<S> {
    /// How many rows to read: those skipped, the page, and one that shows whether there is a next page.
    const fn rows_to_read(&self) -> i64 {
        self.offset.saturating_add(self.limit + 1)
    }
}

/// A page of a list, and the position after which the next one starts.
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

    /// What makes descending order out of this one, as a factor of the values.
    pub const fn sign(self) -> i64 {
        match self {
            SortDirection::Asc => -1,
            SortDirection::Desc => 1,
        }
    }
}
