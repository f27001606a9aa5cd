//! Gains of single videos, computed from their snapshots: for few snapshots half the cost of computing them in ClickHouse.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;

/// The counters of a video as last observed on a day.
#[derive(Debug, Clone, Row, Deserialize)]
pub(super) struct Snapshot {
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    is_deleted: u8,
    /// Those that the statement selects; unknown ones were not reported that day.
    pub counters: Vec<Option<i64>>,
}

/// Keeps the row of each video and day that was observed last, or none if that is deleted. Of rows observed at the same
/// time, it keeps the one inserted last, as FINAL does: one thread reads the parts of a table in the order of their
/// insertion. Sorts by video and day.
pub(super) fn deduplicate(mut rows: Vec<Snapshot>) -> Vec<Snapshot> {
    rows.reverse();
    rows.sort_by(|one, other| {
        let newest_first = (other.observed_at, other.is_deleted).cmp(&(one.observed_at, one.is_deleted));
        (one.video_id, one.date).cmp(&(other.video_id, other.date)).then(newest_first)
    });
    rows.dedup_by_key(|row| (row.video_id, row.date));
    rows.retain(|row| row.is_deleted == 0);
    rows
}

/// The snapshots of one video, ascending.
#[derive(Clone, Copy)]
pub(super) struct VideoSnapshots<'a> {
    pub snapshots: &'a [Snapshot],
    /// Whether the counters of the first snapshot are gains.
    pub from_zero: bool,
}

/// The gain of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CounterGain {
    pub gain: i64,
    /// No earlier snapshot could change it.
    pub is_final: bool,
}

impl VideoSnapshots<'_> {
    /// The gain of a counter since a day.
    pub fn gain_since(&self, start: NaiveDate, counter: usize) -> CounterGain {
        let value = |snapshot: &Snapshot| snapshot.counters.get(counter).copied().flatten();
        let Some(last) = self.snapshots.iter().rev().find_map(value) else {
            return CounterGain { gain: 0, is_final: true };
        };
        let in_window = self.snapshots.partition_point(|snapshot| snapshot.date < start);
        let before = self.snapshots[..in_window].iter().rev().find_map(value);
        let base = before.or_else(|| match self.snapshots.first().and_then(value) {
            Some(_) if self.from_zero => Some(0),
            _ => self.snapshots.iter().find_map(value),
        });
        CounterGain { gain: last - base.unwrap_or(last), is_final: before.is_some() }
    }

    /// The gain of a counter in each snapshot that reports it, ascending.
    pub fn gains(&self, counter: usize) -> impl Iterator<Item = (NaiveDate, i64)> {
        let mut before = None;
        self.snapshots.iter().enumerate().filter_map(move |(index, snapshot)| {
            let value = snapshot.counters.get(counter).copied().flatten()?;
            let base = before.unwrap_or(if index == 0 && self.from_zero { 0 } else { value });
            before = Some(value);
            Some((snapshot.date, value - base))
        })
    }

    pub fn latest_observation(&self) -> Option<DateTime<Utc>> {
        self.snapshots.iter().map(|snapshot| snapshot.observed_at).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
    }

    fn snapshot(date: u32, hour: u32, counters: &[Option<i64>]) -> Snapshot {
        let observed_at = day(date).and_hms_opt(hour, 0, 0).unwrap().and_utc();
        Snapshot { video_id: 1, date: day(date), observed_at, is_deleted: 0, counters: counters.to_vec() }
    }

    #[test]
    fn latest_row_of_a_day_wins_even_if_deleted() {
        let deleted = Snapshot { is_deleted: 1, ..snapshot(4, 23, &[None]) };
        let rows = vec![
            snapshot(4, 9, &[Some(7)]),
            snapshot(3, 8, &[Some(1)]),
            deleted,
            snapshot(3, 9, &[Some(2)]),
            snapshot(3, 8, &[Some(1)]),
        ];
        let snapshots = deduplicate(rows);
        assert_eq!(snapshots.len(), 1);
        assert_eq!((snapshots[0].date, &snapshots[0].counters), (day(3), &vec![Some(2)]));
    }

    #[test]
    fn row_inserted_last_wins_among_those_of_the_same_time() {
        let rows = [40, 90, 70].map(|views| snapshot(3, 0, &[Some(views)]));
        let snapshots = deduplicate(rows.into());
        assert_eq!(snapshots.len(), 1);
        assert_eq!(snapshots[0].counters, [Some(70)]);
    }

    #[test]
    fn gain_counts_from_last_value_before_else_first_known() {
        let snapshots = [
            snapshot(2, 1, &[Some(40), None]),
            snapshot(4, 1, &[None, Some(7)]),
            snapshot(5, 1, &[Some(90), Some(9)]),
        ];
        let gain = |from_zero, counter, start| {
            VideoSnapshots { snapshots: &snapshots, from_zero }.gain_since(day(start), counter)
        };
        assert_eq!(gain(false, 0, 3), CounterGain { gain: 50, is_final: true });
        assert_eq!(gain(false, 0, 2), CounterGain { gain: 50, is_final: false });
        assert_eq!(gain(true, 0, 2), CounterGain { gain: 90, is_final: false });
        // The first value of a counter that appears later is a base, also for a video that starts from zero.
        assert_eq!(gain(true, 1, 2), CounterGain { gain: 2, is_final: false });
        assert_eq!(gain(true, 1, 5), CounterGain { gain: 2, is_final: true });
        assert_eq!(gain(false, 2, 2), CounterGain { gain: 0, is_final: true });
    }
}
