//! Single videos: what their snapshots say of gains and of the counters day by day. The statements only bring the
//! snapshots, which costs ClickHouse half of what it costs to compute from them there.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;

use super::history::Query;
use super::{days, stored_day};
use crate::model::counters::Counters;
use crate::model::period::Window;
use crate::store::Error;

/// The counters of a video as last observed on a day.
#[derive(Debug, Clone, Row, Deserialize)]
pub(super) struct Snapshot {
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    is_deleted: u8,
    /// Those that the statement names; unknown where they were not reported that day.
    counters: Vec<Option<i64>>,
}

/// Runs one of the statements: the snapshots by video and day, each day once.
pub(super) async fn snapshots(query: Query) -> Result<Vec<Snapshot>, Error> {
    Ok(settled(query.fetch().await?))
}

/// Keeps of each video and day the row that was observed last, unless that says that the day is deleted.
fn settled(mut rows: Vec<Snapshot>) -> Vec<Snapshot> {
    rows.sort_unstable_by(|one, other| {
        (one.video_id, one.date, other.observed_at, other.is_deleted).cmp(&(
            other.video_id,
            other.date,
            one.observed_at,
            one.is_deleted,
        ))
    });
    rows.dedup_by_key(|row| (row.video_id, row.date));
    rows.retain(|row| row.is_deleted == 0);
    rows
}

/// The snapshots of one video, ascending, and whether its counters start from zero.
#[derive(Clone, Copy)]
pub(super) struct Snapshots<'a> {
    pub snapshots: &'a [Snapshot],
    pub from_zero: bool,
}

/// What a counter gained, and whether no earlier snapshot than those that were looked at could change that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gained {
    pub gain: i64,
    pub settled: bool,
}

impl Snapshots<'_> {
    /// What a counter gained from a day on.
    pub fn gained(&self, counter: usize, start: NaiveDate) -> Gained {
        let known = |snapshot: &Snapshot| snapshot.counters.get(counter).copied().flatten();
        let mut latest = self.snapshots.iter().rev();
        let Some(last) = latest.find_map(known) else { return Gained { gain: 0, settled: true } };
        let eve = self.snapshots.partition_point(|snapshot| snapshot.date < start);
        let before = self.snapshots[..eve].iter().rev().find_map(known);
        let in_first = self.snapshots.first().and_then(known);
        let base = before.or_else(|| match in_first {
            Some(_) if self.from_zero => Some(0),
            _ => self.snapshots.iter().find_map(known),
        });
        Gained { gain: last - base.unwrap_or(last), settled: before.is_some() }
    }

    /// Every day of a window, with all counters.
    pub fn days(&self, window: Window) -> days::DailyHistory {
        let mut counts = Counters::default().to_array();
        let mut snapshots = self.snapshots.iter().enumerate().peekable();
        let days = window.iter_days().map(|date| {
            let mut day = days::HistoryDay { date, ..days::HistoryDay::unknown(date) };
            while let Some((place, snapshot)) = snapshots.next_if(|(_, next)| next.date <= stored_day(date)) {
                let starts = place == 0 && self.from_zero;
                for (n, now) in snapshot.counters.iter().take(counts.len()).enumerate() {
                    let Some(now) = *now else { continue };
                    let before = counts[n].unwrap_or(if starts { 0 } else { now });
                    if snapshot.date == date {
                        day.gains[n] += now - before;
                    }
                    counts[n] = Some(now);
                }
            }
            day.counts = Counters::from_array(counts);
            day
        });
        let days = days.collect();
        days::DailyHistory { days, as_of: self.snapshots.iter().map(|snapshot| snapshot.observed_at).max() }
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
    fn of_each_day_the_row_observed_last_counts_and_a_deleted_one_ends_it() {
        let deleted = Snapshot { is_deleted: 1, ..snapshot(4, 23, &[None]) };
        let rows = vec![
            snapshot(4, 9, &[Some(7)]),
            snapshot(3, 8, &[Some(1)]),
            deleted,
            snapshot(3, 9, &[Some(2)]),
            snapshot(3, 8, &[Some(1)]),
        ];
        let kept = settled(rows);
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].date, &kept[0].counters), (day(3), &vec![Some(2)]));
    }

    #[test]
    fn a_gain_counts_from_what_was_known_before_else_from_the_first_known_value() {
        let snapshots = [
            snapshot(2, 1, &[Some(40), None]),
            snapshot(4, 1, &[None, Some(7)]),
            snapshot(5, 1, &[Some(90), Some(9)]),
        ];
        let of = |from_zero, counter, start| {
            Snapshots { snapshots: &snapshots, from_zero }.gained(counter, day(start))
        };
        assert_eq!(of(false, 0, 3), Gained { gain: 50, settled: true });
        assert_eq!(of(false, 0, 2), Gained { gain: 50, settled: false });
        assert_eq!(of(true, 0, 2), Gained { gain: 90, settled: false });
        // A counter that appears later is a baseline, for a video that starts from zero too.
        assert_eq!(of(true, 1, 2), Gained { gain: 2, settled: false });
        assert_eq!(of(true, 1, 5), Gained { gain: 2, settled: true });
        assert_eq!(of(false, 2, 2), Gained { gain: 0, settled: true });
    }
}
