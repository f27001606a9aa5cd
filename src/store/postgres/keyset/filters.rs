//! The filters of a list that need more than a condition, and conditions that lists have in common.

use sqlx::{Encode, Postgres, QueryBuilder, Type};
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::text::search_key;

/// Parent rows: those of `table` in the organization with one of the given values in each column, and all labels.
/// `reference` is the foreign key.
pub(in crate::store) struct ParentFilter {
    pub table: &'static str,
    pub organization: Uuid,
    pub values: Vec<(&'static str, Vec<Uuid>)>,
    /// Labels of parents that are accounts.
    pub labels: AccountLabels,
    pub reference: &'static str,
}

/// Only rows with one of `values` in `column` have a sort value. The others are listed with the rows whose sort column is
/// null. Not for a sort that is combined with text blocks.
pub(in crate::store) struct SortedRows {
    pub column: &'static str,
    pub values: Vec<&'static str>,
}

/// A search key that a column of search keys has to contain.
pub(in crate::store) struct TextFilter {
    pub(super) column: &'static str,
    pub(super) key: String,
    /// Read when the first rows of the range do not fill the page; without blocks, the range is read further.
    pub(super) blocks: Option<TextBlocks>,
}

/// Tags of which an array column has any. Searched for with the index when the first rows of the range do not fill the page.
pub(in crate::store) struct TagFilter {
    pub column: &'static str,
    pub organization: Uuid,
    pub tags: Vec<String>,
    /// Pushes the condition that the index answers.
    pub push_indexed: fn(&mut QueryBuilder<Postgres>, Uuid, &[String]),
}

/// A table that packs many texts of an organization into a row: `texts`, separated by `A`, which a search key never
/// contains, and in `numbers` the `number` of each text's record.
pub(in crate::store) struct TextBlocks {
    pub table: &'static str,
    pub texts: &'static str,
    pub numbers: &'static str,
    pub number: &'static str,
    pub organization: Uuid,
}

impl TextFilter {
    /// The filter for texts that contain a query; none for a query that is empty or nothing but variation selectors.
    pub(in crate::store) fn new(
        query: Option<&str>,
        column: &'static str,
        blocks: Option<TextBlocks>,
    ) -> Option<Self> {
        let key = search_key(query?);
        (!key.is_empty()).then_some(TextFilter { column, key, blocks })
    }

    /// Adds the condition to a query.
    pub(in crate::store) fn push(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(format_args!(" and strpos({}, ", self.column)).push_bind(&self.key).push(") > 0");
    }
}

impl ParentFilter {
    pub(super) fn push_condition(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("parent.organization_id = ").push_bind(self.organization);
        for (column, ids) in &self.values {
            query.push(format_args!(" and parent.{column}"));
            match ids[..] {
                [id] => query.push(" = ").push_bind(id),
                _ => query.push(" = any(").push_bind(ids.clone()).push(")"),
            };
        }
        push_labels(query, "parent", &self.labels);
    }

    pub(super) fn push_child_condition(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(format_args!(" and {} in (select id from {} parent where ", self.reference, self.table));
        self.push_condition(query);
        query.push(")");
    }
}

impl TextBlocks {
    /// Adds the condition that a record's text contains a search key.
    pub(in crate::store) fn push_condition(&self, query: &mut QueryBuilder<Postgres>, text: &str) {
        let TextBlocks { table, texts, numbers, number, organization } = self;
        query
            .push(format_args!(" and {number} = any(array(select entry.number from {table} block"))
            .push(format_args!(" cross join unnest(block.{numbers}, string_to_array(block.{texts}, 'A'))"))
            .push(" as entry(number, text) where block.organization_id = ")
            .push_bind(*organization)
            .push(format_args!(" and strpos(block.{texts}, "))
            .push_bind(text)
            .push(") > 0 and strpos(entry.text, ")
            .push_bind(text)
            .push(") > 0))");
    }
}

/// Pushes the condition that a column equals a value, if one is given.
pub(in crate::store) fn push_equal<'t, T>(query: &mut QueryBuilder<Postgres>, column: &str, value: Option<T>)
where
    T: Encode<'t, Postgres> + Type<Postgres>,
{
    if let Some(value) = value {
        query.push(format_args!(" and {column} = ")).push_bind(value);
    }
}

/// Pushes the conditions that accounts have labels.
pub(in crate::store) fn push_labels(
    query: &mut QueryBuilder<Postgres>,
    accounts: &str,
    AccountLabels { category, metadata }: &AccountLabels,
) {
    push_equal(query, &format!("{accounts}.category"), category.as_ref());
    // coalesce: the planner has no statistics of tags, and would rather sort all rows than expect many.
    for (key, value) in metadata {
        query.push(format_args!(" and coalesce({accounts}.metadata ->> ")).push_bind(key);
        query.push(" = ").push_bind(value).push(", false)");
    }
}
