//! Reads single values out of a query string, a path or a JSON body, and collects everything that is wrong with
//! them, so that one answer names every violation. A value that is wrong reads as its default and is never used.
//! The same readers, run over nothing, note what they would read: that is how the API's document comes to know it.

mod body;
mod query;

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

pub use body::Object;
pub use query::Params;

use crate::model::period::parse_day;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    /// The dotted path of the field, as in `metadata.team` or `instagram_post_ids[3]`.
    #[schemars(example = &"limit")]
    pub field: String,
    /// What it has to be.
    #[schemars(example = &"must be from 1 to 200")]
    pub message: String,
}

/// Everything that is wrong with a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { field: field.into(), message: message.into() });
    }

    /// Whether anything is wrong with a field.
    pub fn concern(&self, field: &str) -> bool {
        self.0.iter().any(|violation| violation.field == field)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }
}

/// A value that is one of a few words.
pub trait Word: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

/// Finds the value of a word, or says which words there are.
pub fn word<T: Word>(text: &str) -> Result<T, String> {
    let found = T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
        format!("must be one of {}", words.join(", "))
    })
}

/// The word of a value.
pub fn word_of<T: Word + PartialEq>(value: T) -> &'static str {
    T::WORDS.iter().find(|(_, own)| *own == value).map_or("", |(word, _)| word)
}

/// Reads an id in the hyphenated form, the only one that the service writes.
pub fn uuid(text: &str) -> Result<Uuid, &'static str> {
    Some(text)
        .filter(|text| text.len() == 36)
        .and_then(|text| Uuid::try_parse(text).ok())
        .ok_or("must be a UUID")
}

/// Refuses what no store can hold, and what is longer or shorter than the field may be.
pub fn characters(text: &str, bounds: &RangeInclusive<usize>) -> Result<(), String> {
    if text.contains('\0') {
        return Err("must not contain the character U+0000".to_owned());
    }
    let (least, most) = (bounds.start(), bounds.end());
    match text.chars().count() {
        count if bounds.contains(&count) => Ok(()),
        _ if *least == 0 => Err(format!("must have at most {most} characters")),
        _ => Err(format!("must have {least} to {most} characters")),
    }
}

/// Leaves out what was there before.
fn distinct<T: Copy + Eq + Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.filter(|value| seen.insert(*value)).collect()
}

/// Reads a whole number, `20.0` and `2e1` included; nothing of one beyond 64 bits.
pub fn whole(value: &Value) -> Result<Option<i64>, String> {
    match value {
        Value::Number(number) if !number.is_f64() => Ok(number.as_i64()),
        Value::Number(number) => match number.as_f64() {
            // Below 2^63 a whole double converts exactly.
            Some(number) if number.fract() == 0.0 => {
                Ok((number.abs() < 9_223_372_036_854_775_808.0).then_some(number as i64))
            }
            _ => Err("must be an integer".to_owned()),
        },
        _ => Err("must be an integer".to_owned()),
    }
}

/// Reads a whole number; one beyond 64 bits counts as out of every range.
pub fn integer(value: &Value) -> Result<i64, String> {
    Ok(whole(value)?.unwrap_or(i64::MAX))
}

/// Refuses a number out of range.
pub fn integer_within(value: i64, bounds: &RangeInclusive<i64>) -> Result<i64, String> {
    if bounds.contains(&value) {
        Ok(value)
    } else {
        Err(format!("must be from {} to {}", bounds.start(), bounds.end()))
    }
}

fn date(text: &str) -> Result<NaiveDate, &'static str> {
    parse_day(text).ok_or("must be a date from 1900 on, as 2026-01-31")
}
