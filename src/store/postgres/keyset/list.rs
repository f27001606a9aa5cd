//! Builds the statement that reads a page of a list. Column names come from enums, and values are bound.
//!
//! A page is a range of the sort's index, read until the page is full: first rows with a sort value, then rows without.
//! Conditions that the index does not cover are checked row by row (docs/paging.md lists the costs). `limit` is a literal,
//! because a generic plan would assume a tenth of the list.

use std::fmt::Display;

use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::filters::{ParentFilter, SortedRows, TagFilter, TextBlocks, TextFilter};
use super::{KeysetPosition, ListPage, Nulls, PageRequest, Sort, SortColumn, SortDirection, SortKey};
use crate::store::Error;

/// A filtered list of a table.
pub(in crate::store) struct List<F> {
    /// As `table alias`.
    pub table: &'static str,
    pub id: &'static str,
    /// Pushes the conditions after `where`.
    pub conditions: F,
    /// Limits the list to the children of some parents, each read as an index range of its own.
    pub parents: Option<ParentFilter>,
    /// The rows that have a sort value; all, if there is no such filter.
    pub sorted: Option<SortedRows>,
    pub text: Option<TextFilter>,
    pub tags: Option<TagFilter>,
    /// Whether to plan the statement for its values. A generic plan does not know how many rows a comparison with a bound
    /// leaves.
    pub custom_plan: bool,
}

/// How many rows of a range are scanned for a text or tags before they are searched for: twenty per row of the page.
fn max_scanned_rows(limit: i64) -> i64 {
    20 * limit.max(50)
}

