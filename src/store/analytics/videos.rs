//! Windowed totals of single videos, read from their snapshots.

use chrono::{DateTime, Utc};
use clickhouse::{Client, Row};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{bounded, fetch};
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

/// Gains of videos; those that were not observed by the window's end are absent.
pub async fn totals(
    client: &Client,
    organization: Uuid,
    videos: &[VideoRef],
    window: Window,
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
        .param("since", "1970-01-01")
        .param("start", window.start)
        .param("end", window.end);
    fetch(query).await
}
