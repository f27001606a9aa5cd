//! Gains beside the records of an export, a batch at a time.

use std::collections::{HashMap, HashSet};

use chrono::{Days, NaiveDate};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;
use sqlx::PgPool;

use super::reader::VersionedHistory;
use super::scope::{fetch_removed_subjects, subject_chunks};
use super::subjects::gains;
use crate::model::gains::Gains;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;

/// Videos of a batch. Their ids fit into a parameter of ClickHouse's HTTP interface.
pub const MAX_VIDEOS: usize = 2_000;

#[derive(Row, Deserialize)]
struct VideoRow {
    video_id: u64,
    views: i64,
    plays: i64,
    likes: i64,
    comments: i64,
    shares: i64,
}

/// Reads the gains of up to [`MAX_VIDEOS`] videos, given as subjects and internal ids, by their internal ids. Videos without
/// a gain are absent.
pub async fn fetch_video_gains(
    history: &VersionedHistory,
    videos: &[(i64, i64)],
    window: Window,
) -> Result<HashMap<i64, Gains>, Error> {
    let subjects = videos.iter().map(|(subject, _)| *subject);
    let (Some(first), Some(last), Some(window)) =
        (subjects.clone().min(), subjects.max(), history.clip(window))
    else {
        return Ok(HashMap::new());
    };
    let ids: Vec<_> = videos.iter().map(|(_, video)| *video).collect();
    let bind = |query: Query| {
        let query = query.param("start", clamp_day(window.start)).param("end", clamp_day(window.end));
        query.param("first", first).param("last", last).param("videos", ids)
    };
    let rows: Vec<VideoRow> = history.fetch_all(include_str!("exports/videos.sql"), bind).await?;
    let gains = |row: VideoRow| Gains::new(row.views, row.plays, row.likes, row.comments, row.shares);
    Ok(rows.into_iter().map(|row| (row.video_id.cast_signed(), gains(row))).collect())
}

/// What a subject gained on a day with an observation.
#[derive(Debug, Clone, Copy)]
pub struct SubjectDay {
    pub date: NaiveDate,
    pub subject_id: i64,
    pub gains: Gains,
    /// Followers at the end of the day, unknown before their first observation.
    pub followers: Option<i64>,
}

#[derive(Row, Deserialize)]
struct DayRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    subject_id: u64,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    follower_change: Option<i64>,
}

#[derive(Row, Deserialize)]
struct LevelRow {
    subject_id: u64,
    followers: Option<i64>,
}

/// The position in the days of some subjects.
#[derive(Debug)]
pub struct DayReader {
    /// Internal ids of accounts.
    subjects: Vec<i64>,
    /// The days that are not read yet, within retention.
    days: Option<Window>,
    /// Followers at the end of the last day that was read.
    followers: HashMap<i64, i64>,
}

impl DayReader {
    pub async fn open(history: &VersionedHistory, subjects: Vec<i64>, window: Window) -> Result<Self, Error> {
        let days = history.clip(window).filter(|_| !subjects.is_empty());
        let mut followers = HashMap::new();
        if let Some(days) = days {
            let parts = subject_chunks(include_str!("exports/levels_before.sql"), &subjects);
            let levels: Vec<LevelRow> = history.fetch_chunks(parts, days).await?;
            let known = |row: LevelRow| Some((row.subject_id.cast_signed(), row.followers?));
            followers = levels.into_iter().filter_map(known).collect();
        }
        Ok(DayReader { subjects, days, followers })
    }

    /// Reads the next days, with about `limit` rows or a single day: in the order of the days, maybe none. None after the
    /// last.
    pub async fn next(
        &mut self,
        pg: &PgPool,
        history: &VersionedHistory,
        limit: usize,
    ) -> Result<Option<Vec<SubjectDay>>, Error> {
        let Some(window) = self.days else { return Ok(None) };
        let days = (limit / self.subjects.len()).max(1) as u64;
        let end = window.end.min(window.start + Days::new(days - 1));
        // Before the history: what is removed afterwards is still in it.
        let removed: HashSet<_> =
            fetch_removed_subjects(pg, history.organization()).await?.into_iter().collect();
        let parts = subject_chunks(include_str!("exports/days.sql"), &self.subjects);
        let batch = Window { end, ..window };
        let mut rows: Vec<DayRow> = history.fetch_chunks(parts, batch).await?;
        rows.sort_unstable_by_key(|row| row.date);
        let days = rows.into_iter().map(|row| self.add_day(row));
        let days: Vec<_> = days.filter(|day| !removed.contains(&day.subject_id)).collect();
        self.days = (end < window.end).then(|| Window { start: end + Days::new(1), ..window });
        Ok(Some(days))
    }

    fn add_day(&mut self, row: DayRow) -> SubjectDay {
        let subject_id = row.subject_id.cast_signed();
        if let Some(change) = row.follower_change {
            *self.followers.entry(subject_id).or_default() += change;
        }
        SubjectDay {
            date: row.date,
            subject_id,
            gains: gains([row.views, row.plays, row.likes, row.comments, row.shares]),
            followers: self.followers.get(&subject_id).copied(),
        }
    }
}
