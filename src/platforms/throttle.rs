//! What one source may be asked: so many requests at the same time, and so many in a UTC day.
//!
//! A source that serves both platforms has one throttle for both. Requests in flight are counted in each process, those
//! of a day by all processes together.

use std::sync::Arc;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pausable_timeout;
use super::request_budget::RequestBudget;
use super::source::SourceError;

/// The limits of one source, shared by all that ask it.
#[derive(Debug, Clone)]
pub struct RateThrottle {
    source: &'static str,
    concurrency: Arc<Semaphore>,
    daily_limit: Option<u32>,
    budget: RequestBudget,
}

/// One request that may be made; its place is free again when this is dropped.
pub(super) struct RequestPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl RateThrottle {
    /// Sets the limits of a source; without a number of requests a day, they are not counted.
    pub fn new(
        source: &'static str,
        in_flight: usize,
        daily_requests: Option<u32>,
        ledger: RequestBudget,
    ) -> Self {
        let in_flight = Arc::new(Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS)));
        RateThrottle { source, concurrency: in_flight, daily_limit: daily_requests, budget: ledger }
    }

    /// Requests allowed in a UTC day.
    pub fn daily_limit(&self) -> Option<u32> {
        self.daily_limit
    }

    /// Waits until the source may be asked, and takes one request from its day. The wait is bounded by the time that
    /// requests in flight may take.
    pub(super) async fn acquire(&self, now: DateTime<Utc>) -> Result<RequestPermit, SourceError> {
        // Nobody closes it.
        let permit = pausable_timeout::in_line(Arc::clone(&self.concurrency).acquire_owned()).await.ok();
        if let Some(limit) = self.daily_limit
            && !self.budget.try_spend(self.source, now.date_naive(), limit).await?
        {
            return Err(SourceError::RateLimited { until: next_utc_midnight(now) });
        }
        Ok(RequestPermit { _permit: permit })
    }
}

/// The first moment of the next UTC day, when a day's budget is full again.
pub(super) fn next_utc_midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1)
}
