//! Validates the rows of files. Every violation of a row is found.

use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound, TimeDelta, Utc};
use serde_json::Value;

use super::clock::{TableClock, differ};
use super::column::Column;
use super::count::{InvalidCount, is_unknown, parse_count};
use super::formats::{Dates, Format, OWN};
use super::identity::{Identity, trim};
use super::notes::Notes;
use super::options::ImportOptions;
use super::raw_row::{RawRow, RawValue};
use super::row::{AccountRow, Row, VideoRow};
use super::time::{WrittenTime, from_unix, parse_time};
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::{Field, FieldReader};
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_NAME_CHARS};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::period::is_storable_day;
use crate::model::platform::Platform;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    column: Column,
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
    fn check(self, observed_at: DateTime<Utc>) -> Result<(), String> {
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
    /// Whether the ids' times stand in for missing posting times.
    pub fills_posting_times: bool,
}

/// What changes from row to row.
pub struct RowState<'a> {
    pub clock: &'a mut TableClock,
    pub notes: &'a mut Notes,
    pub line: u64,
}

/// Why there is no row.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejection {
    Invalid(String),
    /// The table has to be read once before: its times are incomplete.
    NeedsSurvey,
}

/// A row, and an observation of the account that it contains.
#[derive(Debug, PartialEq)]
pub struct ParsedRow {
    pub row: Row,
    pub account: Option<AccountRow>,
}

pub struct RowReader<'r, 'c> {
    pub raw: &'r RawRow<'r>,
    pub context: RowContext<'c>,
    violations: Vec<InvalidValue>,
    create_time: Option<DateTime<Utc>>,
}

const INVALID_TIME: &str = "must be a date (2026-12-31), a date and time (2026-12-31T14:51:26Z; without a zone it is \
    UTC, or that of --time-zone), or Unix seconds (10 digits) or milliseconds (13 digits); 31/12/2026 needs --day-first";

/// Validates a row.
pub fn parse(
    raw: &RawRow<'_>,
    context: RowContext<'_>,
    state: &mut RowState<'_>,
) -> Result<ParsedRow, Rejection> {
    let mut reader = RowReader::new(raw, context);
    let written = reader.written_time(Column::OBSERVED_AT);
    let posted = reader.written_time(Column::CREATE_TIME);
    if !state.clock.is_surveyed && needs_survey(written, posted) {
        return Err(Rejection::NeedsSurvey);
    }
    let observed_at = reader.observed_at(written, state.clock);
    let identity = reader.identity();
    let parsed = match &identity {
        Some(identity) if identity.ids.is_some() => reader.video(identity, observed_at, posted, state),
        Some(identity) => reader.account(identity, observed_at, state),
        None => {
            // The other violations of the row.
            let _ = (reader.counts(Counters::NAMES), reader.profile_counts(state));
            None
        }
    };
    match parsed {
        Some(parsed) if reader.violations.is_empty() => Ok(parsed),
        _ => Err(Rejection::Invalid(reader.describe())),
    }
}

