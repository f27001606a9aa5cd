//! Parses and validates the rows of files.

use chrono::{DateTime, NaiveDate, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::column::Column;
use super::raw_row::{RawRow, RawValue};
use super::time::{from_unix, parse_time};
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::{Field, FieldReader, FieldValue};
use crate::model::identifier::{Username, VideoIds, trim_invisible};
use crate::model::integer::has_lost_digits;
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_NAME_CHARS};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::period::is_storable_day;
use crate::model::platform::{Platform, UnknownPlatform};

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
}

/// Why a row is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", column.name())]
pub struct InvalidValue {
    column: Column,
    reason: String,
}

fn invalid(column: Column, reason: impl Into<String>) -> InvalidValue {
    InvalidValue { column, reason: reason.into() }
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
    fn check(self, observed_at: DateTime<Utc>) -> Result<(), InvalidValue> {
        if observed_at > self.now + TimeDelta::days(1) {
            let reason = format!("is in the future: it is {} now", self.now.format("%FT%TZ"));
            return Err(invalid(Column::OBSERVED_AT, reason));
        }
        match self.history_since {
            Some(since) if observed_at.date_naive() < since => {
                let reason =
                    format!("is before {since}, the first day of the organization's retained history");
                Err(invalid(Column::OBSERVED_AT, reason))
            }
            _ => Ok(()),
        }
    }
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

    pub fn parse(mut raw: RawRow<'_>, times: ObservationTimes) -> Result<Self, InvalidValue> {
        let platform: Platform = raw
            .required(Column::PLATFORM)?
            .parse()
            .map_err(|error: UnknownPlatform| invalid(Column::PLATFORM, error.to_string()))?;
        let observed_at = raw.time(Column::OBSERVED_AT)?;
        match observed_at {
            Some(observed_at) => times.check(observed_at)?,
            None if raw.has_counters() => {
                let reason = "is required in a row with counters: write when they were observed";
                return Err(invalid(Column::OBSERVED_AT, reason));
            }
            None => {}
        }
        let username = raw
            .text(Column::USERNAME)?
            .map(|name| Username::parse(platform, &name).map(Username::into_string))
            .transpose()
            .map_err(|error| invalid(Column::USERNAME, error.to_string()))?;
        if *raw.get(Column::EXTERNAL_ID) != RawValue::Unknown {
            return Ok(Row::Video(VideoRow {
                platform,
                username,
                ids: raw.video_ids(platform)?,
                observed_at,
                counters: Counters::from_array(raw.counts(Counters::NAMES)?).normalize_for(platform),
                fields: VideoFields::read(&mut raw)?,
            }));
        }
        Ok(Row::Account(AccountRow {
            platform,
            username: username
                .ok_or_else(|| invalid(Column::USERNAME, "is required in a row without external_id"))?,
            observed_at,
            counters: ProfileCounters::from_array(raw.counts(ProfileCounters::NAMES)?),
            category: raw.limited(Column::CATEGORY, MAX_CATEGORY_CHARS)?,
            creator: raw.limited(Column::CREATOR, MAX_NAME_CHARS)?,
            fields: AccountFields::read(&mut raw)?,
        }))
    }
}

macro_rules! field_readers {
    ($($type:ty, |$raw:ident, $column:ident| $read:expr;)*) => {
        $(impl FieldReader<$type> for RawRow<'_> {
            type Error = InvalidValue;

            fn read(&mut self, field: &'static Field) -> Result<Option<$type>, InvalidValue> {
                let ($raw, $column) = (self, Column::from_field(field));
                $read
            }
        })*
    };
}

field_readers! {
    String, |raw, column| raw.text(column);
    f64, |raw, column| raw.seconds(column);
    bool, |raw, column| raw.boolean(column);
    DateTime<Utc>, |raw, column| raw.time(column);
    // Files have no JSON.
    Value, |_raw, _column| Ok(None);
}

const LOST_DIGITS: &str = "is a decimal number, which has lost digits of the id: export the column as text";
const INVALID_TIME: &str = "must be a date (2026-12-31), a date and time (2026-12-31T14:51:26Z; without a zone it is \
    UTC), or Unix seconds (10 digits) or milliseconds (13 digits)";

