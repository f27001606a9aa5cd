//! Where data about accounts and posts comes from: the sources behind one trait, chosen per platform.
//!
//! Each platform has an ordered list of sources; the first that can do an operation does it. Short links are asked
//! of the platform itself, within the request that names one.

pub mod args;
mod call;
pub mod conformance;
pub mod http_source;
pub mod instagram_graph;
mod ledger;
pub mod lenient;
pub mod outbound;
mod patience;
pub mod short_links;
pub mod source;
pub mod sources;
pub mod throttle;
mod tiktok_call;
pub mod tiktok_research;

pub use args::{ConfigError, SourceArgs};
pub use ledger::Ledger;
pub use sources::Sources;
pub use throttle::Throttle;
