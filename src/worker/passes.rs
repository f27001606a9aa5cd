//! Repeats the passes of a background task until it is stopped.

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::failure_log::FailureLog;
use crate::store::Error;

/// A task that looks for work in each pass.
pub(super) trait PassTask {
    /// The message of a failure in the log.
    const FAILURE: &'static str;
    const INTERVAL: Duration;
    /// The pause after a failed pass, which may have read much before it failed.
    const RETRY_DELAY: Duration = Duration::ZERO;

    fn run_pass(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Runs passes until stopped. A failure is logged once and retried.
pub(super) async fn run<T: PassTask>(mut task: T, stop: CancellationToken) {
    let mut log = FailureLog::new(T::FAILURE);
    let mut interval = tokio::time::interval(T::INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let passes = async {
        loop {
            interval.tick().await;
            if log.record(task.run_pass().await).is_none() {
                tokio::time::sleep(T::RETRY_DELAY).await;
            }
        }
    };
    let _: Option<()> = stop.run_until_cancelled(passes).await;
}
