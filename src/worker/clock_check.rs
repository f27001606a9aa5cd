//! A tracker whose clock differs from Postgres' neither scrapes nor pauses sources: its times would outrank those of other
//! trackers for as long as its clock is ahead.

use std::time::{Duration, Instant};

use super::timeout;
use super::tracker::{ClockCheck, FailureKind, StartError, Tracker};
use crate::store::Error;
use crate::store::postgres::clock::{self, ClockSkew};
use crate::store::tracking::skewed_clocks;

/// How often the scheduler compares the clocks.
const INTERVAL: Duration = Duration::from_secs(5);

impl Tracker {
    /// Fails if this machine's clock is wrong. If Postgres does not respond, the scheduler compares the clocks later.
    pub(super) async fn require_right_clock(&self) -> Result<(), StartError> {
        match self.measure_skew().await {
            Ok(skew) if skew.is_excessive() => {
                self.report_skew(skew).await;
                Err(StartError::Clock(skew))
            }
            _ => Ok(()),
        }
    }

    /// Whether this machine's clock was right within the last seconds.
    pub(super) async fn was_clock_right(&self) -> Result<bool, Error> {
        let last = *self.clock_check.lock();
        match last {
            Some(last) if last.at.elapsed() < INTERVAL => Ok(last.is_right),
            _ => self.is_clock_right().await,
        }
    }

    /// Compares this machine's clock with Postgres', and reports a wrong one.
    pub(super) async fn is_clock_right(&self) -> Result<bool, Error> {
        let skew = self.measure_skew().await?;
        if skew.is_excessive() {
            self.report_skew(skew).await;
            return Ok(false);
        }
        *self.clock_check.lock() = Some(ClockCheck { at: Instant::now(), is_right: true });
        Ok(true)
    }

    /// Stops scrapes for a while, and reports the reason in the log, in `/health` and to `tidemark doctor`.
    async fn report_skew(&self, skew: ClockSkew) {
        *self.clock_check.lock() = Some(ClockCheck { at: Instant::now(), is_right: false });
        if self.should_log(None, FailureKind::Clock) {
            tracing::error!(clock = %skew, "the clock is wrong, nothing is scraped: synchronize it by NTP");
        } else {
            tracing::debug!(clock = %skew, "the clock is still wrong");
        }
        if let Err(error) = timeout::short(skewed_clocks::record(&self.databases.pg, skew)).await {
            tracing::warn!(%error, "cannot record that the clock is wrong");
        }
    }

    async fn measure_skew(&self) -> Result<ClockSkew, Error> {
        let (pg, clock) = (&self.databases.pg, &self.databases.clock);
        timeout::short(clock::fetch_skew(pg, clock.read_machine())).await
    }
}
