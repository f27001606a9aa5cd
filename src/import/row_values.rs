//! Reads the values of a row. What is wrong with them becomes a violation of the row.

use chrono::{DateTime, NaiveTime, SubsecRound, Utc};
use serde_json::Value;

use super::column::Column;
use super::count::{InvalidCount, is_unknown, parse_count};
use super::formats::Dates;
use super::identity::trim;
use super::raw_row::RawValue;
use super::row_reader::{InvalidValue, RowReader, RowState, invalid};
use super::time::{WrittenTime, from_unix, parse_time};
use crate::model::account::Metadata;
use crate::model::account_settings::AccountSettings;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::{Field, FieldReader};
use crate::model::limits::{
    MAX_METADATA_CHARS, MAX_METADATA_KEYS, MAX_SCRAPE_INTERVAL_HOURS, MIN_SCRAPE_INTERVAL_HOURS,
};

const INVALID_TIME: &str = "must be a date (2026-12-31), a date and time (2026-12-31T14:51:26Z; without a zone it is \
    UTC, or that of --time-zone), or Unix seconds (10 digits) or milliseconds (13 digits); 31/12/2026 needs --day-first";

/// Bytes of the link of a picture: more than the platforms' have.
const MAX_LINK_BYTES: usize = 4_096;

impl RowReader<'_, '_> {
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
    pub fn counts<const N: usize>(&mut self, counters: [&'static str; N]) -> [Option<i64>; N] {
        counters.map(|counter| {
            self.count(Column::from_counter(counter)).unwrap_or_else(|(violation, _)| {
                self.push(violation);
                None
            })
        })
    }

    /// Reads the counters of an account: rounded ones are left out.
    pub fn profile_counts(
        &mut self,
        state: &mut RowState<'_>,
    ) -> [Option<i64>; ProfileCounters::NAMES.len()] {
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
        let value = self.raw.get_known(column, |value| parse_count(value) == Ok(None));
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
    pub fn media_type(&self, text: Option<String>, link_kind: Option<&'static str>) -> Option<String> {
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
    pub fn text(&mut self, column: Column) -> Option<String> {
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

    /// Reads the link of a picture, which pages show.
    pub fn picture(&mut self, column: Column) -> Option<String> {
        let link = self.trimmed(column)?;
        let is_link = link.starts_with("https://") || link.starts_with("http://");
        if is_link && link.len() <= MAX_LINK_BYTES && !link.contains('\0') {
            return Some(link);
        }
        let reason =
            format!("must be a link of at most {MAX_LINK_BYTES} bytes, as https://example.com/1.jpg");
        self.push(InvalidValue::new(column, self.shown(column), reason));
        None
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

    pub fn limited(&mut self, column: Column, max_chars: usize) -> Option<String> {
        let text = self.trimmed(column)?;
        if text.contains('\0') {
            self.push(invalid(column, "contains a NUL character: remove it"));
        } else if text.chars().count() > max_chars {
            self.push(invalid(column, format!("has more than {max_chars} characters")));
        }
        Some(text)
    }

    pub fn seconds(&mut self, column: Column) -> Option<f64> {
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

    /// Reads how a new account is tracked.
    pub fn settings(&mut self) -> AccountSettings {
        let is_active = self.boolean(Column::IS_ACTIVE);
        AccountSettings { is_active, scrape_interval_hours: self.interval(), tags: self.tags() }
    }

    fn interval(&mut self) -> Option<i32> {
        const COLUMN: Column = Column::SCRAPE_INTERVAL_HOURS;
        let hours = match parse_count(self.raw.get(COLUMN)) {
            Ok(None) => return None,
            Ok(hours) => {
                hours.filter(|hours| (MIN_SCRAPE_INTERVAL_HOURS..=MAX_SCRAPE_INTERVAL_HOURS).contains(hours))
            }
            Err(_) => None,
        };
        let hours = hours.and_then(|hours| i32::try_from(hours).ok());
        if hours.is_none() {
            let reason =
                format!("must be from {MIN_SCRAPE_INTERVAL_HOURS} to {MAX_SCRAPE_INTERVAL_HOURS} hours");
            self.push(InvalidValue::new(COLUMN, self.shown(COLUMN), reason));
        }
        hours
    }

    fn tags(&mut self) -> Metadata {
        let Some(text) = self.trimmed(Column::TAGS) else { return Metadata::new() };
        let is_short = |tag: &str| tag.chars().count() <= MAX_METADATA_CHARS && !tag.contains('\0');
        let are_valid = |tags: &Metadata| {
            tags.len() <= MAX_METADATA_KEYS
                && tags.iter().all(|(key, value)| !key.is_empty() && is_short(key) && is_short(value))
        };
        let tags = serde_json::from_str(&text).ok().filter(are_valid);
        if tags.is_none() {
            let reason = format!(
                "must be a JSON object of at most {MAX_METADATA_KEYS} texts of {MAX_METADATA_CHARS} characters"
            );
            self.push(InvalidValue::new(Column::TAGS, self.shown(Column::TAGS), reason));
        }
        tags.unwrap_or_default()
    }

    pub fn boolean(&mut self, column: Column) -> Option<bool> {
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
    String, |reader, column| if column.is_picture() { reader.picture(column) } else { reader.text(column) };
    f64, |reader, column| reader.seconds(column);
    bool, |reader, column| reader.boolean(column);
    // Posts have one.
    DateTime<Utc>, |reader, _column| reader.create_time.map(|time| time.trunc_subsecs(6));
    // Files have no JSON.
    Value, |_reader, _column| None;
}
