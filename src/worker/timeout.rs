//! Timeouts for statements to Postgres and for work during shutdown.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

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

/// Waits until work has had `grace` to finish since it was stopped.
pub(super) async fn wait_for_grace_period(stop: &CancellationToken, grace: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(grace).await;
}
