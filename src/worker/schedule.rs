//! What is due once in a while by a clock that somebody may move, in either direction.

use chrono::{DateTime, TimeDelta, Utc};

/// When something was done last, and how long after that it is due again.
#[derive(Debug)]
pub struct Schedule {
    every: TimeDelta,
    last: Option<DateTime<Utc>>,
}

impl Schedule {
    pub const fn new(every: TimeDelta) -> Self {
        Schedule { every, last: None }
    }

    /// Whether it is due; at first it is.
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.last.is_none_or(|last| now < last || now - last >= self.every)
    }

    /// Notes that it was done.
    pub fn done(&mut self, now: DateTime<Utc>) {
        self.last = Some(now);
    }

    /// Has it be due again a while later.
    pub fn put_off(&mut self, now: DateTime<Utc>, by: TimeDelta) {
        self.last = Some(now + by - self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_twice_a_day_is_done_well_within_a_day_whatever_the_clock_does() {
        let mut schedule = Schedule::new(TimeDelta::hours(12));
        let at = |hour: i64| DateTime::UNIX_EPOCH + TimeDelta::hours(hour);
        assert!(schedule.is_due(at(100)));
        schedule.done(at(100));
        assert!(!schedule.is_due(at(100)) && !schedule.is_due(at(111)));
        assert!(schedule.is_due(at(112)) && schedule.is_due(at(200)) && schedule.is_due(at(99)));
    }
}