impl<F: Fn(&mut QueryBuilder<Postgres>)> List<F> {
    /// Builds the query that reads a page and one row beyond it. `push_select` pushes the select from `page`, which has the
    /// ids and sort keys of these rows and of the skipped ones.
    pub fn select_page<S: Sort>(
        &self,
        page: &PageRequest<S>,
        push_select: impl FnOnce(&mut QueryBuilder<Postgres>),
    ) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("with ");
        if self.searched_text().is_some() || self.tags.is_some() {
            self.push_search(&mut query, page);
        } else {
            self.push_range(&mut query, page, "page", page.rows_to_read());
        }
        query.push(" ");
        push_select(&mut query);
        let PageRequest { direction, limit, offset, .. } = page;
        let direction = direction.as_str();
        query.push(format_args!(" order by page.sort_key {direction} nulls last, page.id {direction}"));
        query.push(format_args!(" limit {} offset {offset}", limit + 1));
        query
    }

    /// Reads a page with a query of [`List::select_page`], and counts all rows if the request includes the total.
    pub async fn fetch_page<S: Sort>(
        &self,
        pg: &PgPool,
        page: &PageRequest<S>,
        mut query: QueryBuilder<Postgres>,
    ) -> Result<ListPage<S::Record>, Error>
    where
        S::Record: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut items: Vec<S::Record> =
            query.build_query_as().persistent(!self.custom_plan).fetch_all(pg).await?;
        let total = if page.include_total { Some(self.count(pg).await?) } else { None };
        let limit = usize::try_from(page.limit).unwrap_or_default();
        let has_next = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_next).map(|last| page.sort.position(last));
        Ok(ListPage { items, next, total })
    }

    async fn count(&self, pg: &PgPool) -> Result<i64, Error> {
        let mut query = QueryBuilder::new("select count(*) from ");
        query.push(self.table).push(" where ");
        self.push_conditions(&mut query);
        Ok(query.build_query_scalar().persistent(!self.custom_plan).fetch_one(pg).await?)
    }

    /// Pushes all conditions on a row of the list, for statements that find rows in another way.
    pub fn push_conditions(&self, query: &mut QueryBuilder<Postgres>) {
        (self.conditions)(query);
        if let Some(parents) = &self.parents {
            parents.push_child_condition(query);
        }
        if let Some(text) = &self.text {
            text.push(query);
        }
        if let Some(TagFilter { organization, tags, push_indexed, .. }) = &self.tags {
            query.push(" and ");
            push_indexed(query, *organization, tags);
        }
    }

    /// Pushes all conditions on a row of the list, for statements that find rows in any order: a text through its blocks.
    pub fn push_search_conditions(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_conditions(query);
        if let Some((_, key, blocks)) = self.searched_text() {
            blocks.push_condition(query, key);
        }
    }

    /// The column, the key and the blocks of a text that has blocks.
    fn searched_text(&self) -> Option<(&str, &str, &TextBlocks)> {
        let TextFilter { column, key, blocks } = self.text.as_ref()?;
        Some((column, key.as_str(), blocks.as_ref()?))
    }

    /// Defines `name` as the first `count` rows after the page's position. Rows without a sort value are read only if
    /// those with one do not suffice.
    fn push_range<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        name: &str,
        count: i64,
    ) {
        let after = page.after.as_ref();
        if page.sort.column().nulls == Nulls::None {
            query.push(format_args!("{name} as materialized ("));
            self.push_part(query, page, RangePart::Valued(after), count);
        } else if let Some(KeysetPosition { key: SortKey::Null, id }) = after {
            query.push(format_args!("{name} as materialized ("));
            self.push_part(query, page, RangePart::Null(Some(*id)), count);
        } else {
            query.push("valued as materialized (");
            self.push_part(query, page, RangePart::Valued(after), count);
            query.push(format_args!("), {name} as materialized (select * from valued union all ("));
            let remaining = format_args!("(select {count} - count(*) from valued)");
            self.push_part(query, page, RangePart::Null(None), remaining);
            query.push(")");
        }
        query.push(")");
    }

    /// Selects the first rows of one part of the range, of all parents together.
    fn push_part<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        part: RangePart<'_>,
        count: impl Display,
    ) {
        let (sort_column, id) = (page.sort.column(), self.id);
        if let Some(ParentFilter { table, .. }) = &self.parents {
            query.push(format_args!("select child.* from {table} parent cross join lateral ("));
        }
        match (part, &self.sorted) {
            // A null of the column's type.
            (RangePart::Null(_), Some(_)) => query.push(format_args!(
                "select {id} as id, case when false then {} end as sort_key",
                sort_column.name
            )),
            _ => query.push(format_args!("select {id} as id, {} as sort_key", sort_column.name)),
        };
        if let Some((column, ..)) = self.searched_text() {
            query.push(format_args!(", {column} as text"));
        }
        if let Some(TagFilter { column, .. }) = &self.tags {
            query.push(format_args!(", {column} as tags"));
        }
        query.push(format_args!(" from {} where ", self.table));
        (self.conditions)(query);
        if let Some(ParentFilter { reference, .. }) = &self.parents {
            query.push(format_args!(" and {reference} = parent.id"));
        }
        self.push_part_condition(query, sort_column, page.comparison(), part);
        if let Some(text @ TextFilter { blocks: None, .. }) = &self.text {
            text.push(query);
        }
        // Even where all sort values are null: the planner knows this order of the index, but not that of ids alone.
        let order = match (part, &self.sorted) {
            (RangePart::Null(_), Some(_)) => format!("{id} {}", page.direction.as_str()),
            _ => page.order(sort_column.name, id),
        };
        query.push(format_args!(" order by {order} limit {count}"));
        if let Some(parents) = &self.parents {
            query.push(") child where ");
            parents.push_condition(query);
            query.push(format_args!(" order by {} limit {count}", page.order("child.sort_key", "child.id")));
        }
    }

    /// Pushes the conditions of one part of the range.
    fn push_part_condition(
        &self,
        query: &mut QueryBuilder<Postgres>,
        sort_column: SortColumn,
        comparison: char,
        part: RangePart<'_>,
    ) {
        let (name, id) = (sort_column.name, self.id);
        match part {
            RangePart::Valued(after) => {
                if sort_column.nulls != Nulls::None {
                    query.push(format_args!(" and {name} is not null"));
                }
                if let Some(SortedRows { column, values }) = &self.sorted {
                    query.push(format_args!(" and {column} = any(")).push_bind(values.clone()).push(")");
                }
                if let Some(position) = after {
                    query.push(format_args!(" and ({name}, {id}) {comparison} "));
                    position.push(query);
                }
            }
            RangePart::Null(after) => {
                query.push(format_args!(" and ({name} is null"));
                if let Some(SortedRows { column, values }) = &self.sorted {
                    query.push(format_args!(" or {column} <> all(")).push_bind(values.clone()).push(")");
                }
                query.push(")");
                if let Some(last) = after {
                    query.push(format_args!(" and {id} {comparison} ")).push_bind(last);
                }
            }
        }
    }

    /// Defines `page` as the rows that contain the text and have any of the tags: among the first rows of the range, or, if
    /// the range has more and these do not fill the page, among all rows that blocks and index find.
    fn push_search<S: Sort>(&self, query: &mut QueryBuilder<Postgres>, page: &PageRequest<S>) {
        let (name, id, wanted) = (page.sort.column().name, self.id, page.rows_to_read());
        let (scanned, direction) = (max_scanned_rows(page.limit), page.direction.as_str());
        self.push_range(query, page, "first_rows", scanned);
        query.push(", found as materialized (select id, sort_key from first_rows where true");
        if let Some((_, key, _)) = self.searched_text() {
            query.push(" and strpos(text, ").push_bind(key).push(") > 0");
        }
        if let Some(TagFilter { tags, .. }) = &self.tags {
            query.push(" and tags && ").push_bind(tags);
        }
        query.push(format_args!(
            " order by sort_key {direction} nulls last, id {direction} limit {wanted}
             ), short as materialized (
             select (select count(*) from found) < {wanted} and (select count(*) from first_rows) = {scanned} as short
             ), page as (select id, sort_key from found where not (select short from short) union all ("
        ));
        query.push(format_args!(
            "select {id}, {name} from {} where (select short from short) and ",
            self.table
        ));
        self.push_search_conditions(query);
        if let Some(position) = &page.after {
            let comparison = page.comparison();
            if position.key == SortKey::Null {
                query.push(format_args!(" and {name} is null and {id} {comparison} ")).push_bind(position.id);
            } else {
                query.push(format_args!(" and (({name}, {id}) {comparison} "));
                position.push(query);
                query.push(format_args!(" or {name} is null)"));
            }
        }
        query
            .push(format_args!(" order by {name} {direction} nulls last, {id} {direction} limit {wanted}))"));
    }
}

