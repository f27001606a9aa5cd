//! All input and output to Postgres, ClickHouse and Tantivy.
//!
//! Every function that reads or writes tenant data on behalf of a request takes the organization, directly or through its
//! [`Write`]. Functions for workers may span organizations.

pub mod analytics;
pub mod clickhouse;
mod error;
pub mod health;
pub mod lifecycle;
pub mod migrate;
pub mod observations;
pub mod outbox;
pub mod postgres;
pub mod records;
pub mod search;
pub mod tracking;
pub mod write;

pub use error::Error;
pub use postgres::retry::{Retryable, retry_on_conflict};
pub use write::Write;
