//! Parsers of single values. Their error is the message of a violation.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::Value;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::http::openapi::schema;
use crate::model::date_or_time::DateOrTime;
use crate::model::period::parse_day;

/// Parses a value of an enumeration by its name in serde.
pub fn parse_variant<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, String> {
    let parsed: Result<_, serde::de::value::Error> = T::deserialize(text.into_deserializer());
    parsed.map_err(|_| format!("must be one of {}", schema::variant_names::<T>().join(", ")))
}

/// Parses a UUID in the hyphenated form only.
pub fn parse_uuid(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map(Hyphenated::into_uuid).map_err(|_| "must be a UUID")
}

pub(super) fn parse_date(text: &str) -> Result<NaiveDate, &'static str> {
    parse_day(text).ok_or("must be a date from 1900 on, as 2026-01-31")
}

pub(super) fn parse_date_or_time(text: &str) -> Result<DateOrTime, &'static str> {
    DateOrTime::parse(text)
        .ok_or("must be a date from 1900 on, as 2026-01-31, or a time, as 2026-01-31T18:30:00Z")
}

/// Returns a copy of a text that Postgres can store and whose number of characters is allowed.
pub(super) fn parse_text(text: &str, bounds: &RangeInclusive<usize>) -> Result<String, String> {
    if text.contains('\0') {
        return Err("must not contain the character U+0000".to_owned());
    }
    let (min, max) = (bounds.start(), bounds.end());
    match text.chars().count() {
        count if bounds.contains(&count) => Ok(text.to_owned()),
        _ if *min == 0 => Err(format!("must have at most {max} characters")),
        _ => Err(format!("must have {min} to {max} characters")),
    }
}

pub(super) fn parse_string(value: &Value, bounds: &RangeInclusive<usize>) -> Result<String, String> {
    parse_text(value.as_str().ok_or("must be a string")?, bounds)
}

/// Parses a whole number, `20.0` and `2e1` included; `None` if it exceeds 64 bits.
pub(super) fn parse_whole_number(value: &Value) -> Result<Option<i64>, String> {
    let number = value.as_number().ok_or("must be an integer")?;
    if !number.is_f64() {
        return Ok(number.as_i64());
    }
    match number.as_f64() {
        // Below 2^63 a whole double converts exactly.
        Some(double) if double.fract() == 0.0 => {
            Ok((double.abs() < 9_223_372_036_854_775_808.0).then_some(double as i64))
        }
        _ => Err("must be an integer".to_owned()),
    }
}

/// Parses a whole number; one that exceeds 64 bits fails every range check.
pub fn parse_integer(value: &Value) -> Result<i64, String> {
    Ok(parse_whole_number(value)?.unwrap_or(i64::MAX))
}

pub fn check_range(value: i64, bounds: &RangeInclusive<i64>) -> Result<i64, String> {
    if bounds.contains(&value) {
        Ok(value)
    } else {
        Err(format!("must be from {} to {}", bounds.start(), bounds.end()))
    }
}

/// Removes repeated values, keeping the order.
pub(super) fn deduplicate<T: Clone + Eq + Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}
