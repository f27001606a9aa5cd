//! Middleware, in the order in which `http::service`, `http::public` and `http::private` apply it.

pub mod accept;
pub mod authenticate;
pub(super) mod cors;
pub mod etag_and_compress;
pub mod parse_request;
pub mod rate_limit;
pub(super) mod record_metrics;
pub mod request_id;
pub mod request_timeout;
pub(super) mod shutdown;
