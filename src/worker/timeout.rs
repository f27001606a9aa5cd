//! Timeouts for statements to Postgres.

use std::time::Duration;

use crate::store::Error;
use crate::store::postgres::with_timeout;

/// For statements about few rows.
const SHORT: Duration = Duration::from_secs(10);
/// For statements about many rows, or that wait for locks.
pub(super) const LONG: Duration = Duration::from_secs(300);

pub(super) async fn short<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    with_timeout(SHORT, statement).await
}

pub(super) async fn long<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    with_timeout(LONG, statement).await
}
