//! Daily history of a video or of subjects together: gains of each day and counters at its end.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;

use super::reader::VersionedHistory;
use super::scope::ListedSubjects;
use super::snapshots::{VideoSnapshots, deduplicate};
use super::subjects::sum_known;
use super::videos::VideoRef;
use crate::model::counters::Counters;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;

const COUNTER_COUNT: usize = Counters::NAMES.len();

/// The gains of one day, and the counters at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryDay {
    pub date: NaiveDate,
    pub gains: [i64; COUNTER_COUNT],
    /// Unknown before the first observation.
    pub counts: Counters,
    /// Unknown before the first observation, and for a video.
    pub followers: Option<i64>,
    /// Number of subjects observed on the day; of a video, 1 or 0.
    pub observed: u64,
    /// Of a video observed on the day, the day of the observation before, if that is retained.
    pub since: Option<NaiveDate>,
}

/// Every day of a window, ascending, and the latest observation by its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DailyHistory {
    pub days: Vec<HistoryDay>,
    pub as_of: Option<DateTime<Utc>>,
}

impl HistoryDay {
    fn empty(date: NaiveDate) -> Self {
        HistoryDay {
            date,
            gains: [0; COUNTER_COUNT],
            counts: Counters::default(),
            followers: None,
            observed: 0,
            since: None,
        }
    }
}

impl DailyHistory {
    /// The gains over the window.
    pub fn totals(&self) -> [i64; COUNTER_COUNT] {
        std::array::from_fn(|n| self.days.iter().map(|day| day.gains[n]).sum())
    }
}

/// Reads the days of one video.
pub async fn fetch_video(
    history: &VersionedHistory,
    video: VideoRef,
    window: Window,
) -> Result<DailyHistory, Error> {
    let Some(retained) = history.clip(window) else {
        return Ok(DailyHistory { days: window.iter_days().map(HistoryDay::empty).collect(), as_of: None });
    };
    let rows = history.fetch_all(include_str!("video_daily.sql"), |query| {
        let query = query.param("subject", video.subject_id).param("video", video.internal_id);
        query.param("end", clamp_day(window.end))
    });
    let snapshots = deduplicate(rows.await?);
    let snapshots = VideoSnapshots { snapshots: &snapshots, from_zero: video.from_zero };
    let before = window.iter_days().take_while(|date| *date < retained.start).map(HistoryDay::empty);
    let mut days: Vec<_> = before.chain(video_days(snapshots, retained)).collect();
    days.iter_mut().for_each(|day| day.since = day.since.filter(|since| history.retains(*since)));
    Ok(DailyHistory { days, as_of: history.clip_observation(snapshots.latest_observation()) })
}

/// Computes the days of a video with all counters.
fn video_days(video: VideoSnapshots<'_>, window: Window) -> Vec<HistoryDay> {
    let mut counts = Counters::default().to_array();
    let mut before = None;
    let mut snapshots = video.snapshots.iter().enumerate().peekable();
    let days = window.iter_days().map(|date| {
        let mut day = HistoryDay::empty(date);
        while let Some((index, snapshot)) = snapshots.next_if(|(_, next)| next.date <= clamp_day(date)) {
            let starts_from_zero = index == 0 && video.from_zero;
            if snapshot.date == date {
                day.observed += 1;
                day.since = before;
            }
            before = Some(snapshot.date);
            for (n, value) in snapshot.counters.iter().take(counts.len()).enumerate() {
                let Some(value) = *value else { continue };
                let base = counts[n].unwrap_or(if starts_from_zero { 0 } else { value });
                if snapshot.date == date {
                    day.gains[n] += value - base;
                }
                counts[n] = Some(value);
            }
        }
        day.counts = Counters::from_array(counts);
        day
    });
    days.collect()
}

#[derive(Row, Deserialize)]
struct SubjectDayRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    /// Followers, then the order of [`Counters::NAMES`]. A newer schema may have more, an older one fewer.
    gains: Vec<i64>,
    counts: Vec<Option<i64>>,
    observed: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// Reads the days of some subjects together.
pub async fn fetch_subjects(
    history: &VersionedHistory,
    subjects: &[i64],
    window: Window,
) -> Result<DailyHistory, Error> {
    let rows: Vec<SubjectDayRow> = match history.clip(window) {
        Some(window) => {
            let scope = ListedSubjects::from_groups([subjects]);
            let chunks = scope.chunks(include_str!("subject_daily.sql"));
            history.fetch_chunks(chunks, window, |query| query).await?
        }
        None => Vec::new(),
    };
    let as_of = rows.iter().map(|row| row.as_of).filter(|at| *at > DateTime::UNIX_EPOCH).max();
    Ok(DailyHistory { days: sum_days(rows, window), as_of: history.clip_observation(as_of) })
}

/// Sums rows of the same day. Days that ClickHouse cannot store take the values of the nearest that it can.
fn sum_days(rows: Vec<SubjectDayRow>, window: Window) -> Vec<HistoryDay> {
    let mut sums: BTreeMap<NaiveDate, HistoryDay> = BTreeMap::new();
    for row in rows {
        let gain = |n: usize| row.gains.get(n + 1).copied();
        let count = |n: usize| row.counts.get(n).copied().flatten();
        let day = sums.entry(row.day).or_insert_with(|| HistoryDay::empty(row.day));
        let counts = day.counts.to_array();
        day.gains = std::array::from_fn(|n| day.gains[n] + gain(n).unwrap_or_default());
        day.counts = Counters::from_array(std::array::from_fn(|n| sum_known(counts[n], count(n + 1))));
        day.followers = sum_known(day.followers, count(0));
        day.observed += row.observed;
    }
    let days = window.iter_days().map(|date| match sums.get(&clamp_day(date)) {
        Some(day) => HistoryDay { date, ..*day },
        None => HistoryDay::empty(date),
    });
    days.collect()
}
