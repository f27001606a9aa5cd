use crate::store;

/// Why the rollup cannot be verified or rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "commits are not in clickhouse after {0} seconds: check that `tidemark track` is running, and its log"
    )]
    RelayTimeout(u64),
    #[error("{0}")]
    Store(#[from] store::Error),
}
