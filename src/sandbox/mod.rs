//! The platforms in a box: a server that imitates their wire formats with a population of its own.
//!
//! The demo and the tests run the real clients against it. It is a leaf: only the command line uses it.

pub mod args;
pub mod control;
pub mod dice;
pub mod fields;
pub mod graph;
pub mod growth;
pub mod history;
pub mod ids;
pub mod open;
pub mod phrases;
pub mod population;
pub mod reply;
pub mod server;
pub mod short;
pub mod tiktok;
pub mod world;

pub use args::{SandboxArgs, SandboxError, run};
