//! Gains of any number of listed videos, from the rollup of videos.
//!
//! A statement holds some thousand ids. Videos are in the order of their subjects, so that all statements together read
//! each row about once.

use std::collections::HashMap;

use chrono::NaiveDate;
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::exports::fetch_video_gains;
use super::reader::VersionedHistory;
use super::scope::MAX_IDS_PER_PARAMETER;
use crate::model::gains::Gains;
use crate::model::period::{Window, clamp_day};
use crate::model::platform::Platform;
use crate::store::Error;

/// A video as history knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PostKey {
    pub subject_id: i64,
    pub internal_id: i64,
}

/// Gains of some videos on one day and platform.
#[derive(Debug, Clone, Copy)]
pub struct PlatformDay {
    pub day: NaiveDate,
    pub platform: Platform,
    pub gains: Gains,
}

#[derive(Row, Deserialize)]
struct DayRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    on_tiktok: u8,
    views: i64,
    plays: i64,
    likes: i64,
    comments: i64,
    shares: i64,
}

/// Reads the gains of videos over a window, by their internal ids. Videos without a gain are absent.
pub async fn fetch_totals(
    history: &VersionedHistory,
    posts: &[PostKey],
    window: Window,
) -> Result<HashMap<i64, Gains>, Error> {
    let mut gains = HashMap::new();
    for chunk in sorted(posts).chunks(MAX_IDS_PER_PARAMETER) {
        let videos: Vec<_> = chunk.iter().map(|post| (post.subject_id, post.internal_id)).collect();
        gains.extend(fetch_video_gains(history, &videos, window).await?);
    }
    Ok(gains)
}

/// Reads the gains of all videos together on each day of a window, by platform. Days may have several entries, or none.
pub async fn fetch_daily(
    history: &VersionedHistory,
    posts: &[PostKey],
    window: Window,
) -> Result<Vec<PlatformDay>, Error> {
    let Some(retained) = history.clip(window) else { return Ok(Vec::new()) };
    let mut days = Vec::new();
    for chunk in sorted(posts).chunks(MAX_IDS_PER_PARAMETER) {
        let [first, last] = [chunk.first(), chunk.last()].map(|post| post.map_or(0, |post| post.subject_id));
        let ids: Vec<_> = chunk.iter().map(|post| post.internal_id).collect();
        let bind = |query: Query| {
            let query = query.param("start", clamp_day(retained.start)).param("end", clamp_day(retained.end));
            query.param("first", first).param("last", last).param("videos", ids)
        };
        let rows: Vec<DayRow> = history.fetch_all(include_str!("post_gains/daily.sql"), bind).await?;
        days.extend(rows.into_iter().map(PlatformDay::from));
    }
    Ok(days)
}

fn sorted(posts: &[PostKey]) -> Vec<PostKey> {
    let mut sorted = posts.to_vec();
    sorted.sort_unstable();
    sorted
}

impl From<DayRow> for PlatformDay {
    fn from(row: DayRow) -> Self {
        PlatformDay {
            day: row.date,
            platform: if row.on_tiktok == 1 { Platform::Tiktok } else { Platform::Instagram },
            gains: Gains::new(row.views, row.plays, row.likes, row.comments, row.shares),
        }
    }
}
