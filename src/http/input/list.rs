//! The parameters of a list: page size, cursor, sort, and the filters that the cursor is bound to.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fields::parse_variant;
use super::query::QueryParams;
use crate::http::openapi::schema;
use crate::http::output::cursor::{self, Binding, CursorError};
use crate::http::output::page::{Collection, Pagination};
use crate::http::output::problem::Problem;
use crate::model::limits;
use crate::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, Sort, SortDirection};

/// The sort keys of a list.
pub trait ListSort: Sort + Serialize + DeserializeOwned + JsonSchema + Send {
    const DEFAULT: (Self, SortDirection);
}

/// A requested page of a list.
#[derive(Debug, Clone)]
pub struct ListParams<S> {
    pub page: PageRequest<S>,
    filters: Map<String, Value>,
    binding: Binding,
}

impl<S: ListSort> ListParams<S> {
    /// Reads all parameters except the filter, whose set fields are echoed in the response and bound to the cursor.
    pub fn read(query: &mut QueryParams<'_>, filter: &impl Serialize) -> Self {
        let (sort, direction) = read_sort::<S>(query);
        let mut filters = match serde_json::to_value(filter) {
            Ok(Value::Object(filters)) => filters,
            _ => Map::new(),
        };
        filters.retain(|_, value| !value.is_null());
        filters.insert("order_by".to_owned(), json!(sort));
        filters.insert("order_direction".to_owned(), json!(direction));
        let organization = query.context.caller.map(|caller| caller.organization).unwrap_or_default();
        let canonical = Value::Object(filters.clone()).to_string();
        let binding = Binding::new(&[
            query.context.request.matched_path().as_bytes(),
            organization.as_bytes(),
            canonical.as_bytes(),
        ]);
        let has_valid_filters = query.violations.is_empty();
        query.describe("Page size.");
        let limit = query.integer_or("limit", &limits::PAGE_SIZE, limits::DEFAULT_PAGE_SIZE);
        query.describe("Whether to count all entries of the list, as `pagination.total_count`.");
        let include_total = query.boolean_or("include_total", false);
        let after = read_cursor(query, &binding, has_valid_filters);
        let page = PageRequest { sort, direction, after, offset: 0, limit, include_total };
        ListParams { page, filters, binding }
    }

    /// Builds the response from the rows of the page.
    pub fn into_response<T>(self, slice: ListPage<T>) -> Result<Collection<T>, Problem> {
        let next_cursor = slice.next.map(|position| cursor::encode(&self.binding, &position)).transpose()?;
        let (has_next, limit, total_count) = (next_cursor.is_some(), self.page.limit, slice.total);
        let pagination = Pagination { next_cursor, has_next, limit, total_count };
        Ok(Collection { data: slice.items, pagination, filters: self.filters })
    }
}

/// A cursor is not checked against filters that are invalid themselves.
pub(super) fn read_cursor(
    query: &mut QueryParams<'_>,
    binding: &Binding,
    has_valid_filters: bool,
) -> Option<KeysetPosition> {
    query.describe(
        "Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters \
         and sort. Omit it for the first page.",
    );
    let schema = || json!({"type": "string", "minLength": 1});
    let position = query.parse("cursor", schema, |text| match cursor::decode(binding, text) {
        Ok(position) => Ok(Some(position)),
        Err(CursorError::OtherList) if !has_valid_filters => Ok(None),
        Err(_) => Err("is not a cursor of this list with these filters and sort: omit it to start again"),
    });
    position.flatten()
}

/// Reads `sort`, `order_by` and `order_direction`; the latter two override the former.
fn read_sort<S: ListSort>(query: &mut QueryParams<'_>) -> (S, SortDirection) {
    query.describe("Legacy form of the sort: a sort key, with `-` before it for descending.");
    let signed = query.parse("sort", signed_sort_schema::<S>, |text| {
        let (direction, key) =
            text.strip_prefix('-').map_or((SortDirection::Asc, text), |key| (SortDirection::Desc, key));
        parse_variant::<S>(key)
            .map(|sort| (sort, direction))
            .map_err(|message| format!("{message}, optionally with - before it"))
    });
    query.describe("Sort key; overrides the key of `sort`. Entries without a value come last.");
    let order_by = query.variant::<S>("order_by");
    let description =
        "Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given.";
    let order_direction = query.describe(description).variant::<SortDirection>("order_direction");
    let sort = order_by.or(signed.map(|(sort, _)| sort)).unwrap_or(S::DEFAULT.0);
    let default_direction = if order_by.is_some() { SortDirection::Desc } else { S::DEFAULT.1 };
    let direction = order_direction.or(signed.map(|(_, direction)| direction)).unwrap_or(default_direction);
    (sort, direction)
}

fn signed_sort_schema<S: ListSort>() -> Value {
    let names = schema::variant_names::<S>()
        .into_iter()
        .flat_map(|name| [format!("-{name}"), name].into_iter().rev());
    json!({"type": "string", "enum": names.collect::<Vec<_>>()})
}
