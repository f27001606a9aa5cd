//! Reads accounts and posts of the platforms through configured sources, resolves short links, fetches pictures, and
//! sends messages to the receivers of webhooks.
//!
//! Each platform has an ordered list of sources; the first that can do an operation does it.

pub mod args;
mod coerce;
pub mod conformance;
pub mod http_client;
pub mod http_source;
pub mod instagram_graph;
mod pausable_timeout;
pub mod pictures;
mod post_pages;
mod request_budget;
mod request_telemetry;
mod setup;
pub mod short_links;
pub mod source;
pub mod sources;
mod throttle;
pub mod tiktok_research;
pub mod webhooks;

pub use args::{ConfigError, SourceArgs};
pub use request_budget::{RequestBudget, spend_on_refresh};
pub use sources::Sources;
pub use throttle::{RateThrottle, next_utc_midnight};