impl RawRow<'_> {
    fn video_ids(&mut self, platform: Platform) -> Result<VideoIds, InvalidValue> {
        let column = Column::EXTERNAL_ID;
        if let RawValue::Decimal(number) = self.get(column)
            && has_lost_digits(*number)
        {
            return Err(invalid(column, LOST_DIGITS));
        }
        let id = self.required(column)?;
        VideoIds::from_file(platform, Some(trim_invisible(&id)), None)
            .map_err(|reason| invalid(column, reason.to_string()))
    }

    fn has_counters(&self) -> bool {
        let mut counters =
            Counters::NAMES.into_iter().chain(ProfileCounters::NAMES).map(Column::from_counter);
        counters.any(|column| !matches!(self.count(column), Ok(None)))
    }

    fn counts<const N: usize>(&self, counters: [&'static str; N]) -> Result<[Option<i64>; N], InvalidValue> {
        let mut counts = [None; N];
        for (count, counter) in counts.iter_mut().zip(counters) {
            *count = self.count(Column::from_counter(counter))?;
        }
        Ok(counts)
    }

    /// Reads a text. Postgres cannot store NUL characters.
    fn text(&mut self, column: Column) -> Result<Option<String>, InvalidValue> {
        match self.take(column).into_text() {
            Ok(Some(text)) if text.contains('\0') => {
                Err(invalid(column, "contains a NUL character: remove it"))
            }
            Ok(text) => Ok(text.map(Into::into)),
            Err(reason) => Err(invalid(column, reason)),
        }
    }

    fn required(&mut self, column: Column) -> Result<String, InvalidValue> {
        let text = self.trimmed(column)?;
        text.ok_or_else(|| invalid(column, "is required: it is empty or not a column"))
    }

    fn trimmed(&mut self, column: Column) -> Result<Option<String>, InvalidValue> {
        Ok(self.text(column)?.and_then(|text| match text.trim() {
            "" => None,
            trimmed if trimmed.len() == text.len() => Some(text),
            trimmed => Some(trimmed.to_owned()),
        }))
    }

    fn limited(&mut self, column: Column, max_chars: usize) -> Result<Option<String>, InvalidValue> {
        match self.trimmed(column)? {
            Some(text) if text.chars().count() > max_chars => {
                Err(invalid(column, format!("has more than {max_chars} characters")))
            }
            text => Ok(text),
        }
    }

    /// Reads a time in any of the accepted forms.
    fn time(&self, column: Column) -> Result<Option<DateTime<Utc>>, InvalidValue> {
        let time = match self.get(column) {
            RawValue::Unknown => return Ok(None),
            RawValue::Invalid(reason) => return Err(invalid(column, *reason)),
            RawValue::Time(time) => Some(*time),
            RawValue::Text(text) => match text.trim() {
                "" => return Ok(None),
                text => parse_time(text),
            },
            value => value.to_integer().and_then(from_unix),
        };
        match time {
            None => Err(invalid(column, INVALID_TIME)),
            // The stores have microseconds.
            Some(time) if is_storable_day(time.date_naive()) => Ok(Some(time.trunc_subsecs(6))),
            Some(_) => Err(invalid(column, "must be between 1975 and 2144")),
        }
    }

    fn count(&self, column: Column) -> Result<Option<i64>, InvalidValue> {
        let number = match self.get(column) {
            RawValue::Unknown => return Ok(None),
            RawValue::Invalid(reason) => return Err(invalid(column, *reason)),
            RawValue::Text(text) => match text.trim() {
                "" => return Ok(None),
                text => parse_integer(text),
            },
            value => value.to_integer(),
        };
        match number {
            // Hidden.
            Some(-1) => Ok(None),
            Some(number) if (0..=Counters::MAX_VALUE).contains(&number) => Ok(Some(number)),
            Some(..0) => Err(invalid(column, "must not be negative: leave it empty if it is unknown")),
            _ => Err(invalid(
                column,
                format!("must be an integer of at most {}, written as 1234567", Counters::MAX_VALUE),
            )),
        }
    }

    fn seconds(&self, column: Column) -> Result<Option<f64>, InvalidValue> {
        let seconds = match self.get(column) {
            RawValue::Unknown => return Ok(None),
            RawValue::Invalid(reason) => return Err(invalid(column, *reason)),
            RawValue::Integer(number) => Some(*number as f64),
            RawValue::Unsigned(number) => Some(*number as f64),
            RawValue::Decimal(number) => Some(*number),
            RawValue::Text(text) => text.trim().parse::<f64>().ok(),
            RawValue::Boolean(_) | RawValue::Time(_) => None,
        };
        match seconds {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Some(seconds)),
            _ => Err(invalid(column, "must be a number of seconds, written as 12.5")),
        }
    }

    fn boolean(&mut self, column: Column) -> Result<Option<bool>, InvalidValue> {
        let Some(text) = self.text(column)? else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" => Ok(Some(true)),
            "false" | "f" | "0" | "no" => Ok(Some(false)),
            _ => Err(invalid(column, "must be true or false")),
        }
    }
}

