//! Rows as files have them: a value of any type per column.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::column::Column;
use super::column_names::ColumnNames;
use super::error::Error;
use crate::model::integer::exact_integer;

/// A row of a file with its line number, or why the line is not a row.
pub struct InputRow<'a> {
    pub line: u64,
    pub row: Result<RawRow<'a>, String>,
}

/// Bytes of a row: more than any valid row has, yet little memory if a quote is left open.
pub const MAX_ROW_BYTES: usize = 128 << 10;

/// Receives the rows of a file; an error ends the import.
pub type RowSink<'s> = dyn FnMut(InputRow<'_>) -> Result<(), Error> + 's;

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
        }))
    }
}

/// The values of a row by column; of a column that is set twice, the last one.
#[derive(Debug, Default)]
pub struct RawRow<'a>(Vec<(Column, RawValue<'a>)>);

impl<'a> RawRow<'a> {
    /// Reads a JSON object with a field per column.
    pub fn from_json(json: &'a [u8], names: &ColumnNames) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let row = RowSeed(names).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(row)
    }

    pub fn set(&mut self, column: Column, value: RawValue<'a>) {
        self.0.push((column, value));
    }

    pub fn text_bytes(&self) -> usize {
        let bytes =
            |(_, value): &(_, RawValue<'_>)| if let RawValue::Text(text) = value { text.len() } else { 0 };
        self.0.iter().map(bytes).sum()
    }

    pub fn get(&self, column: Column) -> &RawValue<'a> {
        self.0.iter().rfind(|(set, _)| *set == column).map_or(&RawValue::Unknown, |(_, value)| value)
    }

    pub fn take(&mut self, column: Column) -> RawValue<'a> {
        let found = self.0.iter_mut().rfind(|(set, _)| *set == column);
        found.map(|(_, value)| std::mem::take(value)).unwrap_or_default()
    }
}

/// The name of a JSON field, copied only if it contains escapes.
#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for RawValue<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = RawValue<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, true, false or null")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(RawValue::text(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RawValue::text(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(RawValue::Integer(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(RawValue::Unsigned(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(RawValue::Decimal(number))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(RawValue::Boolean(flag))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(RawValue::Unknown)
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Deserializes a row from an object whose fields have these names.
struct RowSeed<'n>(&'n ColumnNames);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = RawRow<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = RawRow<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a field per column")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut row = RawRow::default();
        while let Some(FieldName(name)) = fields.next_key()? {
            match self.0.find_field(&name) {
                Some(column) => {
                    let value = fields
                        .next_value()
                        .map_err(|error| de::Error::custom(format!("{}: {error}", column.name())))?;
                    row.set(column, value);
                }
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(row)
    }
}
