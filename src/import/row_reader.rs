//! A row while it is read, with the violations found so far.

use std::fmt;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::clock::TableClock;
use super::column::Column;
use super::formats::{Format, OWN};
use super::notes::Notes;
use super::options::ImportOptions;
use super::raw_row::{RawRow, RawValue};
use super::rounded_ids::TableIds;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    pub column: Column,
    /// For messages; empty if the value is missing.
    value: String,
    reason: String,
}

impl InvalidValue {
    pub fn new(column: Column, value: String, reason: impl Into<String>) -> Self {
        InvalidValue { column, value, reason: reason.into() }
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.value.is_empty() { "" } else { " " };
        write!(f, "{}: {}{separator}{}", self.column.name(), self.value, self.reason)
    }
}

pub fn invalid(column: Column, reason: impl Into<String>) -> InvalidValue {
    InvalidValue::new(column, String::new(), reason)
}

/// The valid times of observation.
#[derive(Debug, Clone, Copy)]
pub struct ObservationTimes {
    /// The first day of the organization's retained history.
    pub history_since: Option<NaiveDate>,
    /// When the import started, by the service's clock.
    pub now: DateTime<Utc>,
}

impl ObservationTimes {
    pub fn check(self, observed_at: DateTime<Utc>) -> Result<(), String> {
        if observed_at > self.now + TimeDelta::days(1) {
            return Err(format!("is in the future: it is {} now", self.now.format("%FT%TZ")));
        }
        match self.history_since {
            Some(since) if observed_at.date_naive() < since => {
                Err(format!("is before {since}, the first day of the organization's retained history"))
            }
            _ => Ok(()),
        }
    }
}

/// What the rows of a table have in common.
#[derive(Clone, Copy)]
pub struct RowContext<'a> {
    pub format: &'static Format,
    pub options: &'a ImportOptions,
    pub times: ObservationTimes,
    /// When rows without a time of observation were observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// Whether all rows have a column of posting times.
    pub has_posting_times: bool,
}

/// What changes from row to row.
pub struct RowState<'a> {
    pub clock: &'a mut TableClock,
    pub ids: &'a mut TableIds,
    pub notes: &'a mut Notes,
    pub line: u64,
}

pub struct RowReader<'r, 'c> {
    pub raw: &'r RawRow<'r>,
    pub context: RowContext<'c>,
    pub violations: Vec<InvalidValue>,
    /// When the post was made.
    pub create_time: Option<DateTime<Utc>>,
}

impl<'r, 'c> RowReader<'r, 'c> {
    pub fn new(raw: &'r RawRow<'r>, context: RowContext<'c>) -> Self {
        RowReader { raw, context, violations: Vec::new(), create_time: None }
    }

    pub fn push(&mut self, violation: InvalidValue) {
        self.violations.push(violation);
    }

    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    pub fn describe(&self) -> String {
        let violations: Vec<_> = self.violations.iter().map(ToString::to_string).collect();
        violations.join("; ")
    }

    /// Returns a value for a message.
    pub fn shown(&self, column: Column) -> String {
        match self.raw.get(column) {
            RawValue::Unknown => String::new(),
            value => value.show(),
        }
    }

    pub fn is_own(&self) -> bool {
        std::ptr::eq(self.context.format, &raw const OWN)
    }
}
