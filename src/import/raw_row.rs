//! Rows as files have them: a value of any type per column.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};
use table_file::Value;

use super::column::Column;
use crate::model::integer::exact_integer;
use crate::model::platform::Platform;

/// Bytes of a row: more than any valid row has.
pub const MAX_ROW_BYTES: usize = table_file::MAX_ROW_BYTES;

/// A value of a file, not yet validated.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum RawValue<'a> {
    /// Null, absent or an empty text.
    #[default]
    Unknown,
    Text(Cow<'a, str>),
    Integer(i64),
    Unsigned(u64),
    Decimal(f64),
    Boolean(bool),
    Time(DateTime<Utc>),
    /// A time in a zone that the file does not name.
    LocalTime(NaiveDateTime),
    /// Why no column can have this value.
    Invalid(&'static str),
}

impl<'a> RawValue<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if text.is_empty() { RawValue::Unknown } else { RawValue::Text(text) }
    }

    /// Returns a number that is an integer.
    pub fn to_integer(&self) -> Option<i64> {
        match self {
            RawValue::Integer(number) => Some(*number),
            RawValue::Unsigned(number) => i64::try_from(*number).ok(),
            RawValue::Decimal(number) => exact_integer(*number),
            _ => None,
        }
    }

    /// Returns the value as text, whatever its type.
    pub fn into_text(self) -> Result<Option<Cow<'a, str>>, &'static str> {
        Ok(Some(match self {
            RawValue::Unknown => return Ok(None),
            RawValue::Invalid(reason) => return Err(reason),
            RawValue::Text(text) => text,
            RawValue::Integer(number) => number.to_string().into(),
            RawValue::Unsigned(number) => number.to_string().into(),
            RawValue::Decimal(number) => number.to_string().into(),
            RawValue::Boolean(flag) => flag.to_string().into(),
            RawValue::Time(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true).into(),
            RawValue::LocalTime(time) => time.to_string().into(),
        }))
    }

    /// Returns the value for a message, shortened; empty if there is none.
    pub fn show(&self) -> String {
        const MAX_CHARS: usize = 60;
        let text = self.clone().into_text().ok().flatten().unwrap_or_default();
        let text = text.trim().replace(char::is_control, " ");
        if text.is_empty() {
            return text;
        }
        match text.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("`{}…`", &text[..end]),
            None => format!("`{text}`"),
        }
    }
}

impl<'a> From<&Value<'a>> for RawValue<'a> {
    fn from(value: &Value<'a>) -> Self {
        match value {
            Value::Empty => RawValue::Unknown,
            Value::Text(text) => RawValue::text(text.clone()),
            Value::Integer(number) => RawValue::Integer(*number),
            Value::Unsigned(number) => RawValue::Unsigned(*number),
            Value::Decimal(number) => RawValue::Decimal(*number),
            Value::Boolean(flag) => RawValue::Boolean(*flag),
            Value::LocalTime(milliseconds) => DateTime::from_timestamp_millis(*milliseconds)
                .map_or(RawValue::Invalid("is not a valid time"), |time| {
                    RawValue::LocalTime(time.naive_utc())
                }),
            Value::Invalid(reason) => RawValue::Invalid(reason),
        }
    }
}

/// The column of a value, and how its name ranks among those of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub column: Column,
    pub rank: u8,
    /// The platform whose rows have it under this name; `None`: those of all.
    pub platform: Option<Platform>,
}

impl Target {
    pub const fn first(column: Column) -> Self {
        Target { column, rank: 0, platform: None }
    }
}

/// The values of a row by column. Of a column with several values, the known one of the first name counts.
#[derive(Debug, Default)]
pub struct RawRow<'a>(Vec<(Target, RawValue<'a>)>);

impl<'a> RawRow<'a> {
    pub fn set(&mut self, target: Target, value: RawValue<'a>) {
        self.0.push((target, value));
    }

    /// Whether the row has a column, even without a value.
    pub fn has(&self, column: Column) -> bool {
        self.0.iter().any(|(target, _)| target.column == column)
    }

    /// Whether a column is the only one with a value.
    pub fn has_only(&self, column: Column) -> bool {
        let mut known = self.0.iter().filter(|(_, value)| *value != RawValue::Unknown).peekable();
        known.peek().is_some() && known.all(|(target, _)| target.column == column)
    }

    pub fn text_bytes(&self) -> usize {
        let bytes =
            |(_, value): &(_, RawValue<'_>)| if let RawValue::Text(text) = value { text.len() } else { 0 };
        self.0.iter().map(bytes).sum()
    }

    /// Returns the value of the first name for which it is known.
    pub fn get(&self, column: Column) -> &RawValue<'a> {
        self.find(column, |_| false).map_or(&RawValue::Unknown, |n| &self.0[n].1)
    }

    /// Returns the first value that is not written as unknown.
    pub fn get_known(&self, column: Column, is_unknown: impl Fn(&RawValue<'a>) -> bool) -> &RawValue<'a> {
        self.find(column, is_unknown).map_or(&RawValue::Unknown, |n| &self.0[n].1)
    }

    /// Returns the value of the first name that rows of a platform have. A number under the name of one platform is an id.
    pub fn get_of(&self, column: Column, platform: Platform) -> &RawValue<'a> {
        let is_number = |value: &RawValue<'_>| match value {
            RawValue::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
            _ => true,
        };
        let of_platform = self.0.iter().filter(|(target, value)| {
            target.column == column
                && target.platform.is_none_or(|only| only == platform && !is_number(value))
                && *value != RawValue::Unknown
        });
        of_platform.rev().min_by_key(|(target, _)| target.rank).map_or(&RawValue::Unknown, |(_, value)| value)
    }

    /// Returns the known values of a column, in the order of its names.
    pub fn all(&self, column: Column) -> Vec<&RawValue<'a>> {
        let known =
            self.0.iter().filter(|(target, value)| target.column == column && *value != RawValue::Unknown);
        let mut values: Vec<_> = known.collect();
        values.sort_by_key(|(target, _)| target.rank);
        values.into_iter().map(|(_, value)| value).collect()
    }

    fn find(&self, column: Column, is_unknown: impl Fn(&RawValue<'a>) -> bool) -> Option<usize> {
        let of_column = self.0.iter().enumerate().filter(|(_, (target, _))| target.column == column);
        let known = of_column.filter(|(_, (_, value))| *value != RawValue::Unknown && !is_unknown(value));
        // Of one name, the last.
        known.rev().min_by_key(|(_, (target, _))| target.rank).map(|(n, _)| n)
    }
}
