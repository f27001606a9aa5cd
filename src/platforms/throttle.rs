//! Limits the requests to one source: how many at the same time in this process, and how many in a UTC day in all processes
//! together. A source that serves both platforms has one throttle for both, but a cooldown per platform, during which no
//! read starts.

use std::sync::Arc;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::pausable_timeout::exclude_from_timeout;
use super::request_budget::{RequestBudget, is_refresh};
use super::source::SourceError;
use crate::model::cost::PageCounts;
use crate::model::platform::Platform;

/// The limits of one source; clones share them.
#[derive(Debug, Clone)]
pub struct RateThrottle {
    source: &'static str,
    concurrency: Arc<Semaphore>,
    daily_limit: Option<u32>,
    budget: RequestBudget,
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

    /// Runs a request: waits for a permit, which is held until the response is read, and takes one request from the
    /// day's budget. The wait is bounded by the timeouts of the requests in flight.
    pub(super) async fn run<T, E: From<SourceError>>(
        &self,
        now: DateTime<Utc>,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // An error would mean that the semaphore is closed, which never happens.
        let _permit = exclude_from_timeout(self.concurrency.acquire()).await.ok();
        if let Some(limit) = self.daily_limit
            && !self.budget.try_spend(self.source, now.date_naive(), limit).await?
        {
            let used_up = match is_refresh() {
                true => SourceError::RefreshShareUsed,
                false => SourceError::RateLimited { until: next_utc_midnight(now) },
            };
            return Err(used_up.into());
        }
        request.await
    }

    /// Counts the pages of a read, for the estimate of the budget.
    pub(super) async fn record_pages(&self, platform: Platform, now: DateTime<Utc>, counts: PageCounts) {
        self.budget.record_pages(platform, self.source, now.date_naive(), counts).await;
    }
}

/// The time until which a source sends no requests in this process because the platform rate-limited it: requests sent
/// while throttled prolong the throttling.
#[derive(Debug, Default)]
pub(super) struct Cooldown(Mutex<Option<DateTime<Utc>>>);

impl Cooldown {
    /// Returns the end of the latest cooldown, which may be over.
    pub(super) fn paused_until(&self) -> Option<DateTime<Utc>> {
        *self.0.lock()
    }

    /// Starts or prolongs the cooldown; never shortens it.
    pub(super) fn extend_until(&self, until: DateTime<Utc>) {
        let mut current = self.0.lock();
        *current = (*current).max(Some(until));
    }

    /// Runs a read, which fails while the cooldown lasts; a read that is rate-limited starts it.
    pub(super) async fn apply<T>(
        &self,
        now: DateTime<Utc>,
        read: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        if let Some(until) = self.paused_until().filter(|until| now < *until) {
            return Err(SourceError::RateLimited { until });
        }
        let result = read.await;
        if let Err(SourceError::RateLimited { until }) = result {
            self.extend_until(until);
        }
        result
    }
}

/// Returns when the next UTC day starts, and with it the next daily budget.
pub fn next_utc_midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1)
}
