//! The platforms in a box: a server that imitates their wire formats with a population of its own.
//!
//! The demo and the tests run the real clients against it. It is a leaf: only the command line uses it.

pub mod args;
pub mod control;
pub mod rng;
pub mod graph_fields;
pub mod instagram_graph;
pub mod growth;
pub mod history;
pub mod ids;
pub mod http_source;
pub mod phrases;
pub mod population;
pub mod response;
pub mod server;
pub mod short_links;
pub mod tiktok_research;
pub mod world;

pub use args::{SandboxArgs, SandboxError, run};
