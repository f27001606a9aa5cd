//! The window of a response.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::period::{Period, Window};

/// The window of a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowMeta {
    /// The requested period; `custom` if dates were sent.
    #[schemars(example = Period::Month)]
    pub period: Period,
    /// First day of the window (UTC, inclusive).
    #[schemars(example = &"2026-02-13")]
    pub start_date: NaiveDate,
    /// Last day of the window (UTC, inclusive).
    pub end_date: NaiveDate,
    /// Number of days of the window.
    #[schemars(example = 30)]
    pub days: u64,
    /// Last complete UTC day, no later than `end_date`.
    #[schemars(example = &"2026-03-13")]
    pub complete_through: NaiveDate,
    /// Time of the latest observation included; null if there is none.
    pub data_as_of: Option<DateTime<Utc>>,
}

impl WindowMeta {
    pub fn new(window: Window, complete_through: NaiveDate, data_as_of: Option<DateTime<Utc>>) -> Self {
        WindowMeta {
            period: window.period,
            start_date: window.start,
            end_date: window.end,
            days: window.days(),
            complete_through,
            data_as_of,
        }
    }
}
