//! The timeout of everything that doctor waits for.

use std::time::Duration;

pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Awaits a result; `None` after the timeout.
pub(super) async fn with_timeout<T, E>(request: impl Future<Output = Result<T, E>>) -> Option<Result<T, E>> {
    tokio::time::timeout(TIMEOUT, request).await.ok()
}
