//! What every list shares: its page size, its sort, its cursor, the echo of its filters, and the links to its first
//! and its next page. A list says what it can be sorted by; the cursor is checked here and nowhere else.

use salvo::http::HeaderValue;
use salvo::http::header::LINK;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use crate::app::App;
use crate::http::forwarded::origin;
use crate::http::input::fields::{Params, Word, word, word_of};
use crate::http::input::{Parts, Received};
use crate::http::openapi;
use crate::http::output::cursor::{self, BadCursor, Binding};
use crate::http::output::envelope::write_json;
use crate::http::output::problem::Problem;
use crate::model::limits;
use crate::store::postgres::keyset::{ListPage, PageRequest, Sort, SortDirection};

/// What a list can be sorted by, and how it is without being told.
pub trait ListSort: Sort + Word + PartialEq + Send {
    const DEFAULT: (Self, SortDirection);
}

impl Word for SortDirection {
    const WORDS: &'static [(&'static str, Self)] =
        &[("asc", SortDirection::Asc), ("desc", SortDirection::Desc)];
}

/// A page of a list as it was asked for, with all that makes its answer.
#[derive(Debug, Clone)]
pub struct Listing<S> {
    pub page: PageRequest<S>,
    filters: Map<String, Value>,
    binding: Binding,
}

impl<S: ListSort> Listing<S> {
    /// Reads `limit`, `cursor`, `include_total`, `order_by`, `order_direction` and `sort`. The filter, read before,
    /// is what the answer echoes and what the cursor is bound to.
    pub fn read(query: &mut Params<'_>, parts: &Parts<'_>, filter: &impl Serialize) -> Self {
        let (sort, direction) = read_sort::<S>(query);
        let mut filters = match serde_json::to_value(filter) {
            Ok(Value::Object(filters)) => filters,
            _ => Map::new(),
        };
        filters.insert("order_by".to_owned(), word_of(sort).into());
        filters.insert("order_direction".to_owned(), direction.as_str().into());
        let organization = parts.caller.map(|caller| caller.organization).unwrap_or_default();
        let canonical = Value::Object(filters.clone()).to_string();
        let binding = Binding::new(&[
            parts.request.matched_path().as_bytes(),
            organization.as_bytes(),
            canonical.as_bytes(),
        ]);
        let sound = query.violations.is_empty();
        let limit = query.about("How many entries a page has.").integer_or(
            "limit",
            &limits::PAGE_SIZE,
            limits::DEFAULT_PAGE_SIZE,
        );
        let include_total = query
            .about("Whether to count all entries, for `pagination.total_count`.")
            .boolean_or("include_total", false);
        query.about(
            "Where the page begins: `pagination.next_cursor` of the page before, with the same filters and sort. \
             Without it the list begins.",
        );
        let after = query.with(
            "cursor",
            || json!({"type": "string", "minLength": 1}),
            |text| {
                match cursor::decode(&binding, text) {
            Ok(position) => Ok(Some(position)),
            // Filters or a sort that are wrong themselves say nothing about what the cursor is for.
            Err(BadCursor::Foreign) if !sound => Ok(None),
            Err(_) => Err(
                "is not a cursor of this list with these filters and this sort: leave it out to start again"
                    .to_owned(),
            ),
        }
            },
        );
        Listing {
            page: PageRequest { sort, direction, after: after.flatten(), offset: 0, limit, include_total },
            filters,
            binding,
        }
    }

    /// Makes the answer from what the store found.
    pub fn answer<T>(self, slice: ListPage<T>) -> Result<Collection<T>, Problem> {
        let next = slice.next.map(|position| cursor::encode(&self.binding, &position)).transpose();
        let next_cursor =
            next.map_err(|error| Problem::internal(format_args!("a cursor does not encode: {error}")))?;
        let has_next = next_cursor.is_some();
        let pagination =
            Pagination { next_cursor, has_next, limit: self.page.limit, total_count: slice.total };
        Ok(Collection { data: slice.items, pagination, filters: self.filters })
    }
}

