//! Postgres access: pools, sessions, transactions, notifications, advisory locks, COPY, keyset pagination, queries of
//! records and the server's clock.

pub mod advisory_lock;
pub mod clock;
pub(in crate::store) mod copy;
pub mod diagnosis;
pub mod fair_reads;
pub mod keyset;
pub mod notifications;
pub mod pool;
pub mod records_query;
pub mod session;
pub(in crate::store) mod transaction;

use std::time::Duration;

use super::Error;

pub use fair_reads::FairReads;
pub use records_query::RecordsQuery;
pub(in crate::store) use transaction::Transaction;

/// Fails as in an outage if a statement takes longer.
pub async fn with_timeout<T, E>(
    limit: Duration,
    statement: impl Future<Output = Result<T, E>>,
) -> Result<T, Error>
where
    Error: From<E>,
{
    match tokio::time::timeout(limit, statement).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Error::Postgres(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
    }
}
