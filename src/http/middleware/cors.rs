//! CORS for the configured origins.

use salvo::cors::{Any, CallNext, Cors, CorsHandler};
use salvo::http::{HeaderValue, Method};

/// Every response header of the OpenAPI document that browsers do not expose by themselves.
const EXPOSED_HEADERS: [&str; 13] = [
    "X-Request-ID",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "ETag",
    "Link",
    "Location",
    "Retry-After",
    "Idempotent-Replayed",
    "Content-Disposition",
    "WWW-Authenticate",
    "Deprecation",
    "Sunset",
];

const ALLOWED_HEADERS: [&str; 12] = [
    "Authorization",
    "Content-Type",
    "Accept",
    "If-None-Match",
    "Idempotency-Key",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "X-Request-ID",
    "traceparent",
    "tracestate",
];

/// Returns the handler for the origins, `*` meaning all; `None` without origins.
pub fn cors_handler(origins: &[String]) -> Option<CorsHandler> {
    let cors = Cors::new()
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(ALLOWED_HEADERS.to_vec())
        .expose_headers(EXPOSED_HEADERS.to_vec())
        .max_age(600);
    let cors = if origins.iter().any(|origin| origin == "*") {
        cors.allow_origin(Any)
    } else {
        let origins: Vec<_> =
            origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
        if origins.is_empty() {
            return None;
        }
        cors.allow_origin(origins)
    };
    // Sets the headers before the other middleware runs, so that errors have them too.
    Some(CorsHandler::new(cors, CallNext::After))
}
