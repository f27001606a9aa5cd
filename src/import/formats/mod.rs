//! The files of other tools: an entry per format, recognized by its header.
//!
//! A new format is one entry in one of the lists, and a fixture in `tests/import/fixtures`.

mod gains;
mod instagram;
mod others;
mod own;
mod recognition;
mod tiktok;

use chrono_tz::Tz;

use super::column::Column;
use crate::model::platform::Platform;

pub use own::OWN;
pub use recognition::{Header, normalize_name, recognize};

/// A kind of file.
pub struct Format {
    pub name: &'static str,
    /// What writes it.
    pub tool: &'static str,
    pub platform: Option<Platform>,
    pub recognize: fn(&Header<'_>) -> bool,
    /// The names of its columns, each with ours. Of several names for one column the first with a value counts. Ours may be that
    /// of rows of one platform: `username of tiktok`.
    pub columns: Columns,
    pub rows: Rows,
    pub dates: Dates,
    /// The zone of times without one.
    pub zone: Tz,
    /// Whether its numbers are as of the export, instead of a time in each row.
    pub is_as_of_export: bool,
    /// Texts that a media type contains, each with ours.
    pub media_types: &'static [(&'static str, &'static str)],
}

pub enum Columns {
    Named(&'static [(&'static str, &'static str)]),
    /// By position, in any language.
    Positional(&'static [Option<&'static str>]),
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Posts if they have an id or a link of one, else accounts.
    Any,
    Posts,
    Accounts,
    /// Gains, which are no counters: what the file is, and what to export instead.
    Refused(&'static str),
}

/// The form of times besides ISO 8601 and Unix times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dates {
    Iso,
    /// `02/18/2026 09:56`
    MonthFirst,
    /// `2025/10/31 18:19:10`, `20251031`
    YearFirst,
    /// `February 28`, in many languages.
    MonthAndDay,
}

impl Format {
    /// Returns the names of the columns with ours.
    pub fn list_columns(&self) -> Vec<(&'static str, &'static str)> {
        match self.columns {
            Columns::Named(columns) => columns.to_vec(),
            Columns::Positional(columns) => {
                let named = instagram::META_CONTENT_NAMES.iter().zip(columns);
                named.filter_map(|(theirs, ours)| Some((*theirs, (*ours)?))).collect()
            }
        }
    }
}

impl Format {
    /// Returns why files of this format are refused.
    pub const fn refusal(&self) -> Option<&'static str> {
        match self.rows {
            Rows::Refused(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns our columns, each with the names of the file's in the order of precedence.
    pub fn names_by_column(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut columns: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
        let own = Column::all().map(|column| (column.name(), column.name()));
        let own = own.filter(|_| std::ptr::eq(self, &raw const OWN));
        for (theirs, ours) in self.list_columns().into_iter().chain(own) {
            match columns.iter_mut().find(|(column, _)| *column == ours) {
                Some((_, names)) if names.contains(&theirs) => {}
                Some((_, names)) => names.push(theirs),
                None => columns.push((ours, vec![theirs])),
            }
        }
        columns
    }
}

/// Splits the name of a column of ours from the platform whose rows have it.
pub fn split_platform(ours: &str) -> (&str, Option<Platform>) {
    match ours.split_once(" of ") {
        Some((column, platform)) => (column, platform.parse().ok()),
        None => (ours, None),
    }
}

/// Returns all formats, in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Format> {
    tiktok::FORMATS
        .iter()
        .chain(instagram::FORMATS)
        .chain(others::FORMATS)
        .chain(gains::FORMATS)
        .chain(std::iter::once(&OWN))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn columns_are_ours_and_names_unique() {
        let mut names = BTreeSet::new();
        for format in all() {
            for (theirs, ours) in format.list_columns() {
                let (column, platform) = split_platform(ours);
                let is_known =
                    Column::from_name(column).is_some() && platform.is_some() == ours.contains(' ');
                assert!(is_known, "{}: {theirs} is {ours}", format.name);
            }
            names.insert(format.name);
        }
        assert!(names.len() > 15, "{names:?}");
    }
}