/// The part of a range with or without sort values, after a position.
#[derive(Clone, Copy)]
enum RangePart<'a> {
    Valued(Option<&'a KeysetPosition>),
    Null(Option<Uuid>),
}

impl KeysetPosition {
    /// Pushes the row value `(key, id)`.
    fn push(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("(");
        match &self.key {
            SortKey::Null => query.push("null"),
            SortKey::Int(value) => query.push_bind(*value),
            SortKey::Time(value) => query.push_bind(*value),
            SortKey::Text(value) => query.push_bind(value),
        };
        query.push(", ").push_bind(self.id).push(")");
    }
}

impl<S: Sort> PageRequest<S> {
    const fn comparison(&self) -> char {
        match self.direction {
            SortDirection::Asc => '>',
            SortDirection::Desc => '<',
        }
    }

    /// The order of the sort's index, scanned in the page's direction.
    fn order(&self, key: &str, id: &str) -> String {
        let direction = self.direction.as_str();
        let nulls = match (self.sort.column().nulls, self.direction) {
            (Nulls::None, _) => "",
            (Nulls::Last, SortDirection::Asc) | (Nulls::First, SortDirection::Desc) => " nulls last",
            (Nulls::Last, SortDirection::Desc) | (Nulls::First, SortDirection::Asc) => " nulls first",
        };
        format!("{key} {direction}{nulls}, {id} {direction}")
    }
}
