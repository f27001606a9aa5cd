//! What one source may be asked: so many requests at the same time, and so many in a UTC day.
//!
//! A source that serves both platforms has one throttle for both. Requests in flight are counted in each process, those
//! of a day by all processes together.

use std::sync::Arc;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ledger::Ledger;
use super::patience;
use super::source::Refusal;

/// The limits of one source, shared by all that ask it.
#[derive(Debug, Clone)]
pub struct Throttle {
    source: &'static str,
    in_flight: Arc<Semaphore>,
    daily_requests: Option<u32>,
    ledger: Ledger,
}

/// One request that may be made; its place is free again when this is dropped.
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Throttle {
    /// Sets the limits of a source; without a number of requests a day, they are not counted.
    pub fn new(source: &'static str, in_flight: usize, daily_requests: Option<u32>, ledger: Ledger) -> Self {
        let in_flight = Arc::new(Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS)));
        Throttle { source, in_flight, daily_requests, ledger }
    }

    /// Requests allowed in a UTC day.
    pub fn daily_requests(&self) -> Option<u32> {
        self.daily_requests
    }

    /// Waits until the source may be asked, and takes one request from its day. The wait is bounded by the time that
    /// requests in flight may take.
    pub(super) async fn turn(&self, now: DateTime<Utc>) -> Result<Turn, Refusal> {
        // Nobody closes it.
        let permit = patience::in_line(Arc::clone(&self.in_flight).acquire_owned()).await.ok();
        if let Some(limit) = self.daily_requests
            && !self.ledger.spend(self.source, now.date_naive(), limit).await?
        {
            return Err(Refusal::RateLimited { until: next_midnight(now) });
        }
        Ok(Turn { _permit: permit })
    }
}

/// The first moment of the next UTC day, when a day's budget is full again.
pub(super) fn next_midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1)
}
