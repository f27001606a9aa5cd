//! Snapshots: cumulative counters as last observed on a UTC day, the unit of all history.
//!
//! A day holds one snapshot; the latest observation of the day replaces it whole.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::counters::Counters;

/// What was observed of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoSnapshot {
    /// What is tracked: the account that the video was found on, or the video itself (both by internal id).
    pub subject_id: i64,
    pub video_id: i64,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    pub counters: Counters,
}

/// What was observed of an account's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSnapshot {
    pub subject_id: i64,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    pub follower_count: Option<i64>,
    pub following_count: Option<i64>,
    pub profile_post_count: Option<i64>,
}

impl VideoSnapshot {
    pub fn date(&self) -> NaiveDate {
        self.observed_at.date_naive()
    }
}

impl AccountSnapshot {
    pub fn date(&self) -> NaiveDate {
        self.observed_at.date_naive()
    }
}
