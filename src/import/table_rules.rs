//! Which tables of a file are read, and what their rows lack.

use chrono::{DateTime, SecondsFormat, Utc};
use table_file::Table;

use super::column::Column;
use super::formats::{Dates, OWN, Rows};
use super::layout::Layout;
use super::options::{ImportOptions, SourceFile};
use super::row_reader::{ObservationTimes, RowContext};
use super::time::parse_time;

/// What applies to all tables of a file.
#[derive(Clone, Copy)]
pub struct TableRules<'a> {
    pub options: &'a ImportOptions,
    pub source: &'a SourceFile,
    pub times: ObservationTimes,
}

/// What to do with a table.
pub enum TableDecision {
    Read(Layout),
    /// These are no columns.
    Unknown,
    /// In a sentence.
    Refuse(&'static str, String),
}

impl<'a> TableRules<'a> {
    pub fn decide(&self, table: &Table<'_>) -> TableDecision {
        let Some(layout) = Layout::recognize(table, &self.options.mappings) else {
            return TableDecision::Unknown;
        };
        let name = layout.format.name;
        if let Rows::Refused(reason) = layout.format.rows {
            return TableDecision::Refuse(name, reason.to_owned());
        }
        if let Err(duplicate) = layout.check_unique() {
            return TableDecision::Refuse(
                name,
                format!("has two columns `{}`: rename or remove one", duplicate.0),
            );
        }
        let missing = self.missing(&layout, table);
        if missing.is_empty() {
            return TableDecision::Read(layout);
        }
        TableDecision::Refuse(name, format!("lacks {}", missing.join(", and ")))
    }

    /// Returns what no row of the table can have, with the option that gives it.
    fn missing(&self, layout: &Layout, table: &Table<'_>) -> Vec<String> {
        let (options, format) = (self.options, layout.format);
        let mut missing = Vec::new();
        let has_link = layout.has(Column::URL);
        if format.platform.or(options.platform).is_none() && !layout.has(Column::PLATFORM) && !has_link {
            missing
                .push("the platform: give --platform, or name a column by --map THEIRS=platform".to_owned());
        }
        let has_posts = has_link || layout.has(Column::EXTERNAL_ID) || layout.has(Column::SHORTCODE);
        let is_of_accounts = format.rows == Rows::Accounts || !has_posts;
        if is_of_accounts && options.username.is_none() && !layout.has(Column::USERNAME) && !has_link {
            missing.push("the account: give --username".to_owned());
        }
        let has_counters = Column::all().any(|column| column.is_counter() && layout.has(column));
        if has_counters && !layout.has(Column::OBSERVED_AT) && self.observed_at(layout).is_none() {
            missing.push(
                "when the numbers were observed: give --observed-at, or name a column by --map THEIRS=observed_at"
                    .to_owned(),
            );
        }
        if let Some(day) = self.unknown_day(layout, table) {
            missing.push(format!(
                "days that are understood (`{day}` is none): give --observed-at, the day of the export"
            ));
        }
        missing
    }

    /// Returns a day of observation in a language that is not known, unless an option stands in.
    fn unknown_day(&self, layout: &Layout, table: &Table<'_>) -> Option<String> {
        if layout.format.dates != Dates::MonthAndDay || self.options.observed_at.is_some() {
            return None;
        }
        let column = layout.find(Column::OBSERVED_AT).next()?;
        let mut days = table.sample.iter().filter_map(|row| row.get(column)).map(|day| day.trim());
        days.find(|day| !day.is_empty() && parse_time(day, Dates::MonthAndDay, false).is_none())
            .map(str::to_owned)
    }

    /// Returns when rows without a time of observation were observed.
    pub fn observed_at(&self, layout: &Layout) -> Option<DateTime<Utc>> {
        let exported_at = self.source.modified_at.filter(|_| layout.format.is_as_of_export);
        self.options.observed_at.or(exported_at)
    }

    pub fn context(&self, layout: &Layout) -> RowContext<'a> {
        RowContext {
            format: layout.format,
            options: self.options,
            times: self.times,
            observed_at: self.observed_at(layout),
            has_posting_times: layout.has_all_columns && layout.has(Column::CREATE_TIME),
        }
    }

    /// Returns what is assumed of a table before its rows are read.
    pub fn assumptions(&self, layout: &Layout, table: &Table<'_>) -> Vec<String> {
        let mut assumed = Vec::new();
        let has_time = self.options.observed_at.is_some() || layout.has(Column::OBSERVED_AT);
        if let Some(time) = self.observed_at(layout).filter(|_| !has_time) {
            let time = time.to_rfc3339_opts(SecondsFormat::Secs, true);
            assumed.push(format!(
                "observed at {time}, when the file was written; --observed-at gives another time"
            ));
        }
        let is_own = std::ptr::eq(layout.format, &raw const OWN);
        let has_counters = Column::all().any(|column| column.is_counter() && layout.has(column));
        if is_own && !has_counters {
            let unread: Vec<_> =
                layout.unread().take(MAX_LISTED_COLUMNS).map(|name| format!("`{name}`")).collect();
            if !unread.is_empty() && table.columns.len() > 1 {
                assumed.push(format!(
                    "no column is a counter; not read: {}. Name columns by --map THEIRS=OURS",
                    unread.join(", ")
                ));
            }
        }
        assumed
    }
}

/// Columns that a message lists.
const MAX_LISTED_COLUMNS: usize = 12;

/// Says what a header that nothing recognizes needs.
pub fn describe_unknown(table: &Table<'_>) -> String {
    let columns: Vec<_> = table.columns.iter().filter(|name| !name.trim().is_empty()).collect();
    if columns.is_empty() {
        return "needs a header with column names: it is empty".to_owned();
    }
    let listed: Vec<_> = columns.iter().take(MAX_LISTED_COLUMNS).map(|name| show_name(name)).collect();
    let more = if columns.len() > listed.len() { ", …" } else { "" };
    format!(
        "has no known columns (it has {}{more}): a post needs `external_id`, `shortcode` or `url`, an account \
         `username`, the platform --platform and a time --observed-at; name them by --map THEIRS=OURS. \
         `tidemark import --formats` lists the files of other tools",
        listed.join(", ")
    )
}

fn show_name(name: &str) -> String {
    const MAX_CHARS: usize = 40;
    let name: String =
        name.trim().chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{name}`")
}
