//! Repeats the passes of a background task until it is stopped.

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::store::Error;

const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The pause after a failed pass, which may have read much before it failed.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A task that looks for work in each pass.
pub(super) trait PassTask {
    /// The name in the log.
    const NAME: &'static str;

    fn run_pass(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Runs passes until stopped. Failures are logged once and retried.
pub(super) async fn run<T: PassTask>(mut task: T, stop: CancellationToken) {
    let mut is_failing = false;
    let mut interval = tokio::time::interval(POLL_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(interval.tick()).await.is_some() {
        match stop.run_until_cancelled(task.run_pass()).await {
            Some(Err(error)) => {
                if std::mem::replace(&mut is_failing, true) {
                    tracing::debug!(task = T::NAME, %error, "erasure still fails");
                } else {
                    tracing::warn!(task = T::NAME, %error, "erasure failed, retrying");
                }
                stop.run_until_cancelled(tokio::time::sleep(RETRY_DELAY)).await;
            }
            Some(Ok(())) if std::mem::replace(&mut is_failing, false) => {
                tracing::info!(task = T::NAME, "erasure works again");
            }
            _ => {}
        }
    }
}