/// `order_by` and `order_direction`, each where present, win over the key and the sign of `sort`.
fn read_sort<S: ListSort>(query: &mut Params<'_>) -> (S, SortDirection) {
    query.about("The older spelling of the sort: a key, descending with `-` before it.");
    let signed = query.with("sort", signed_words::<S>, |text| {
        let (direction, key) =
            text.strip_prefix('-').map_or((SortDirection::Asc, text), |key| (SortDirection::Desc, key));
        word::<S>(key)
            .map(|sort| (sort, direction))
            .map_err(|message| format!("{message}, with - before it or not"))
    });
    let order_by = query
        .about("What the list is sorted by; wins over the key of `sort`. Entries without a value come last.")
        .word::<S>("order_by");
    let order_direction = query
        .about("The direction of the sort; wins over the sign of `sort`. Descending beside an `order_by`.")
        .word::<SortDirection>("order_direction");
    let sort = order_by.or(signed.map(|(sort, _)| sort)).unwrap_or(S::DEFAULT.0);
    let lone = if order_by.is_some() { SortDirection::Desc } else { S::DEFAULT.1 };
    let direction = order_direction.or(signed.map(|(_, direction)| direction)).unwrap_or(lone);
    (sort, direction)
}

fn signed_words<S: ListSort>() -> Value {
    let words: Vec<_> =
        S::WORDS.iter().flat_map(|(word, _)| [(*word).to_owned(), format!("-{word}")]).collect();
    json!({"type": "string", "enum": words})
}

/// A page of a list, in its envelope.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Collection<T> {
    /// The entries of the page.
    data: Vec<T>,
    /// Where the page stands in its list.
    pagination: Pagination,
    /// The filters in effect and the sort that made the page.
    #[schemars(example = json!({"platform": "instagram", "order_by": "added_at", "order_direction": "desc"}))]
    filters: Map<String, Value>,
}

/// Where a page stands in its list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Pagination {
    /// What the next page is asked for with; null on the last page.
    #[schemars(example = &"eyJ2IjoxLCJiIjoiM2YyYjhjMWE3ZTY1In0")]
    next_cursor: Option<String>,
    /// False on the last page.
    #[schemars(example = true)]
    has_next: bool,
    /// The size of the page in effect.
    #[schemars(example = 50)]
    limit: i64,
    /// How many entries the whole list has; only with `include_total=true`.
    #[schemars(example = 128)]
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<i64>,
}

impl<T: JsonSchema> EndpointOutRegister for Collection<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::success::<Self>(operation, "200", "A page of the list.");
    }
}

#[async_trait]
impl<T: Serialize + Send + Sync> Writer for Collection<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        if let Some(link) = link(req, depot, self.pagination.next_cursor.as_deref()) {
            res.headers_mut().insert(LINK, link);
        }
        write_json(&self, req, depot, res).await;
    }
}

/// The `Link` header: this request without its cursor, and with the next one.
fn link(req: &Request, depot: &Depot, next: Option<&str>) -> Option<HeaderValue> {
    let base = base_url(req, depot);
    let path = req.uri().path();
    let received = depot.get_typed::<Received>().ok();
    let kept =
        || received.into_iter().flat_map(|received| &received.query).filter(|(name, _)| name != "cursor");
    let url = |cursor: Option<&str>| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept()).extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        let query = query.finish();
        if query.is_empty() { format!("{base}{path}") } else { format!("{base}{path}?{query}") }
    };
    let first = format!("<{}>; rel=\"first\"", url(None));
    let links = match next {
        Some(cursor) => format!("{first}, <{}>; rel=\"next\"", url(Some(cursor))),
        None => first,
    };
    HeaderValue::from_str(&links).ok()
}

/// The address under which the service is reached, without a path: configured, or the request's own.
pub fn base_url(req: &Request, depot: &Depot) -> String {
    match depot.get_typed::<App>() {
        Ok(app) => {
            let configured = app.settings.public_url.clone();
            configured.unwrap_or_else(|| origin(req, &app.settings.trusted_proxies))
        }
        Err(_) => origin(req, &[]),
    }
}