/// Parses an integer, also if it is written as `12.0` or `1.2e+01`, as some programs do.
fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| RawValue::Decimal(text.parse().ok()?).to_integer())
}

#[cfg(test)]
mod tests {
    use super::super::column_names::ColumnNames;
    use super::*;

    fn times() -> ObservationTimes {
        ObservationTimes { history_since: None, now: "2026-03-03T12:00:00Z".parse().unwrap() }
    }

    fn row(columns: &[(&str, &str)]) -> Result<Row, String> {
        let mut raw = RawRow::default();
        for (column, text) in columns {
            raw.set(Column::from_name(column).unwrap(), RawValue::text(*text));
        }
        Row::parse(raw, times()).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_without_external_id_are_accounts() {
        let base = [("platform", "tiktok"), ("username", "@Ab"), ("observed_at", "2026-03-01")];
        let Ok(Row::Account(account)) = row(&[base.as_slice(), &[("follower_count", "7")]].concat()) else {
            panic!()
        };
        assert_eq!(
            (account.username.as_str(), account.counters.follower_count, account.counters.following_count),
            ("ab", Some(7), None)
        );
        let Ok(Row::Video(video)) =
            row(&[base.as_slice(), &[("external_id", "99"), ("view_count", "5")]].concat())
        else {
            panic!()
        };
        assert_eq!(
            (video.counters.view_count, video.counters.play_count, video.counters.like_count),
            (Some(5), Some(5), None)
        );
        assert_eq!(video.observed_at, Some("2026-03-01T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn errors_name_their_column() {
        let base =
            [("platform", "tiktok"), ("username", "ab"), ("external_id", "9"), ("observed_at", "2026-03-01")];
        for (column, text) in [
            ("platform", "youtube"),
            ("username", "no such name"),
            ("observed_at", "2026-03-05"),
            ("observed_at", "yesterday"),
            ("view_count", "-2"),
            ("view_count", "1.5"),
            ("view_count", "99999999999999999999"),
            ("duration", "NaN"),
            ("create_time", "12:00"),
            ("create_time", "+262142-12-31"),
            ("create_time", "1960-05-05"),
            ("observed_at", "1969-12-31"),
            ("observed_at", "2026-3-1"),
            ("external_id", "a b"),
            ("description", "a\0b"),
        ] {
            let error = row(&[base.as_slice(), &[(column, text)]].concat()).expect_err(text);
            assert!(error.starts_with(column), "{column}={text}: {error}");
        }
        assert!(row(&[("platform", "tiktok"), ("observed_at", "2026-03-01")]).is_err());
        let blank = [("platform", "tiktok"), ("username", "ab"), ("follower_count", " ")];
        assert!(row(&blank).is_ok(), "a blank counter is unknown and needs no time");
        for hidden in ["-1", "-1.0", "-1e0"] {
            let Ok(Row::Video(video)) =
                row(&[base.as_slice(), &[("like_count", hidden), ("view_count", "5")]].concat())
            else {
                panic!("{hidden}")
            };
            assert_eq!((video.counters.like_count, video.counters.view_count), (None, Some(5)), "{hidden}");
            let account = [("platform", "tiktok"), ("username", "ab"), ("follower_count", hidden)];
            assert!(row(&account).is_ok(), "a hidden counter is unknown and needs no time");
        }
    }

    #[test]
    fn json_values_may_be_numbers_and_booleans() {
        let json = br#"{"platform":"instagram","username":"a","observed_at":"2026-03-01T10:00:00+07:00",
            "is_verified":true,"followers":12,"name":null,"unknown":{"x":1}}"#;
        let names = ColumnNames::new(&["followers=follower_count".parse().unwrap()]).unwrap();
        let raw = RawRow::from_json(json, &names).unwrap();
        let Ok(Row::Account(account)) = Row::parse(raw, times()) else { panic!() };
        assert_eq!(account.fields, AccountFields { is_verified: Some(true), ..AccountFields::default() });
        assert_eq!(account.counters.follower_count, Some(12));
        assert_eq!(account.observed_at, Some("2026-03-01T03:00:00Z".parse().unwrap()));
    }
}
