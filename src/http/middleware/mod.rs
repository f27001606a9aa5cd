//! Middleware. `http::service` and its routers list it in the order in which a request meets it. After an error
//! response of a route's middleware, salvo skips the rest. Middleware of the service must skip it itself: the response of an
//! unmatched route is an error from the start.

pub mod accept;
pub mod authenticate;
pub mod authenticate_share;
pub mod catch_panic;
pub mod cors;
pub mod drain_body;
pub mod etag_and_compress;
pub mod limit_reads;
pub mod limit_unread;
pub mod parse_file_request;
pub mod parse_request;
pub mod rate_limit;
pub mod record_metrics;
pub mod request_id;
pub mod request_timeout;
pub mod shutdown;
pub mod unmatched_route;

pub use accept::RequireAccept;
pub use authenticate::{Authenticate, RequireWriteScope, RequireWriteScopeToRead};
pub use authenticate_share::AuthenticateShare;
pub use catch_panic::CatchPanic;
pub use cors::cors_handler;
pub use drain_body::DrainRejectedBody;
pub use etag_and_compress::EtagAndCompress;
pub use limit_reads::LimitReads;
pub use limit_unread::LimitUnread;
pub use parse_file_request::ParseFileRequest;
pub use parse_request::ParseRequest;
pub use rate_limit::RateLimit;
pub use record_metrics::RecordMetrics;
pub use request_id::AssignRequestId;
pub use request_timeout::RequestTimeout;
pub use shutdown::RejectDuringShutdown;
pub use unmatched_route::UnmatchedRoute;
