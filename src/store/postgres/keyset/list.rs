//! The statement that reads a page of a list. SortColumn names come from enums alone and values are always bound; sizes are
//! written out, because a plan made for any size takes a page for a tenth of the list.
//!
//! A page is a range of the index of its sort, read until the page is full: first the rows that have a sort value, then
//! those without. What the index does not know is looked at row by row. docs/paging.md says what that costs.

use std::fmt::Display;

use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::{KeysetPosition, Nulls, PageRequest, Sort, SortDirection, SortKey};
use crate::store::Error;

/// A list: the table, as `table alias`, its id, and a function that pushes the conditions after `where`.
pub(in crate::store) struct List<F> {
    pub table: &'static str,
    pub id: &'static str,
    pub conditions: F,
    /// Set when the list holds the rows of one or some of many parents: each parent's are a range of their own.
    pub parents: Option<Parents>,
    pub search: Option<Search>,
}

/// The rows of `table` in the organization that have the `values` in their columns; a row of the list names its own
/// by `reference`.
pub(in crate::store) struct Parents {
    pub table: &'static str,
    pub organization: Uuid,
    pub values: Vec<(&'static str, Uuid)>,
    pub reference: &'static str,
}

/// A text that a column of the rows has to contain, both folded.
pub(in crate::store) struct Search {
    pub column: &'static str,
    pub text: String,
    /// Where to look when the beginning of the range does not fill the page; without, the range is read on.
    pub blocks: Option<Blocks>,
}

/// Where the texts of an organization stand without their records: rows with many texts in `texts`, separated by `A`,
/// which never occurs in a folded text, and the `number` of the record of each in `numbers`.
pub(in crate::store) struct Blocks {
    pub table: &'static str,
    pub texts: &'static str,
    pub numbers: &'static str,
    pub number: &'static str,
    pub organization: Uuid,
}

/// How many rows of a range are read before a text is looked for in its blocks: twenty for each row of a page that is
/// not small.
fn examined(limit: i64) -> i64 {
    20 * limit.max(50)
}

impl<F: Fn(&mut QueryBuilder<Postgres>)> List<F> {
    /// Begins a query with `with … page as (…)`: the ids and sort keys of the page, of what it leaves out and of one
    /// row beyond it.
    /// The caller selects from `page` and ends with [`order`].
    pub fn page<S: Sort>(&self, page: &PageRequest<S>) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new("with ");
        match &self.search {
            Some(search @ Search { blocks: Some(blocks), .. }) => {
                self.search_blocks(&mut query, page, search, blocks);
            }
            _ => self.range(&mut query, page, "page", page.reach()),
        }
        query.push(" ");
        query
    }

    /// Counts all rows of the list, when the page asks for it.
    pub async fn total<S>(&self, pg: &PgPool, page: &PageRequest<S>) -> Result<Option<i64>, Error> {
        if !page.include_total {
            return Ok(None);
        }
        let mut query = QueryBuilder::new("select count(*) from ");
        query.push(self.table).push(" where ");
        (self.conditions)(&mut query);
        if let Some(parents) = &self.parents {
            parents.contain(&mut query);
        }
        if let Some(search) = &self.search {
            search.contained(&mut query);
        }
        Ok(Some(query.build_query_scalar().fetch_one(pg).await?))
    }

