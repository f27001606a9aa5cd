//! Timeouts for statements to Postgres.

use std::time::Duration;

use crate::store::Error;

/// For statements about few rows.
const SHORT: Duration = Duration::from_secs(10);
/// For statements about many rows, or that wait for locks.
pub(super) const LONG: Duration = Duration::from_secs(300);

pub(super) async fn short<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(SHORT, statement).await
}

pub(super) async fn long<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    within(LONG, statement).await
}

async fn within<T>(limit: Duration, statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(limit, statement).await {
        Ok(result) => result,
        Err(_) => Err(Error::Postgres(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
    }
}
