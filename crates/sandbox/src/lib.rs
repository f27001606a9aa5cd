//! A server that imitates the platforms' APIs with simulated accounts, for the demo and the tests.
//!
//! The real clients run against it. It shares no code with them, as a platform would not.

mod args;
mod control;
mod creator;
mod error;
mod fault;
mod graph_fields;
mod growth;
pub mod history;
pub mod http_source;
mod ids;
pub mod instagram_graph;
mod picture_server;
pub mod pictures;
mod platform;
pub mod population;
mod response;
mod rng;
mod saved_state;
pub mod served;
pub mod server;
mod short_links;
pub mod texts;
pub mod tiktok_research;
pub mod world;

pub use args::{SandboxArgs, SandboxError, run};
pub use error::{OpenError, WorldError};
pub use fault::{Fault, PictureFault};
pub use platform::{Counters, Platform};
