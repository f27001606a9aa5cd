//! Computes the rollup of one subject from its snapshots in plain loops.
//!
//! It shares nothing with the relay's computation (`history_writer::rollup`) except the rules of docs/analytics.md.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use super::video_days::VideoGains;
use crate::model::counters::{ROLLUP_COUNTERS, VIDEO_ROLLUP_COUNTERS};
use crate::store::clickhouse::rollup::StoredSnapshot;

/// The number of [`ROLLUP_COUNTERS`], of which the last one counts followers.
const COUNTER_COUNT: usize = ROLLUP_COUNTERS.len();

/// A day as it has to be in the rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDay {
    pub gains: [Option<i64>; COUNTER_COUNT],
    pub bases: [i64; COUNTER_COUNT],
    pub observed_at: DateTime<Utc>,
}

/// Accumulates the days of one subject. Snapshots arrive by video, then by day.
#[derive(Debug)]
pub struct ExpectedDays {
    tracking_start: NaiveDate,
    days: BTreeMap<NaiveDate, ExpectedDay>,
    /// The current video, and the last known values of its counters.
    current: Option<(u64, [Option<i64>; COUNTER_COUNT])>,
}

impl ExpectedDays {
    pub fn new(tracking_start: NaiveDate) -> Self {
        ExpectedDays { tracking_start, days: BTreeMap::new(), current: None }
    }

    /// Adds a snapshot of a video, and returns its gains.
    pub fn add_video(&mut self, snapshot: &StoredSnapshot, posted_on: Option<NaiveDate>) -> VideoGains {
        let counts = std::array::from_fn(|n| snapshot.counters.get(n).copied().flatten());
        let gains = self.add(snapshot, counts, posted_on.is_some_and(|day| day >= self.tracking_start));
        VIDEO_ROLLUP_COUNTERS.map(|counter| {
            let gains = ROLLUP_COUNTERS.iter().zip(gains);
            gains.filter(|(name, _)| **name == counter).map(|(_, gain)| gain).sum()
        })
    }

    /// Adds a snapshot of the profile.
    pub fn add_profile(&mut self, snapshot: &StoredSnapshot) {
        let mut counts = [None; COUNTER_COUNT];
        counts[COUNTER_COUNT - 1] = snapshot.counters.first().copied().flatten();
        self.add(snapshot, counts, false);
    }

    /// Adds a snapshot; with `from_zero`, its counters are gains if it is the first. Returns its gains, 0 if unknown.
    fn add(
        &mut self,
        snapshot: &StoredSnapshot,
        counts: [Option<i64>; COUNTER_COUNT],
        from_zero: bool,
    ) -> [i64; COUNTER_COUNT] {
        let is_first = self.current.is_none_or(|(video, _)| video != snapshot.video_id);
        let (_, mut known) =
            self.current.filter(|_| !is_first).unwrap_or((snapshot.video_id, [None; COUNTER_COUNT]));
        let day = self.days.entry(snapshot.date).or_insert(ExpectedDay {
            gains: [None; COUNTER_COUNT],
            bases: [0; COUNTER_COUNT],
            observed_at: snapshot.observed_at,
        });
        day.observed_at = day.observed_at.max(snapshot.observed_at);
        let mut gains = [0; COUNTER_COUNT];
        for n in 0..COUNTER_COUNT {
            let Some(now) = counts[n] else { continue };
            let gain = match known[n] {
                Some(before) => now - before,
                None if is_first && from_zero => now,
                None => {
                    day.bases[n] += now;
                    0
                }
            };
            day.gains[n] = Some(day.gains[n].unwrap_or(0) + gain);
            known[n] = Some(now);
            gains[n] = gain;
        }
        self.current = Some((snapshot.video_id, known));
        gains
    }

    /// Returns the days. A counter is unknown until the first day on which a video reported it.
    pub fn finish(mut self) -> BTreeMap<NaiveDate, ExpectedDay> {
        let mut known = [false; COUNTER_COUNT];
        for day in self.days.values_mut() {
            for (is_known, gain) in known.iter_mut().zip(&mut day.gains) {
                *is_known |= gain.is_some();
                if *is_known {
                    gain.get_or_insert(0);
                }
            }
        }
        self.days
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
    }

    fn snapshot(video_id: u64, number: u32, views: Option<i64>, saves: Option<i64>) -> StoredSnapshot {
        let date = day(number);
        let counters = vec![views, None, None, None, saves, None, None, None, None];
        StoredSnapshot {
            subject_id: 1,
            video_id,
            date,
            observed_at: date.and_time(Default::default()).and_utc(),
            counters,
        }
    }

    /// The example of docs/analytics.md.
    #[test]
    fn documented_example_has_the_expected_days() {
        let mut expected = ExpectedDays::new(day(2));
        for (number, views) in [(2, 5_000), (4, 5_300), (5, 5_250)] {
            expected.add_video(&snapshot(1, number, Some(views), None), NaiveDate::from_ymd_opt(2026, 2, 1));
        }
        for (number, views, saves) in [(3, 40, None), (4, 90, Some(7)), (5, 90, Some(9))] {
            expected.add_video(&snapshot(2, number, Some(views), saves), Some(day(3)));
        }
        let mut followers = snapshot(0, 4, Some(100), None);
        expected.add_profile(&followers);
        followers.counters = vec![Some(90)];
        followers.date = day(5);
        expected.add_profile(&followers);
        let days = expected.finish();
        let column = |n: usize| -> Vec<_> { days.values().map(|day| (day.gains[n], day.bases[n])).collect() };
        assert_eq!(column(0), [(Some(0), 5_000), (Some(40), 0), (Some(350), 0), (Some(-50), 0)]);
        assert_eq!(column(4), [(None, 0), (None, 0), (Some(0), 7), (Some(2), 0)]);
        assert_eq!(column(9), [(None, 0), (None, 0), (Some(0), 100), (Some(-10), 0)]);
    }
}
