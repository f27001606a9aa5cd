//! Which web pages may read answers: none, unless configuration lists their origins.

use salvo::cors::{Any, CallNext, Cors, CorsHandler};
use salvo::http::{HeaderValue, Method};

const EXPOSED: [&str; 8] = [
    "X-Request-ID",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "ETag",
    "Link",
    "Location",
    "Retry-After",
];

const ACCEPTED: [&str; 6] =
    ["Authorization", "Content-Type", "Accept", "If-None-Match", "Idempotency-Key", "X-Request-ID"];

/// Makes the step for the listed origins, `*` meaning all; none without any.
pub(in crate::http) fn handler(origins: &[String]) -> Option<CorsHandler> {
    let cors = Cors::new()
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(ACCEPTED.to_vec())
        .expose_headers(EXPOSED.to_vec())
        .max_age(600);
    let cors = if origins.iter().any(|origin| origin == "*") {
        cors.allow_origin(Any)
    } else {
        let listed: Vec<_> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
        if listed.is_empty() {
            return None;
        }
        cors.allow_origin(listed)
    };
    // The headers are set before the rest runs, so that they are on errors too.
    Some(CorsHandler::new(cors, CallNext::After))
}
