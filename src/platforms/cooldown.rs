//! The time until which a source sends no requests because the platform rate-limited it.
//!
//! Requests sent while throttled prolong the throttling, so none are sent until the cooldown is over.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use super::source::SourceError;

/// The cooldown of one source, in this process.
#[derive(Debug, Default)]
pub(super) struct Cooldown(Mutex<Option<DateTime<Utc>>>);

impl Cooldown {
    /// Returns the end of the latest cooldown, which may be over.
    pub(super) fn paused_until(&self) -> Option<DateTime<Utc>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails while the cooldown lasts.
    pub(super) fn check(&self, now: DateTime<Utc>) -> Result<(), SourceError> {
        match self.paused_until() {
            Some(until) if now < until => Err(SourceError::RateLimited { until }),
            _ => Ok(()),
        }
    }

    /// Starts or prolongs the cooldown; never shortens it.
    pub(super) fn extend_until(&self, until: DateTime<Utc>) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(current.map_or(until, |end| end.max(until)));
    }

    /// Starts the cooldown if the result is a rate limit, and returns the result.
    pub(super) fn record<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        if let Err(SourceError::RateLimited { until }) = &result {
            self.extend_until(*until);
        }
        result
    }
}
