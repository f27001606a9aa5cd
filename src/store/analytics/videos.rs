//! Windowed totals of single videos, read from their snapshots.

use std::collections::HashSet;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::{Client, Row};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{bounded, fetch, stored_day};
use crate::model::period::Window;
use crate::store::Error;

/// A video as its history is found: where its facts lie, and whether its first snapshot counts in full because it
/// was posted on or after the day on which its tracking began.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct VideoRef {
    pub internal_id: i64,
    pub subject_id: i64,
    pub from_zero: bool,
}

/// Account-discovered videos of the organization among internal ids of one platform.
pub async fn discovered(
    pg: &PgPool,
    organization: Uuid,
    platform: crate::model::platform::Platform,
    internal_ids: &[i64],
) -> Result<Vec<VideoRef>, Error> {
    if internal_ids.is_empty() {
        return Ok(Vec::new());
    }
    let videos = sqlx::query_as(
        "select v.internal_id, v.subject_id,
                coalesce((v.create_time at time zone 'UTC')::date >= a.tracked_since, false) as from_zero
         from videos v join accounts a on a.id = v.account_id
         where v.organization_id = $1 and v.platform = $2 and v.internal_id = any($3)",
    )
    .bind(organization)
    .bind(platform)
    .bind(internal_ids)
    .fetch_all(pg)
    .await?;
    Ok(videos)
}

/// Gains of one video over a window.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct VideoTotals {
    pub video_id: u64,
    /// In the order of [`crate::model::counters::Counters::NAMES`].
    gains: Vec<i64>,
    /// Whether no snapshot before those that were looked at could change the gains.
    settled: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl VideoTotals {
    fn gain(&self, counter: usize) -> i64 {
        self.gains.get(counter).copied().unwrap_or_default()
    }

    pub fn views(&self) -> i64 {
        self.gain(0)
    }

    pub fn likes(&self) -> i64 {
        self.gain(1)
    }

    pub fn comments(&self) -> i64 {
        self.gain(2)
    }

    pub fn shares(&self) -> i64 {
        self.gain(3)
    }

    pub fn plays(&self) -> i64 {
        self.gain(5)
    }

    pub fn engagement(&self) -> i64 {
        self.likes() + self.comments() + self.shares()
    }
}

/// How far before a window its first look goes: a video that is scraped at all was seen within this time.
const FIRST_LOOK: Days = Days::new(40);

/// Gains of videos; those that were not observed by the window's end are absent.
///
/// Most videos were observed shortly before the window, so that is looked at first and costs the same however long
/// the history is; only the others are looked up in all of theirs.
pub async fn totals(
    client: &Client,
    organization: Uuid,
    videos: &[VideoRef],
    window: Window,
) -> Result<Vec<VideoTotals>, Error> {
    let near = stored_day(window.start) - FIRST_LOOK;
    let mut totals = totals_since(client, organization, videos, window, near).await?;
    totals.retain(|totals| totals.settled);
    let settled: HashSet<_> = totals.iter().map(|totals| totals.video_id.cast_signed()).collect();
    let others: Vec<_> =
        videos.iter().filter(|video| !settled.contains(&video.internal_id)).copied().collect();
    totals.extend(totals_since(client, organization, &others, window, NaiveDate::default()).await?);
    Ok(totals)
}

async fn totals_since(
    client: &Client,
    organization: Uuid,
    videos: &[VideoRef],
    window: Window,
    since: NaiveDate,
) -> Result<Vec<VideoTotals>, Error> {
    if videos.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
    let from_zero: Vec<_> =
        videos.iter().filter(|video| video.from_zero).map(|video| video.internal_id).collect();
    let query = bounded(client, include_str!("video_totals.sql"))
        .param("org", organization)
        .param("videos", places)
        .param("from_zero", from_zero)
        .param("since", since)
        .param("start", stored_day(window.start))
        .param("end", stored_day(window.end));
    fetch(query).await
}
