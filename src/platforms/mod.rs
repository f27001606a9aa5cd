//! Where data about accounts and posts comes from: the sources behind one trait, chosen per platform.
//!
//! Each platform has an ordered list of sources; the first that can do an operation does it. Short links are asked
//! of the platform itself, within the request that names one.

pub mod args;
mod request_telemetry;
pub mod conformance;
pub mod http_source;
pub mod instagram_graph;
mod request_budget;
pub mod coerce;
pub mod http_client;
mod pausable_timeout;
pub mod short_links;
pub mod source;
pub mod sources;
pub mod throttle;
mod tiktok_call;
pub mod tiktok_research;

pub use args::{ConfigError, SourceArgs};
pub use request_budget::RequestBudget;
pub use sources::Sources;
pub use throttle::RateThrottle;
