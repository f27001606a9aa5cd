//! All input and output to Postgres, ClickHouse and Tantivy. Every function takes the organization.

pub mod analytics;
pub mod applied;
pub mod event;
pub mod migrate;
pub mod imports;
pub mod outbox;
pub mod facts;
pub mod observations;
pub mod scrapes;
pub mod search;
pub mod targets;
pub mod write;

pub use write::Write;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("postgres: {0}")]
    Postgres(#[from] sqlx::Error),
    #[error("clickhouse: {0}")]
    Clickhouse(#[from] clickhouse::error::Error),
    #[error("search index: {0}")]
    Search(String),
    #[error("events do not encode: {0}")]
    Encode(#[from] postcard::Error),
    /// Another unit of work made the same thing at the same time; the change is to be tried again from the start.
    #[error("another change made the same record at the same time: try again")]
    Contended,
    #[error(transparent)]
    Decode(#[from] event::DecodeError),
}
