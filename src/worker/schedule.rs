//! A task that is due at intervals of the service clock, which a sandbox may move in either direction.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// How often deleted data is purged from files, where it may remain for 24 hours.
pub const PURGE_INTERVAL: TimeDelta = TimeDelta::hours(12);
/// How often erasures look for work, and how long they wait after a failure.
pub(super) const ERASURE_POLL_INTERVAL: Duration = Duration::from_secs(2);
pub(super) const ERASURE_RETRY_DELAY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Schedule {
    interval: TimeDelta,
    last_run: Option<DateTime<Utc>>,
}

impl Schedule {
    /// Creates a schedule that is due now.
    pub const fn new(interval: TimeDelta) -> Self {
        Schedule { interval, last_run: None }
    }

    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.last_run.is_none_or(|last_run| now < last_run || now - last_run >= self.interval)
    }

    pub fn record_run(&mut self, now: DateTime<Utc>) {
        self.last_run = Some(now);
    }

    /// Makes the task due after `delay`.
    pub fn postpone(&mut self, now: DateTime<Utc>, delay: TimeDelta) {
        self.last_run = Some(now + delay - self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_is_due_after_its_interval_and_after_clock_jumps() {
        let mut schedule = Schedule::new(TimeDelta::hours(12));
        let at = |hour: i64| DateTime::UNIX_EPOCH + TimeDelta::hours(hour);
        assert!(schedule.is_due(at(100)));
        schedule.record_run(at(100));
        assert!(!schedule.is_due(at(100)) && !schedule.is_due(at(111)));
        assert!(schedule.is_due(at(112)) && schedule.is_due(at(200)) && schedule.is_due(at(99)));
    }
}
