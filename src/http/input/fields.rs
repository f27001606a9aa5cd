//! Parsers of single values. Their error is the message of a violation.

use chrono::NaiveDate;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::model::period::parse_day;

/// Parses a UUID in the hyphenated form only.
pub fn parse_uuid(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map(Hyphenated::into_uuid).map_err(|_| "must be a UUID")
}

pub(super) fn parse_date(text: &str) -> Result<NaiveDate, &'static str> {
    parse_day(text).ok_or("must be a date from 1900 on, as 2026-01-31")
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

/// Returns a field of an object, if it is there and valid.
pub fn field<T: DeserializeOwned>(fields: &Map<String, Value>, name: &str) -> Option<T> {
    T::deserialize(fields.get(name)?).ok()
}