/// Whether the times of a row are complete only after all rows are known.
fn needs_survey(observed_at: Option<WrittenTime>, posted: Option<WrittenTime>) -> bool {
    let is_local = |time| matches!(time, Some(WrittenTime::Local(_)));
    is_local(observed_at) || is_local(posted) || matches!(observed_at, Some(WrittenTime::DayOfYear { .. }))
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

    fn describe(&self) -> String {
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

    fn video(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        posted: Option<WrittenTime>,
        state: &mut RowState<'_>,
    ) -> Option<ParsedRow> {
        let ids = identity.ids.clone()?;
        let platform = identity.platform;
        let counters = Counters::from_array(self.counts(Counters::NAMES)).normalize_for(platform);
        let account_counters = ProfileCounters::from_array(self.profile_counts(state));
        self.require_time(observed_at, !counters.is_empty() || !account_counters.is_empty());
        let id_time = ids.posted_at(platform).filter(|time| self.is_plausible(platform, *time));
        self.create_time = match posted {
            Some(written) => state.clock.posting(written, id_time),
            None => id_time.filter(|_| self.context.fills_posting_times),
        };
        self.check_day(Column::CREATE_TIME, self.create_time);
        if posted.is_some() && self.create_time.zip(id_time).is_some_and(|(time, id)| differ(time, id)) {
            state.notes.count_late_post();
        }
        let account = self.account_in_post(identity, observed_at, account_counters, state);
        let mut fields = VideoFields::read(self).ok()?;
        fields.media_type = self.media_type(fields.media_type, identity.link_kind);
        let username = identity.username.clone();
        let row = Row::Video(VideoRow { platform, username, ids, observed_at, fields, counters });
        Some(ParsedRow { row, account })
    }

    /// Returns the observation of the account that a post's row contains.
    fn account_in_post(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        counters: ProfileCounters,
        state: &mut RowState<'_>,
    ) -> Option<AccountRow> {
        if counters.is_empty() {
            return None;
        }
        let Some(username) = identity.username.clone() else {
            for column in ProfileCounters::NAMES.map(Column::from_counter) {
                if *self.raw.get(column) != RawValue::Unknown {
                    state.notes.leave_out(
                        column,
                        "is of an account, which the row does not name",
                        self.shown(column),
                        state.line,
                    );
                }
            }
            return None;
        };
        let fields = match self.is_own() {
            true => AccountFields::default(),
            false => AccountFields {
                name: self.text(Column::NAME),
                is_verified: self.boolean(Column::IS_VERIFIED),
                ..AccountFields::default()
            },
        };
        let platform = identity.platform;
        Some(AccountRow { platform, username, observed_at, fields, counters, category: None, creator: None })
    }

    fn account(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        state: &mut RowState<'_>,
    ) -> Option<ParsedRow> {
        let counters = ProfileCounters::from_array(self.profile_counts(state));
        self.report_post_counters(counters.is_empty(), state);
        self.require_time(observed_at, !counters.is_empty());
        if identity.username.is_none() && self.is_valid() {
            let reason = "is required in a row without `external_id`, `shortcode` or a link of a post: give --username";
            self.push(invalid(Column::USERNAME, reason));
        }
        let (category, creator) = (
            self.limited(Column::CATEGORY, MAX_CATEGORY_CHARS),
            self.limited(Column::CREATOR, MAX_NAME_CHARS),
        );
        let fields = AccountFields::read(self).ok()?;
        let (platform, username) = (identity.platform, identity.username.clone()?);
        let row = AccountRow { platform, username, observed_at, counters, category, creator, fields };
        Some(ParsedRow { row: Row::Account(row), account: None })
    }

    /// Reports counters of posts in the row of an account. Without others, an id is missing.
    fn report_post_counters(&mut self, is_without_counters: bool, state: &mut RowState<'_>) {
        for column in Counters::NAMES.map(Column::from_counter) {
            let value = self.raw.get(column);
            if parse_count(value) == Ok(None) {
                continue;
            }
            let shown = value.show();
            if is_without_counters {
                let reason = "is of a post, but the row names none: add `external_id`, `shortcode` or `url`";
                self.push(InvalidValue::new(column, shown, reason));
            } else {
                state.notes.leave_out(column, "is of a post, and the row is an account's", shown, state.line);
            }
        }
    }

    fn require_time(&mut self, observed_at: Option<DateTime<Utc>>, has_counters: bool) {
        let is_reported = self.violations.iter().any(|violation| violation.column == Column::OBSERVED_AT);
        if observed_at.is_none() && has_counters && !is_reported {
            let reason =
                "is required in a row with counters: write when they were observed, or give --observed-at";
            self.push(invalid(Column::OBSERVED_AT, reason));
        }
    }

    fn observed_at(&mut self, written: Option<WrittenTime>, clock: &mut TableClock) -> Option<DateTime<Utc>> {
        let default = self.context.observed_at;
        let time = written.and_then(|written| clock.observation(written)).or(default)?;
        // The stores have microseconds.
        let time = time.trunc_subsecs(6);
        if !is_storable_day(time.date_naive()) {
            self.push(InvalidValue::new(Column::OBSERVED_AT, self.shown(Column::OBSERVED_AT), NOT_STORABLE));
        } else if let Err(reason) = self.context.times.check(time) {
            self.push(InvalidValue::new(Column::OBSERVED_AT, self.shown(Column::OBSERVED_AT), reason));
        }
        Some(time)
    }

    fn check_day(&mut self, column: Column, time: Option<DateTime<Utc>>) {
        if time.is_some_and(|time| !is_storable_day(time.date_naive())) {
            self.push(InvalidValue::new(column, self.shown(column), NOT_STORABLE));
        }
    }

    /// Returns the time in the id of a row.
    pub fn id_time(&mut self) -> Option<DateTime<Utc>> {
        let Identity { platform, ids, .. } = self.identity()?;
        ids?.posted_at(platform).filter(|time| self.is_plausible(platform, *time))
    }

    /// Whether a post of the platform can have been made then.
    fn is_plausible(&self, platform: Platform, time: DateTime<Utc>) -> bool {
        // TikTok's predecessor began in 2014, Instagram's ids in 2011.
        let first = match platform {
            Platform::Tiktok => 1_388_534_400,
            Platform::Instagram => 1_314_220_021,
        };
        time.timestamp() >= first && time <= self.context.times.now + TimeDelta::days(1)
    }

    /// Reads a time in any of the accepted forms.
    pub fn written_time(&mut self, column: Column) -> Option<WrittenTime> {
        let value = self.raw.get_known(column, is_unknown_text);
        let time = match value {
            RawValue::Unknown => return None,
            RawValue::Invalid(reason) => {
                let violation = invalid(column, *reason);
                self.push(violation);
                return None;
            }
            RawValue::Time(time) => Some(WrittenTime::At(*time)),
            RawValue::LocalTime(time) if time.time() == NaiveTime::MIN => Some(WrittenTime::Day(time.date())),
            RawValue::LocalTime(time) => Some(WrittenTime::Local(*time)),
            RawValue::Text(text) => {
                parse_time(text.trim(), self.context.format.dates, self.context.options.day_first)
            }
            number => number.to_integer().and_then(from_unix).map(WrittenTime::At),
        };
        let is_in_unknown_language = self.context.format.dates == Dates::MonthAndDay
            && (column == Column::CREATE_TIME || self.context.observed_at.is_some());
        if time.is_none() && !is_in_unknown_language {
            let violation = InvalidValue::new(column, value.show(), INVALID_TIME);
            self.push(violation);
        }
        time
    }

    /// Reads counters, of which none may be rounded.
    fn counts<const N: usize>(&mut self, counters: [&'static str; N]) -> [Option<i64>; N] {
        counters.map(|counter| {
            self.count(Column::from_counter(counter)).unwrap_or_else(|(violation, _)| {
                self.push(violation);
                None
            })
        })
    }

    /// Reads the counters of an account: rounded ones are left out.
    fn profile_counts(&mut self, state: &mut RowState<'_>) -> [Option<i64>; ProfileCounters::NAMES.len()] {
        ProfileCounters::NAMES.map(|counter| {
            let column = Column::from_counter(counter);
            match self.count(column) {
                Ok(count) => count,
                Err((_, InvalidCount::Rounded)) => {
                    state.notes.leave_out(column, "is rounded", self.shown(column), state.line);
                    None
                }
                Err((violation, _)) => {
                    self.push(violation);
                    None
                }
            }
        })
    }

    fn count(&self, column: Column) -> Result<Option<i64>, (InvalidValue, InvalidCount)> {
        let value = self.raw.get_known(column, is_unknown_text);
        parse_count(value).map_err(|error| {
            let reason = match (value, error) {
                (RawValue::Invalid(reason), _) => (*reason).to_owned(),
                (_, InvalidCount::Rounded) => {
                    "is rounded: export exact numbers, or leave the column out".to_owned()
                }
                (_, InvalidCount::Ambiguous) => {
                    "may be a thousand or a fraction: write 1234 or 1,234".to_owned()
                }
                (_, InvalidCount::Negative) => {
                    "must not be negative: leave it empty if it is unknown".to_owned()
                }
                (_, InvalidCount::NoInteger) => {
                    format!("must be an integer of at most {}, written as 1234567", Counters::MAX_VALUE)
                }
            };
            (InvalidValue::new(column, value.show(), reason), error)
        })
    }

    /// Returns our name of a format's media type; the link tells where the file does not.
    fn media_type(&self, text: Option<String>, link_kind: Option<&'static str>) -> Option<String> {
        if self.is_own() {
            return text;
        }
        let types = self.context.format.media_types;
        let values = self.raw.all(Column::MEDIA_TYPE).into_iter();
        let texts = values.filter_map(|value| Some(value.clone().into_text().ok()??.to_lowercase()));
        let mut known = texts
            .filter_map(|lower| types.iter().find_map(|(word, ours)| lower.contains(word).then_some(*ours)));
        known.next().or(link_kind).map(str::to_owned)
    }

    /// Reads a text. Postgres cannot store NUL characters.
    fn text(&mut self, column: Column) -> Option<String> {
        match self.raw.get(column).clone().into_text() {
            Ok(Some(text)) if text.contains('\0') => {
                self.push(invalid(column, "contains a NUL character: remove it"));
                None
            }
            Ok(text) => text.map(Into::into),
            Err(reason) => {
                self.push(invalid(column, reason));
                None
            }
        }
    }

    /// Reads an id, a name or a link, without what surrounds it.
    pub fn trimmed(&mut self, column: Column) -> Option<String> {
        match self.raw.get(column).clone().into_text() {
            Ok(text) => text.map(|text| trim(&text).to_owned()).filter(|text| !text.is_empty()),
            Err(reason) => {
                self.push(invalid(column, reason));
                None
            }
        }
    }

    fn limited(&mut self, column: Column, max_chars: usize) -> Option<String> {
        let text = self.trimmed(column)?;
        if text.contains('\0') {
            self.push(invalid(column, "contains a NUL character: remove it"));
        } else if text.chars().count() > max_chars {
            self.push(invalid(column, format!("has more than {max_chars} characters")));
        }
        Some(text)
    }

    fn seconds(&mut self, column: Column) -> Option<f64> {
        let value = self.raw.get_known(column, is_unknown_text);
        let seconds = match value {
            RawValue::Unknown => return None,
            RawValue::Integer(number) => Some(*number as f64),
            RawValue::Unsigned(number) => Some(*number as f64),
            RawValue::Decimal(number) => Some(*number),
            RawValue::Text(text) => text.trim().parse::<f64>().ok(),
            RawValue::Boolean(_) | RawValue::Time(_) | RawValue::LocalTime(_) | RawValue::Invalid(_) => None,
        };
        match seconds {
            // Other tools write 0 for pictures.
            Some(0.0) if !self.is_own() => None,
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => Some(seconds),
            _ => {
                let violation =
                    InvalidValue::new(column, value.show(), "must be a number of seconds, written as 12.5");
                self.push(violation);
                None
            }
        }
    }

    fn boolean(&mut self, column: Column) -> Option<bool> {
        let text = self.trimmed(column)?;
        match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" => Some(true),
            "false" | "f" | "0" | "no" => Some(false),
            _ => {
                self.push(InvalidValue::new(column, self.shown(column), "must be true or false"));
                None
            }
        }
    }
}

const NOT_STORABLE: &str = "must be between 1975 and 2144";

fn is_unknown_text(value: &RawValue<'_>) -> bool {
    matches!(value, RawValue::Text(text) if is_unknown(text))
}

/// Reading never fails: violations are collected.
macro_rules! field_readers {
    ($($type:ty, |$raw:ident, $column:ident| $read:expr;)*) => {
        $(impl FieldReader<$type> for RowReader<'_, '_> {
            type Error = std::convert::Infallible;

            fn read(&mut self, field: &'static Field) -> Result<Option<$type>, Self::Error> {
                let ($raw, $column) = (self, Column::from_field(field));
                Ok($read)
            }
        })*
    };
}

field_readers! {
    String, |reader, column| reader.text(column);
    f64, |reader, column| reader.seconds(column);
    bool, |reader, column| reader.boolean(column);
    // Posts have one.
    DateTime<Utc>, |reader, _column| reader.create_time.map(|time| time.trunc_subsecs(6));
    // Files have no JSON.
    Value, |_reader, _column| None;
}
