//! A server that imitates the platforms' APIs with simulated accounts, for the demo and the tests.
//!
//! The real clients run against it. Only the command line uses this module.

pub mod args;
pub mod control;
pub mod rng;
pub mod graph_fields;
pub mod instagram_graph;
pub mod growth;
pub mod history;
pub mod ids;
pub mod languages;
pub mod creator;
pub mod http_source;
pub mod phrases;
pub mod pictures;
pub mod population;
pub mod response;
mod saved_state;
pub mod served;
pub mod server;
pub mod short_links;
pub mod tiktok_research;
pub mod world;

pub use args::{SandboxArgs, SandboxError, run};
