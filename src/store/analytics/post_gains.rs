//! Gains of any number of listed videos, from the rollup of videos.
//!
//! A statement holds as many ids as fit into a parameter of ClickHouse's HTTP interface. Videos are in the order of their
//! subjects, so that all statements together read each row about once.

use std::collections::HashMap;

use chrono::NaiveDate;
use clickhouse::query::Query;
use clickhouse::{Row, RowOwned, RowRead};
use serde::Deserialize;

use super::reader::VersionedHistory;
use crate::model::gains::Gains;
use crate::model::period::{Window, clamp_day};
use crate::model::platform::Platform;
use crate::store::Error;

/// ClickHouse takes 128 KiB.
const MAX_PARAMETER_BYTES: usize = 120 << 10;

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
struct TotalRow {
    video_id: u64,
    views: i64,
    plays: i64,
    likes: i64,
    comments: i64,
    shares: i64,
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
    let rows = fetch(history, include_str!("post_gains/totals.sql"), posts, window).await?;
    let gains = |row: TotalRow| {
        let gains = Gains::new(row.views, row.plays, row.likes, row.comments, row.shares);
        (row.video_id.cast_signed(), gains)
    };
    Ok(rows.into_iter().map(gains).collect())
}

/// Reads the gains of all videos together on each day of a window, by platform. Days may have several entries, or none.
pub async fn fetch_daily(
    history: &VersionedHistory,
    posts: &[PostKey],
    window: Window,
) -> Result<Vec<PlatformDay>, Error> {
    let rows: Vec<DayRow> = fetch(history, include_str!("post_gains/daily.sql"), posts, window).await?;
    Ok(rows.into_iter().map(PlatformDay::from).collect())
}

/// Runs a query of videos over a window, in as many statements as it takes.
async fn fetch<T: RowOwned + RowRead>(
    history: &VersionedHistory,
    sql: &'static str,
    posts: &[PostKey],
    window: Window,
) -> Result<Vec<T>, Error> {
    let Some(window) = history.clip(window) else { return Ok(Vec::new()) };
    let mut posts = posts.to_vec();
    posts.sort_unstable();
    let mut rows = Vec::new();
    for chunk in parameter_chunks(&posts, MAX_PARAMETER_BYTES) {
        let [first, last] = [chunk.first(), chunk.last()].map(|post| post.map_or(0, |post| post.subject_id));
        let ids: Vec<_> = chunk.iter().map(|post| post.internal_id).collect();
        let bind = |query: Query| {
            let query = query.param("start", clamp_day(window.start)).param("end", clamp_day(window.end));
            query.param("first", first).param("last", last).param("videos", ids)
        };
        rows.extend(history.fetch_all(sql, bind).await?);
    }
    Ok(rows)
}

/// Divides posts so that the text of the ids of each part, with a comma between two, has at most so many bytes.
fn parameter_chunks(posts: &[PostKey], max_bytes: usize) -> impl Iterator<Item = &[PostKey]> {
    let mut rest = posts;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |post: &&PostKey| {
            bytes += post.internal_id.checked_ilog10().map_or(1, |digits| digits as usize + 1) + 1;
            bytes <= max_bytes
        };
        let count = rest.iter().take_while(fits).count();
        let (chunk, after) = rest.split_at(count);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_chunk_fit_into_a_parameter() {
        let posts: Vec<_> = [0, 9, 10, 999, 1_000, i64::MAX, 5]
            .map(|internal_id| PostKey { subject_id: 1, internal_id })
            .into();
        let chunks: Vec<Vec<i64>> = parameter_chunks(&posts, 20)
            .map(|chunk| chunk.iter().map(|post| post.internal_id).collect())
            .collect();
        assert_eq!(chunks, [vec![0, 9, 10, 999, 1_000], vec![i64::MAX], vec![5]]);
        assert_eq!(parameter_chunks(&[], 20).count(), 0);
    }
}
