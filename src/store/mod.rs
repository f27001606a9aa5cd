//! All input and output to Postgres, ClickHouse and Tantivy.
//!
//! Every function that reads or writes organization data for a request takes the organization, directly or in its
//! [`Write`]. Functions for workers may span organizations.

pub mod analytics;
pub mod clickhouse;
mod error;
pub mod fair_limiter;
pub mod health;
pub mod lifecycle;
pub mod migrate;
pub mod observations;
pub mod outbox;
pub mod pictures;
pub mod postgres;
pub mod records;
pub mod search;
pub mod summed_table;
pub mod tracking;
pub mod write;

pub use error::{Error, clickhouse_error_code};
pub use postgres::transaction::{Retryable, retry_on_conflict, retry_request_on_conflict};
pub use write::Write;
