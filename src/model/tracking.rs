//! Why an account or a video is, or is not, being updated: one word with the times that go with it.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

/// The state of collecting, the first that holds in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrackingStatus")]
pub enum Status {
    /// No configured source can read it.
    Unsupported,
    /// The platform no longer shows it.
    Unavailable,
    /// Its own flag `is_active` is false.
    Paused,
    /// Its creator's flag `is_active` is false.
    PausedByCreator,
    /// The last attempt failed; the next one is on its way.
    Failing,
    /// Never scraped yet.
    Pending,
    /// It is read at its interval.
    Active,
}

/// The answer to "why is this not updating?".
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tracking {
    /// The state of collecting.
    #[schemars(example = Status::Active)]
    pub status: Status,
    /// When reading was tried for the last time, in vain or not; null before the first try.
    pub last_attempt_at: Option<DateTime<Utc>>,
    /// When it will be tried next; null while nothing will be attempted.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Why the last try failed; null when it did not.
    #[schemars(example = None::<()>)]
    pub last_error: Option<String>,
}

/// What the status follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub supported: bool,
    pub unavailable: bool,
    pub active: bool,
    pub creator_active: bool,
    pub failing: bool,
    pub scraped: bool,
}

impl Status {
    pub const fn of(facts: Facts) -> Status {
        if !facts.supported {
            Status::Unsupported
        } else if facts.unavailable {
            Status::Unavailable
        } else if !facts.active {
            Status::Paused
        } else if !facts.creator_active {
            Status::PausedByCreator
        } else if facts.failing {
            Status::Failing
        } else if !facts.scraped {
            Status::Pending
        } else {
            Status::Active
        }
    }
}

/// Reads the columns `tracking_*` that every query of accounts and videos selects.
impl<'r> FromRow<'r, PgRow> for Tracking {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let facts = Facts {
            supported: row.try_get("tracking_supported")?,
            unavailable: row.try_get("tracking_unavailable")?,
            active: row.try_get("tracking_active")?,
            creator_active: row.try_get("tracking_creator_active")?,
            failing: row.try_get("tracking_failing")?,
            scraped: row.try_get("tracking_scraped")?,
        };
        let attempted = facts.supported && facts.active && facts.creator_active;
        let next: Option<DateTime<Utc>> = row.try_get("tracking_next_attempt_at")?;
        Ok(Tracking {
            status: Status::of(facts),
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
    fn the_first_status_that_holds_is_told() {
        let healthy = Facts {
            supported: true,
            unavailable: false,
            active: true,
            creator_active: true,
            failing: false,
            scraped: true,
        };
        let worst = Facts {
            supported: false,
            unavailable: true,
            active: false,
            creator_active: false,
            failing: true,
            scraped: false,
        };
        assert_eq!(Status::of(healthy), Status::Active);
        let steps = [
            (worst, Status::Unsupported),
            (Facts { supported: true, ..worst }, Status::Unavailable),
            (Facts { supported: true, unavailable: false, ..worst }, Status::Paused),
            (Facts { supported: true, unavailable: false, active: true, ..worst }, Status::PausedByCreator),
            (Facts { failing: true, scraped: false, ..healthy }, Status::Failing),
            (Facts { scraped: false, ..healthy }, Status::Pending),
        ];
        for (facts, status) in steps {
            assert_eq!(Status::of(facts), status);
        }
    }
}
