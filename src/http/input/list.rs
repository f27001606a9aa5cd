//! The page of a list: its size, cursor and sort, bound to the filter of the list.

use salvo_oapi::Operation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::query::Query;
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::schema::variant_names;
use crate::http::output::cursor::{self, Binding, CursorError};
use crate::http::output::page::{Collection, Pagination};
use crate::http::output::problem::Problem;
use crate::model::limits::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
use crate::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, Sort, SortDirection};

/// The sort keys of a list.
pub trait ListSort: Sort + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    const DEFAULT: (Self, SortDirection);
}

/// A requested page of a list.
#[derive(Debug, Clone)]
pub struct ListParams<S> {
    pub page: PageRequest<S>,
    filters: Map<String, Value>,
    binding: Binding,
}

/// The filter and the page of a list.
pub struct ListQuery<F, S> {
    pub filter: F,
    pub params: ListParams<S>,
}

/// The parameters of a sort; the latter two override the first.
#[derive(Deserialize, JsonSchema)]
#[serde(bound = "S: ListSort")]
#[schemars(bound = "S: ListSort")]
struct SortFields<S> {
    /// Legacy form of the sort: a sort key, with `-` before it for descending.
    #[serde(default)]
    #[schemars(schema_with = "signed_sort::<S>")]
    sort: Option<String>,
    /// Sort key; overrides the key of `sort`. Entries without a value come last.
    order_by: Option<S>,
    /// Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given.
    order_direction: Option<SortDirection>,
}

#[derive(Deserialize, JsonSchema)]
struct PageFields {
    /// Page size.
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE), extend("default" = DEFAULT_PAGE_SIZE))]
    limit: Option<i64>,
    /// Whether to count all entries of the list, as `pagination.total_count`.
    #[serde(default)]
    include_total: bool,
    #[serde(flatten)]
    cursor: CursorField,
}

/// The cursor of a list or a ranking.
#[derive(Deserialize, JsonSchema)]
pub(super) struct CursorField {
    /// Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit
    /// it for the first page.
    #[schemars(length(min = 1))]
    cursor: Option<String>,
}

/// The names of sort keys, each also with `-` before it.
fn signed_sort<S: ListSort>(_generator: &mut SchemaGenerator) -> Schema {
    let names =
        variant_names::<S>().into_iter().flat_map(|name| [format!("-{name}"), name].into_iter().rev());
    json_schema!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

impl<S: ListSort> SortFields<S> {
    fn resolve(self) -> (S, SortDirection) {
        let signed = self.sort.as_deref().map(|text| match text.strip_prefix('-') {
            Some(key) => (key, SortDirection::Desc),
            None => (text, SortDirection::Asc),
        });
        let named = signed.and_then(|(key, _)| serde_json::from_value(key.into()).ok());
        let default = if self.order_by.is_some() { SortDirection::Desc } else { S::DEFAULT.1 };
        let direction = self.order_direction.or(signed.map(|(_, direction)| direction)).unwrap_or(default);
        (self.order_by.or(named).unwrap_or(S::DEFAULT.0), direction)
    }
}

impl CursorField {
    /// Decodes the cursor. It is not compared with filters that are invalid themselves.
    pub(super) fn decode(
        &self,
        binding: &Binding,
        has_valid_filter: bool,
        violations: &mut Violations,
    ) -> Option<KeysetPosition> {
        match cursor::decode(binding, self.cursor.as_deref()?) {
            Ok(position) => Some(position),
            Err(CursorError::OtherList) if !has_valid_filter => None,
            Err(_) => {
                violations.add(
                    "cursor",
                    "is not a cursor of this list with these filters and sort: omit it to start again",
                );
                None
            }
        }
    }
}

/// Binds cursors to the list, to the organization, and to what selects and orders its entries.
pub(super) fn bind(context: &RequestContext<'_>, canonical: &Value) -> Binding {
    let organization = context.caller.map(|caller| caller.organization).unwrap_or_default();
    let mut path = context.request.matched_path().to_owned();
    for (name, id) in context.request.params().iter() {
        path = path.replace(&format!("{{{name}}}"), &id.to_ascii_lowercase());
    }
    // The path of a report does not name its collection.
    if let Some(share) = context.share {
        path.push_str(&share.collection_id.to_string());
    }
    Binding::new(&[path.as_bytes(), organization.as_bytes(), canonical.to_string().as_bytes()])
}

impl<F, S> RequestPart for ListQuery<F, S>
where
    F: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
    S: ListSort,
{
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let filter = Query::<F>::read(context, violations);
        let params = ListParams::read(context, violations, &filter);
        Some(ListQuery { filter: filter?.0, params: params? })
    }

    fn describe(operation: &mut Operation) {
        Query::<F>::describe(operation);
        ListParams::<S>::describe(operation);
    }
}

impl_extractible!([F: DeserializeOwned + Serialize + JsonSchema + Send + 'static, S: ListSort] ListQuery<F, S>);

impl<S: ListSort> ListParams<S> {
    /// Reads the page of a list with a filter, whose set fields are echoed in the response and bound to the cursor.
    pub fn read(
        context: &RequestContext<'_>,
        violations: &mut Violations,
        filter: &impl Serialize,
    ) -> Option<Self> {
        let Query(sort) = Query::<SortFields<S>>::read(context, violations)?;
        let has_valid_filter = violations.is_empty();
        let Query(fields) = Query::<PageFields>::read(context, violations)?;
        let (sort, direction) = sort.resolve();
        let mut filters = echo(filter);
        filters.insert("order_by".to_owned(), json!(sort));
        filters.insert("order_direction".to_owned(), json!(direction));
        let binding = bind(context, &filters.clone().into());
        let after = fields.cursor.decode(&binding, has_valid_filter, violations);
        let limit = fields.limit.unwrap_or(DEFAULT_PAGE_SIZE);
        let page =
            PageRequest { sort, direction, after, offset: 0, limit, include_total: fields.include_total };
        Some(ListParams { page, filters, binding })
    }

    pub fn describe(operation: &mut Operation) {
        Query::<SortFields<S>>::describe(operation);
        Query::<PageFields>::describe(operation);
    }

    /// Builds the response from the rows of the page.
    pub fn into_response<T>(self, slice: ListPage<T>) -> Result<Collection<T>, Problem> {
        let next_cursor = slice.next.map(|position| cursor::encode(&self.binding, &position)).transpose()?;
        let (has_next, limit, total_count) = (next_cursor.is_some(), self.page.limit, slice.total);
        let pagination = Pagination { next_cursor, has_next, limit, total_count };
        Ok(Collection { data: slice.items, pagination, filters: self.filters })
    }
}

/// Returns the set fields of a filter as a request spells them.
fn echo(filter: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return Map::new() };
    let mut echoed = Map::new();
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::Array(values) => {
                let texts = values.iter().filter_map(Value::as_str).collect::<Vec<_>>();
                echoed.insert(name, texts.join(",").into());
            }
            Value::Object(tags) => {
                echoed.extend(tags.into_iter().map(|(key, tag)| (format!("{name}.{key}"), tag)))
            }
            value => drop(echoed.insert(name, value)),
        }
    }
    echoed
}
