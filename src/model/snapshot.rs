//! Snapshots: cumulative counters as last observed on a UTC day, the unit of all history.
//!
//! The latest observation of a day replaces the whole snapshot of that day.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::counters::{Counters, ProfileCounters};

/// An observation of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoSnapshot {
    /// The internal id of the account on which the video was found, or of the individually tracked video.
    pub subject_id: i64,
    pub video_id: i64,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    pub counters: Counters,
}

/// An observation of an account's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSnapshot {
    pub subject_id: i64,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    pub counters: ProfileCounters,
}
