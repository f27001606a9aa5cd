//! History day by day: what a video, or some accounts together, gained on each day, and what their counters were at
//! the end of it.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::snapshots::{Snapshots, snapshots};
use super::subjects::sum_of_known;
use super::videos::VideoRef;
use super::{HistoryReader, SubjectScope, stored_day};
use crate::model::counters::Counters;
use crate::model::period::Window;
use crate::store::Error;

/// A day of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryDay {
    pub date: NaiveDate,
    pub gains: [i64; COUNTERS],
    /// At the end of the day; unknown before the first observation.
    pub counts: Counters,
    /// Followers at the end of the day; unknown before the first observation, and for a video.
    pub followers: Option<i64>,
}

/// Every day of a window, ascending, and the latest observation by the end of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DailyHistory {
    pub days: Vec<HistoryDay>,
    pub as_of: Option<DateTime<Utc>>,
}

const COUNTERS: usize = Counters::NAMES.len();

/// One row per day.
#[derive(Row, Deserialize)]
struct DayRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    /// In the order of [`Counters::NAMES`], followers behind them.
    gains: Vec<i64>,
    counts: Vec<Option<i64>>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// One video day by day.
pub async fn fetch_video(
    history: &HistoryReader,
    organization: Uuid,
    video: VideoRef,
    window: Window,
) -> Result<DailyHistory, Error> {
    let query = history
        .ask(organization, include_str!("video_daily.sql"))
        .param("subject", video.subject_id)
        .param("video", video.internal_id)
        .param("end", stored_day(window.end));
    let Some(kept) = history.kept(window) else { return Ok(DailyHistory::default().over(window)) };
    let snapshots = snapshots(query).await?;
    let days = Snapshots { snapshots: &snapshots, from_zero: video.from_zero }.days(kept).over(window);
    Ok(DailyHistory { as_of: history.observed(days.as_of), ..days })
}

/// Accounts together day by day.
pub async fn fetch_subjects(
    history: &HistoryReader,
    scope: &SubjectScope,
    window: Window,
) -> Result<DailyHistory, Error> {
    let days = assembled(scope.fetch(history, include_str!("subject_daily.sql"), window).await?, window);
    Ok(DailyHistory { as_of: history.observed(days.as_of), ..days })
}

/// Adds up rows of the same day and looks up each day of the window among those that can be stored.
fn assembled(rows: Vec<DayRow>, window: Window) -> DailyHistory {
    let as_of = rows.iter().map(|row| row.as_of).filter(|at| *at > DateTime::UNIX_EPOCH).max();
    let mut known: BTreeMap<NaiveDate, HistoryDay> = BTreeMap::new();
    for row in rows {
        let (gain, count) = (|n| row.gains.get(n).copied(), |n| row.counts.get(n).copied().flatten());
        let day = known.entry(row.day).or_insert_with(|| HistoryDay::unknown(row.day));
        let counts = day.counts.to_array();
        day.gains = std::array::from_fn(|n| day.gains[n] + gain(n).unwrap_or_default());
        day.counts = Counters::from_array(std::array::from_fn(|n| sum_of_known(counts[n], count(n))));
        day.followers = sum_of_known(day.followers, count(COUNTERS));
    }
    let days = window.iter_days().map(|date| match known.get(&stored_day(date)) {
        Some(day) => HistoryDay { date, ..*day },
        None => HistoryDay::unknown(date),
    });
    DailyHistory { days: days.collect(), as_of }
}

impl HistoryDay {
    pub(super) fn unknown(date: NaiveDate) -> Self {
        HistoryDay { date, gains: [0; COUNTERS], counts: Counters::default(), followers: None }
    }
}

impl DailyHistory {
    /// The days of a window of which these are the last.
    fn over(mut self, window: Window) -> Self {
        let first = self.days.first().map(|day| day.date);
        let before = window.iter_days().take_while(|date| first.is_none_or(|first| *date < first));
        self.days.splice(0..0, before.map(HistoryDay::unknown));
        self
    }

    /// What the window gained.
    pub fn totals(&self) -> [i64; COUNTERS] {
        std::array::from_fn(|n| self.days.iter().map(|day| day.gains[n]).sum())
    }
}
