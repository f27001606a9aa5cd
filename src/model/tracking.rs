//! The tracking status of an account or a video: whether it is being updated, and why not.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

/// The first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum TrackingStatus {
    /// No configured source can scrape it.
    Unsupported,
    /// The platform no longer shows it.
    Unavailable,
    /// Its own `is_active` is false.
    Paused,
    /// Its creator's `is_active` is false.
    PausedByCreator,
    /// The latest attempt failed; it is retried.
    Failing,
    /// Not scraped yet.
    Pending,
    /// Scraped at its interval.
    Active,
}

/// Why the latest attempt failed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, sqlx::Type,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum FailureReason {
    /// The platform does not show it, or shows another account under its username.
    NotFound,
    /// The platform or the source did not answer, or not in time.
    Transient,
    /// The response does not have the documented format.
    Malformed,
    /// No source can look it up.
    Unsupported,
    /// The service could not record the response.
    Internal,
}

/// Number of records by tracking status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusCounts {
    /// No configured source can scrape them.
    pub unsupported: i64,
    /// The platform no longer shows them.
    pub unavailable: i64,
    /// Their own `is_active` is false.
    pub paused: i64,
    /// Their creator's `is_active` is false.
    pub paused_by_creator: i64,
    /// The latest attempt failed; it is retried.
    pub failing: i64,
    /// Not scraped yet.
    pub pending: i64,
    /// Scraped at their interval.
    pub active: i64,
}

impl StatusCounts {
    pub const fn add(&mut self, status: TrackingStatus, records: i64) {
        *match status {
            TrackingStatus::Unsupported => &mut self.unsupported,
            TrackingStatus::Unavailable => &mut self.unavailable,
            TrackingStatus::Paused => &mut self.paused,
            TrackingStatus::PausedByCreator => &mut self.paused_by_creator,
            TrackingStatus::Failing => &mut self.failing,
            TrackingStatus::Pending => &mut self.pending,
            TrackingStatus::Active => &mut self.active,
        } += records;
    }
}

/// Whether a record is updated, and why not.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tracking {
    /// Status of tracking.
    #[schemars(example = TrackingStatus::Active)]
    pub status: TrackingStatus,
    /// Time of the latest attempt, successful or not; null before the first.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// Time of the next attempt; null if none is planned.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Error of the latest attempt; null if it succeeded.
    #[schemars(example = None::<()>)]
    pub last_error: Option<String>,
}

/// The inputs of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackingFlags {
    pub supported: bool,
    pub unavailable: bool,
    pub active: bool,
    pub creator_active: bool,
    pub failing: bool,
    pub scraped: bool,
}

impl fmt::Display for TrackingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl TrackingStatus {
    /// Returns the first status that applies.
    pub const fn from_flags(flags: TrackingFlags) -> TrackingStatus {
        if !flags.supported {
            TrackingStatus::Unsupported
        } else if flags.unavailable {
            TrackingStatus::Unavailable
        } else if !flags.active {
            TrackingStatus::Paused
        } else if !flags.creator_active {
            TrackingStatus::PausedByCreator
        } else if flags.failing {
            TrackingStatus::Failing
        } else if !flags.scraped {
            TrackingStatus::Pending
        } else {
            TrackingStatus::Active
        }
    }
}

/// Reads the columns `tracking_*` of a query of accounts or videos.
impl<'r> FromRow<'r, PgRow> for Tracking {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let flags = TrackingFlags {
            supported: row.try_get("tracking_supported")?,
            unavailable: row.try_get("tracking_unavailable")?,
            active: row.try_get("tracking_active")?,
            creator_active: row.try_get("tracking_creator_active")?,
            failing: row.try_get("tracking_failing")?,
            scraped: row.try_get("tracking_scraped")?,
        };
        let attempted = flags.supported && flags.active && flags.creator_active;
        let next: Option<DateTime<Utc>> = row.try_get("tracking_next_attempt_at")?;
        Ok(Tracking {
            status: TrackingStatus::from_flags(flags),
            last_attempt_at: row.try_get("tracking_last_attempt_at")?,
            next_attempt_at: next.filter(|_| attempted),
            last_error: row.try_get("tracking_last_error")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_status_that_applies_is_shown() {
        let healthy = TrackingFlags {
            supported: true,
            unavailable: false,
            active: true,
            creator_active: true,
            failing: false,
            scraped: true,
        };
        let worst = TrackingFlags {
            supported: false,
            unavailable: true,
            active: false,
            creator_active: false,
            failing: true,
            scraped: false,
        };
        assert_eq!(TrackingStatus::from_flags(healthy), TrackingStatus::Active);
        let steps = [
            (worst, TrackingStatus::Unsupported),
            (TrackingFlags { supported: true, ..worst }, TrackingStatus::Unavailable),
            (TrackingFlags { supported: true, unavailable: false, ..worst }, TrackingStatus::Paused),
            (
                TrackingFlags { supported: true, unavailable: false, active: true, ..worst },
                TrackingStatus::PausedByCreator,
            ),
            (TrackingFlags { failing: true, scraped: false, ..healthy }, TrackingStatus::Failing),
            (TrackingFlags { scraped: false, ..healthy }, TrackingStatus::Pending),
        ];
        for (flags, status) in steps {
            assert_eq!(TrackingStatus::from_flags(flags), status);
        }
    }
}
