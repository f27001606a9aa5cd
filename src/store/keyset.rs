//! Paging by key: a page begins after the row that the last one ended with, wherever that row stands by now.
//!
//! Column names come from enums alone and values are always bound. Ties break on the id in the direction of the
//! sort; rows without a sort value come last in both directions, in a branch of their own so that each of the two
//! branches follows an index.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Asc,
    Desc,
}

/// The sort value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    Null,
    Int(i64),
    Time(#[serde(with = "chrono::serde::ts_microseconds")] DateTime<Utc>),
    Text(String),
}

impl From<Option<DateTime<Utc>>> for Key {
    fn from(time: Option<DateTime<Utc>>) -> Self {
        time.map_or(Key::Null, Key::Time)
    }
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub key: Key,
    pub id: Uuid,
}

/// A column that lists are sorted by.
#[derive(Debug, Clone, Copy)]
pub struct Column {
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

impl Column {
    pub(super) const fn required(name: &'static str) -> Self {
        Column { name, nulls: Nulls::None }
    }

    /// A nullable column whose index is `(… name …)`.
    pub(super) const fn nullable(name: &'static str) -> Self {
        Column { name, nulls: Nulls::Last }
    }

    /// A nullable column whose index is `(… name desc nulls last …)`.
    pub(super) const fn nullable_in_descending_index(name: &'static str) -> Self {
        Column { name, nulls: Nulls::First }
    }
}

/// What a list can be sorted by.
pub trait Sort: Copy {
    fn column(self) -> Column;
}

/// Which page of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<S> {
    pub sort: S,
    pub direction: Direction,
    pub after: Option<Position>,
    /// Rows to leave out from there on; everything before the page is read, so a position is the better way.
    pub offset: i64,
    pub limit: i64,
    pub include_total: bool,
}

impl<S> Page<S> {
    /// The rows to look at: those left out, the page, and one that tells whether there are more.
    const fn reach(&self) -> i64 {
        self.offset.saturating_add(self.limit + 1)
    }
}

/// A page of a list, with the position at which the next one begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice<T> {
    pub items: Vec<T>,
    pub next: Option<Position>,
    pub total: Option<i64>,
}

/// A list: the table, as `table alias`, its id, and a function that pushes the conditions after `where`.
pub(super) struct List<F> {
    pub(super) table: &'static str,
    pub(super) id: &'static str,
    pub(super) conditions: F,
}

impl<F: Fn(&mut QueryBuilder<Postgres>)> List<F> {
    /// Begins a query with `with page as (…)`: the ids and sort keys of the page and one row beyond it.
    /// The caller selects from `page` and ends with [`order`].
    pub(super) fn page<S: Sort>(&self, page: &Page<S>) -> QueryBuilder<Postgres> {
        let column = page.sort.column();
        let mut query = QueryBuilder::new("with page as (");
        let after_nulls = page.after.as_ref().is_some_and(|position| position.key == Key::Null);
        if column.nulls == Nulls::None {
            self.branch(&mut query, page, column, page.after.as_ref());
        } else {
            if !after_nulls {
                query.push("(");
                self.branch(&mut query, page, column, page.after.as_ref());
                query.push(") union all ");
            }
            query.push("(");
            self.null_branch(&mut query, page, column, page.after.as_ref().filter(|_| after_nulls));
            query.push(")");
        }
        query.push(") ");
        query
    }

    /// The rows that have a sort value.
    fn branch<S>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &Page<S>,
        column: Column,
        after: Option<&Position>,
    ) {
        let (Column { name, nulls }, id) = (column, self.id);
        self.select(query, column);
        if nulls != Nulls::None {
            query.push(format_args!(" and {name} is not null"));
        }
        if let Some(Position { key, id: last }) = after {
            let beyond = if page.direction == Direction::Asc { ">" } else { "<" };
            query.push(format_args!(" and ({name}, {id}) {beyond} ("));
            match key {
                Key::Null => query.push("null"),
                Key::Int(value) => query.push_bind(*value),
                Key::Time(value) => query.push_bind(*value),
                Key::Text(value) => query.push_bind(value.clone()),
            };
            query.push(", ").push_bind(*last).push(")");
        }
        let direction = page.direction.sql();
        let nulls = match (nulls, page.direction) {
            (Nulls::None, _) => "",
            (Nulls::Last, Direction::Asc) | (Nulls::First, Direction::Desc) => " nulls last",
            (Nulls::Last, Direction::Desc) | (Nulls::First, Direction::Asc) => " nulls first",
        };
        query.push(format_args!(" order by {name} {direction}{nulls}, {id} {direction} limit "));
        query.push_bind(page.reach());
    }

    /// The rows without a sort value.
    fn null_branch<S>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &Page<S>,
        column: Column,
        after: Option<&Position>,
    ) {
        let (name, id) = (column.name, self.id);
        self.select(query, column);
        query.push(format_args!(" and {name} is null"));
        if let Some(position) = after {
            let beyond = if page.direction == Direction::Asc { ">" } else { "<" };
            query.push(format_args!(" and {id} {beyond} ")).push_bind(position.id);
        }
        query.push(format_args!(" order by {id} {} limit ", page.direction.sql()));
        query.push_bind(page.reach());
    }

    fn select(&self, query: &mut QueryBuilder<Postgres>, column: Column) {
        query.push(format_args!(
            "select {} as id, {} as sort_key from {} where ",
            self.id, column.name, self.table
        ));
        (self.conditions)(query);
    }

    /// Counts all rows of the list, when the page asks for it.
    pub(super) async fn total<S>(&self, pg: &PgPool, page: &Page<S>) -> Result<Option<i64>, Error> {
        if !page.include_total {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("select count(*) from ");
        query.push(self.table).push(" where ");
        (self.conditions)(&mut query);
        Ok(Some(query.build_query_scalar().fetch_one(pg).await?))
    }
}

impl Direction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::Asc => "asc",
            Direction::Desc => "desc",
        }
    }

    const fn sql(self) -> &'static str {
        self.as_str()
    }
}

/// Ends a query of [`List::page`] with the order of the page.
pub(super) fn order<S>(query: &mut QueryBuilder<Postgres>, page: &Page<S>) {
    let direction = page.direction.sql();
    query.push(format_args!(
        " order by page.sort_key {direction} nulls last, page.id {direction} limit {} offset {}",
        page.limit + 1,
        page.offset
    ));
}

impl<T> Slice<T> {
    /// Cuts the row beyond the page off and says where the next page begins.
    pub(super) fn new<S>(
        mut rows: Vec<T>,
        total: Option<i64>,
        page: &Page<S>,
        position: impl Fn(&T) -> Position,
    ) -> Self {
        let limit = usize::try_from(page.limit).unwrap_or_default();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(position);
        Slice { items: rows, next, total }
    }
}
