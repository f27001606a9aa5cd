//! Limits the requests to one source: how many at the same time in this process, and how many in a UTC day in all
//! processes together. A source that serves both platforms has one throttle for both.

use std::sync::Arc;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pausable_timeout::exclude_from_timeout;
use super::request_budget::RequestBudget;
use super::source::SourceError;

/// The limits of one source; clones share them.
#[derive(Debug, Clone)]
pub struct RateThrottle {
    source: &'static str,
    concurrency: Arc<Semaphore>,
    daily_limit: Option<u32>,
    budget: RequestBudget,
}

/// Permission to make one request, held until its response is read.
pub(super) struct RequestPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl RateThrottle {
    /// Creates a throttle; without a daily limit, the requests of a day are not counted.
    pub fn new(
        source: &'static str,
        concurrency: usize,
        daily_limit: Option<u32>,
        budget: RequestBudget,
    ) -> Self {
        let concurrency = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        RateThrottle { source, concurrency, daily_limit, budget }
    }

    /// Returns how many requests are allowed in a UTC day.
    pub fn daily_limit(&self) -> Option<u32> {
        self.daily_limit
    }

    /// Waits for a permit, and takes one request from the day's budget. The wait is bounded by the timeouts of the
    /// requests in flight.
    pub(super) async fn acquire(&self, now: DateTime<Utc>) -> Result<RequestPermit, SourceError> {
        // An error would mean that the semaphore is closed, which never happens.
        let permit = exclude_from_timeout(Arc::clone(&self.concurrency).acquire_owned()).await.ok();
        if let Some(limit) = self.daily_limit
            && !self.budget.try_spend(self.source, now.date_naive(), limit).await?
        {
            return Err(SourceError::RateLimited { until: next_utc_midnight(now) });
        }
        Ok(RequestPermit { _permit: permit })
    }
}

/// Returns when the next UTC day starts, and with it the next daily budget.
pub(super) fn next_utc_midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1)
}
