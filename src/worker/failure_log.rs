//! Logs the first failure of a task that is retried, and its recovery.

use std::fmt::Display;

use tracing::Level;

#[derive(Debug)]
pub(super) struct FailureLog {
    level: Level,
    /// The message of a failure, such as `cannot lease pictures`.
    failure: &'static str,
    is_failing: bool,
}

impl FailureLog {
    /// Creates a log whose failures are warnings.
    pub(super) const fn new(failure: &'static str) -> Self {
        FailureLog { level: Level::WARN, failure, is_failing: false }
    }

    /// Logs failures as errors, because without the task the process does nothing useful.
    pub(super) const fn with_error_level(self) -> Self {
        FailureLog { level: Level::ERROR, ..self }
    }

    /// Returns the value of a result, and logs an error.
    pub(super) fn record<T, E: Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.record_success();
                Some(value)
            }
            Err(error) => {
                self.record_failure(&error);
                None
            }
        }
    }

    pub(super) fn record_success(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            tracing::info!(failure = self.failure, "recovered");
        }
    }

    pub(super) fn record_failure(&mut self, error: &impl Display) {
        let failure = self.failure;
        match std::mem::replace(&mut self.is_failing, true) {
            true => tracing::debug!(%error, "{failure} again"),
            false if self.level == Level::ERROR => tracing::error!(%error, "{failure}, retrying"),
            false => tracing::warn!(%error, "{failure}, retrying"),
        }
    }
}
