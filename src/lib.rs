//! Tidemark tracks social creators, their accounts and videos, and serves exact analytics about them.
//!
//! In dependency order: a module uses only modules below it (tests/dependencies). ARCHITECTURE.md explains them.

// Not in Cargo.toml, whose lints also hold for integration tests and benches: their steps name each response the same.
#![deny(clippy::shadow_unrelated)]

pub mod cli;
pub mod doctor;
pub mod server;
pub mod worker;
pub mod export;
pub mod import;
pub mod rollup;
pub mod api;
pub mod platforms;
pub mod http;
pub mod app;
pub mod media;
pub mod response_cache;
pub mod store;
pub mod config;
pub mod failpoint;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod parquet_writer;
pub mod model;