    /// Defines `name` as the first `count` rows after the page's position: those without a sort value are read only
    /// as far as the others leave room.
    fn range<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        name: &str,
        count: i64,
    ) {
        let after = page.after.as_ref();
        if page.sort.column().nulls == Nulls::None {
            query.push(format_args!("{name} as materialized ("));
            self.branch(query, page, Part::Valued(after), count);
        } else if let Some(KeysetPosition { key: SortKey::Null, id }) = after {
            query.push(format_args!("{name} as materialized ("));
            self.branch(query, page, Part::Null(Some(*id)), count);
        } else {
            query.push("valued as materialized (");
            self.branch(query, page, Part::Valued(after), count);
            query.push(format_args!("), {name} as materialized (select * from valued union all ("));
            let room = format_args!("(select {count} - count(*) from valued)");
            self.branch(query, page, Part::Null(None), room);
            query.push(")");
        }
        query.push(")");
    }

    /// Selects the first rows of one part of the range.
    fn branch<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        part: Part<'_>,
        count: impl Display,
    ) {
        let Some(parents) = &self.parents else {
            return self.rows(query, page, part, count);
        };
        query.push(format_args!("select child.* from {} parent cross join lateral (", parents.table));
        self.rows(query, page, part, &count);
        query.push(") child where ");
        parents.chosen(query);
        let order = page.order("child.sort_key", "child.id");
        query.push(format_args!(" order by {order} limit {count}"));
    }

    fn rows<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        part: Part<'_>,
        count: impl Display,
    ) {
        let (column, id) = (page.sort.column(), self.id);
        let (name, beyond) = (column.name, page.beyond());
        self.select(query, name);
        if let Some(Parents { reference, .. }) = &self.parents {
            query.push(format_args!(" and {reference} = parent.id"));
        }
        match part {
            Part::Valued(after) => {
                if column.nulls != Nulls::None {
                    query.push(format_args!(" and {name} is not null"));
                }
                if let Some(KeysetPosition { key, id: last }) = after {
                    query.push(format_args!(" and ({name}, {id}) {beyond} ("));
                    key.push(query);
                    query.push(", ").push_bind(*last).push(")");
                }
            }
            Part::Null(after) => {
                query.push(format_args!(" and {name} is null"));
                if let Some(last) = after {
                    query.push(format_args!(" and {id} {beyond} ")).push_bind(last);
                }
            }
        }
        if let Some(search @ Search { blocks: None, .. }) = &self.search {
            search.contained(query);
        }
        // Also where all are null: the index is known to be in this order, and not in that of the ids.
        query.push(format_args!(" order by {} limit {count}", page.order(name, id)));
    }

    /// Defines `page` by what contains the text: among the first rows of the range, or, when these are not all and
    /// do not fill the page, among all whose text the blocks find.
    fn search_blocks<S: Sort>(
        &self,
        query: &mut QueryBuilder<Postgres>,
        page: &PageRequest<S>,
        search: &Search,
        blocks: &Blocks,
    ) {
        let (name, id, wanted) = (page.sort.column().name, self.id, page.reach());
        let examined = examined(page.limit);
        self.range(query, page, "beginning", examined);
        query.push(", found as materialized (select id, sort_key from beginning where strpos(text, ");
        query.push_bind(search.text.clone()).push(format_args!(
            ") > 0 order by sort_key {} nulls last, id {0} limit {wanted}), short as materialized (
             select (select count(*) from found) < {wanted} and (select count(*) from beginning) = {examined} as short
             ), page as (select id, sort_key from found where not (select short from short) union all (",
            page.direction.as_str()
        ));
        query.push(format_args!(
            "select {id}, {name} from {} where (select short from short) and ",
            self.table
        ));
        (self.conditions)(query);
        if let Some(parents) = &self.parents {
            parents.contain(query);
        }
        search.contained(query);
        blocks.contain(query, &search.text);
        if let Some(KeysetPosition { key, id: last }) = &page.after {
            let beyond = page.beyond();
            if *key == SortKey::Null {
                query.push(format_args!(" and {name} is null and {id} {beyond} ")).push_bind(*last);
            } else {
                query.push(format_args!(" and (({name}, {id}) {beyond} ("));
                key.push(query);
                query.push(", ").push_bind(*last).push(format_args!(") or {name} is null)"));
            }
        }
        let direction = page.direction.as_str();
        query
            .push(format_args!(" order by {name} {direction} nulls last, {id} {direction} limit {wanted}))"));
    }

    fn select(&self, query: &mut QueryBuilder<Postgres>, sort_key: &str) {
        query.push(format_args!("select {} as id, {sort_key} as sort_key", self.id));
        if let Some(Search { column, blocks: Some(_), .. }) = &self.search {
            query.push(format_args!(", {column} as text"));
        }
        query.push(format_args!(" from {} where ", self.table));
        (self.conditions)(query);
    }
}

/// The part of a range in which the rows have a sort value, or that in which they have none, after a position.
#[derive(Clone, Copy)]
enum Part<'a> {
    Valued(Option<&'a KeysetPosition>),
    Null(Option<Uuid>),
}

impl Search {
    fn contained(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(format_args!(" and strpos({}, ", self.column)).push_bind(self.text.clone()).push(") > 0");
    }
}

impl Parents {
    fn chosen(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("parent.organization_id = ").push_bind(self.organization);
        for (column, value) in &self.values {
            query.push(format_args!(" and parent.{column} = ")).push_bind(*value);
        }
    }

    fn contain(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(format_args!(" and {} in (select id from {} parent where ", self.reference, self.table));
        self.chosen(query);
        query.push(")");
    }
}

impl Blocks {
    fn contain(&self, query: &mut QueryBuilder<Postgres>, text: &str) {
        let Blocks { table, texts, numbers, number, organization } = self;
        query
            .push(format_args!(" and {number} = any(array(select entry.number from {table} block"))
            .push(format_args!(" cross join unnest(block.{numbers}, string_to_array(block.{texts}, 'A'))"))
            .push(" as entry(number, text) where block.organization_id = ")
            .push_bind(*organization)
            .push(format_args!(" and strpos(block.{texts}, "))
            .push_bind(text.to_owned())
            .push(") > 0 and strpos(entry.text, ")
            .push_bind(text.to_owned())
            .push(") > 0))");
    }
}

impl SortKey {
    fn push(&self, query: &mut QueryBuilder<Postgres>) {
        match self {
            SortKey::Null => query.push("null"),
            SortKey::Int(value) => query.push_bind(*value),
            SortKey::Time(value) => query.push_bind(*value),
            SortKey::Text(value) => query.push_bind(value.clone()),
        };
    }
}

impl<S: Sort> PageRequest<S> {
    const fn beyond(&self) -> char {
        match self.direction {
            SortDirection::Asc => '>',
            SortDirection::Desc => '<',
        }
    }

    /// The order of the page's index, read in its direction.
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

/// Ends a query of [`List::page`] with the order of the page.
pub(in crate::store) fn order<S>(query: &mut QueryBuilder<Postgres>, page: &PageRequest<S>) {
    let direction = page.direction.as_str();
    query.push(format_args!(
        " order by page.sort_key {direction} nulls last, page.id {direction} limit {} offset {}",
        page.limit + 1,
        page.offset
    ));
}
