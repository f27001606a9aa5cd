//! A page of a list.

use salvo::http::HeaderValue;
use salvo::http::header::LINK;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::envelope::write_json;
use crate::http::forwarded::base_url;
use crate::http::openapi::operation::add_success;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Collection<T> {
    /// Entries of the page.
    pub(in crate::http) data: Vec<T>,
    /// Position of the page in the list.
    pub(in crate::http) pagination: Pagination,
    /// Filters and sort in effect.
    #[schemars(example = json!({"platform": "instagram", "order_by": "added_at", "order_direction": "desc"}))]
    pub(in crate::http) filters: Map<String, Value>,
}

/// Position of a page in its list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Pagination {
    /// Cursor of the next page; null on the last page.
    #[schemars(example = &"eyJ2IjoxLCJiIjoiM2YyYjhjMWE3ZTY1In0")]
    pub(in crate::http) next_cursor: Option<String>,
    /// False on the last page.
    #[schemars(example = true)]
    pub(in crate::http) has_next: bool,
    /// Page size in effect.
    #[schemars(example = 50)]
    pub(in crate::http) limit: i64,
    /// Number of entries in the whole list; only with `include_total=true`.
    #[schemars(example = 128)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) total_count: Option<i64>,
}

/// A page of a ranking.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Ranking<T, M> {
    /// Entries of the page.
    pub(in crate::http) data: Vec<T>,
    /// Position of the page in the ranking.
    pub(in crate::http) pagination: Pagination,
    /// Scope of the ranking.
    pub(in crate::http) meta: M,
}

impl<T: JsonSchema, M: JsonSchema> EndpointOutRegister for Ranking<T, M> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Self>(operation, "200", "A page of the ranking.");
    }
}

impl<T: JsonSchema> EndpointOutRegister for Collection<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Self>(operation, "200", "A page of the list.");
    }
}

#[async_trait]
impl<T: Serialize + Send + Sync> Writer for Collection<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        if let Some(links) = link_header(req, depot, self.pagination.next_cursor.as_deref()) {
            res.headers_mut().insert(LINK, links);
        }
        write_json(&self, req, depot, res).await;
    }
}

/// Returns the `Link` header: the request without its cursor, and with the next one.
pub(in crate::http) fn link_header(
    req: &Request,
    depot: &Depot,
    next_cursor: Option<&str>,
) -> Option<HeaderValue> {
    let (base, path) = (base_url(req, depot), req.uri().path());
    let pairs = form_urlencoded::parse(req.uri().query().unwrap_or_default().as_bytes());
    let url = |cursor: Option<&str>| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs.filter(|(name, _)| name != "cursor"));
        query.extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        let query = query.finish();
        if query.is_empty() { format!("{base}{path}") } else { format!("{base}{path}?{query}") }
    };
    let first = format!("<{}>; rel=\"first\"", url(None));
    let links = match next_cursor {
        Some(cursor) => format!("{first}, <{}>; rel=\"next\"", url(Some(cursor))),
        None => first,
    };
    HeaderValue::from_str(&links).ok()
}
