//! Valid rows.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::model::account_settings::AccountSettings;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::{Field, FieldValue};
use crate::model::identifier::VideoIds;
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;

/// A valid row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Row {
    Video(VideoRow),
    Account(AccountRow),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoRow {
    pub platform: Platform,
    /// `None` for an individually tracked video.
    pub username: Option<String>,
    pub ids: VideoIds,
    /// `None` only in a row without counters.
    #[serde(with = "chrono::serde::ts_microseconds_option")]
    pub observed_at: Option<DateTime<Utc>>,
    pub fields: VideoFields,
    /// The time in the id, where the row has no posting time.
    #[serde(with = "chrono::serde::ts_microseconds_option")]
    pub id_time: Option<DateTime<Utc>>,
    /// Whether individual tracking begins active; `None`: as the import says.
    pub is_active: Option<bool>,
    pub counters: Counters,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountRow {
    pub platform: Platform,
    pub username: String,
    /// `None` in a row without counters that is not an observation.
    #[serde(with = "chrono::serde::ts_microseconds_option")]
    pub observed_at: Option<DateTime<Utc>>,
    pub fields: AccountFields,
    pub counters: ProfileCounters,
    pub category: Option<String>,
    pub creator: Option<String>,
    /// Collected while files are read.
    #[serde(skip)]
    pub settings: AccountSettings,
}

impl Row {
    /// Returns the bytes of its observed texts: the others are short.
    pub fn text_bytes(&self) -> usize {
        let bytes = |(_, value): (&Field, FieldValue<'_>)| match value {
            FieldValue::Text(text) => text.len(),
            _ => 0,
        };
        match self {
            Row::Video(row) => row.fields.values().map(bytes).sum(),
            Row::Account(row) => row.fields.values().map(bytes).sum(),
        }
    }

    /// Returns when it was observed, if it has counters.
    pub fn observation(&self) -> Option<DateTime<Utc>> {
        match self {
            Row::Video(row) => row.observed_at.filter(|_| !row.counters.is_empty()),
            Row::Account(row) => row.observed_at.filter(|_| !row.counters.is_empty()),
        }
    }

    pub const fn platform(&self) -> Platform {
        match self {
            Row::Video(row) => row.platform,
            Row::Account(row) => row.platform,
        }
    }

    pub fn username(&self) -> Option<&str> {
        match self {
            Row::Video(row) => row.username.as_deref(),
            Row::Account(row) => Some(&row.username),
        }
    }
}
