//! Retries units of work that lost a conflict with another transaction.

use std::time::Duration;

use crate::store::Error;

/// How long a change waits before it is tried again that others were in the way of; in the end it fails.
const PAUSES_MS: [u64; 4] = [10, 30, 100, 300];

/// An error of a change that another unit of work may have been in the way of.
pub trait Retryable {
    /// Whether one was, and the change may come about when it is made again.
    fn is_retryable(&self) -> bool;
}

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.is_write_conflict()
    }
}

/// Makes a change, again from the start while another unit of work is in the way.
pub async fn retry_on_conflict<T, E: Retryable, F>(mut change: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    for pause in PAUSES_MS {
        match change().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_millis(pause)).await,
            done => return done,
        }
    }
    change().await
}
