//! Retries units of work that lost a conflict with another transaction.

use std::time::Duration;

use crate::store::Error;

const RETRY_DELAYS_MS: [u64; 4] = [10, 30, 100, 300];

/// An error type that can represent a conflict with another transaction.
pub trait Retryable {
    /// Whether the unit of work conflicted and may succeed when it is retried.
    fn is_retryable(&self) -> bool;
}

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.is_write_conflict()
    }
}

/// Runs a unit of work, and retries it from its start while it conflicts with others. Returns the last error after five
/// attempts.
pub async fn retry_on_conflict<T, E: Retryable, F>(mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    for delay in RETRY_DELAYS_MS {
        match attempt().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_millis(delay)).await,
            result => return result,
        }
    }
    attempt().await
}
