//! Reads single values out of a query string, a path or a JSON body, and collects everything that is wrong with
//! them, so that one answer names every violation. A value that is wrong reads as its default and is never used.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::model::limits;
use crate::model::period::read_day;

/// What is wrong with one field, by its dotted path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub field: String,
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

/// Reads a whole number; one beyond 64 bits counts as out of every range.
pub fn integer(value: &Value) -> Result<i64, String> {
    match value {
        Value::Number(number) if !number.is_f64() => Ok(number.as_i64().unwrap_or(i64::MAX)),
        _ => Err("must be an integer".to_owned()),
    }
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
    read_day(text).ok_or("must be a date from 1900 on, as 2026-01-31")
}

/// The parameters of a query string. What nobody asks for is ignored.
pub struct Params<'a> {
    pairs: &'a [(String, String)],
    pub violations: &'a mut Violations,
}

impl<'a> Params<'a> {
    pub const fn new(pairs: &'a [(String, String)], violations: &'a mut Violations) -> Self {
        Params { pairs, violations }
    }

    fn single(&mut self, name: &str) -> Option<&'a str> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            self.violations.add(name, "must be given once");
            return None;
        }
        first
    }

    fn parsed<T, E: Into<String>>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.single(name)?;
        if text.is_empty() {
            self.violations.add(name, "must not be empty");
            return None;
        }
        parse(text).map_err(|message| self.violations.add(name, message)).ok()
    }

    /// Notes that a parameter has to be there, whatever reads it.
    pub fn require(&mut self, name: &str) {
        if !self.has(name) {
            self.violations.add(name, "is required");
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| key == name)
    }

    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        self.parsed(name, |text| text.parse().map_err(|_| "must be true or false"))
    }

    pub fn integer(&mut self, name: &str, bounds: &RangeInclusive<i64>) -> Option<i64> {
        self.parsed(name, |text| {
            text.parse()
                .map_err(|_| "must be an integer".to_owned())
                .and_then(|value| integer_within(value, bounds))
        })
    }

    pub fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.parsed(name, uuid)
    }

    pub fn word<T: Word>(&mut self, name: &str) -> Option<T> {
        self.parsed(name, word)
    }

    pub fn date(&mut self, name: &str) -> Option<NaiveDate> {
        self.parsed(name, date)
    }

    /// Values with commas between them, each counted once; what is wrong with one is told by its place.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &str,
        most: usize,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let texts = self.parsed(name, |text| Ok::<_, String>(text.split(',')))?;
        let read_values = texts.enumerate().filter_map(|(place, text)| {
            read(text).map_err(|message| self.violations.add(format!("{name}[{place}]"), message)).ok()
        });
        let values = distinct(read_values);
        if values.len() > most {
            self.violations.add(name, format!("must have at most {most} entries"));
            return None;
        }
        Some(values)
    }

    /// A text that is read by a rule of its own and must not be empty.
    pub fn with<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        self.parsed(name, parse)
    }

    /// A text that matches exactly, the empty one included.
    pub fn text(&mut self, name: &str, most: usize) -> Option<String> {
        let text = self.single(name)?;
        match characters(text, &(0..=most)) {
            Ok(()) => Some(text.to_owned()),
            Err(message) => {
                self.violations.add(name, message);
                None
            }
        }
    }

    /// A text to search for, trimmed; an empty one searches for nothing.
    pub fn search_text(&mut self, name: &str) -> Option<String> {
        let text = self.single(name)?.trim();
        match characters(text, &(0..=limits::QUERY_CHARACTERS)) {
            Ok(()) => Some(text.to_owned()).filter(|text| !text.is_empty()),
            Err(message) => {
                self.violations.add(name, message);
                None
            }
        }
    }
}

/// The members of a JSON object. What nobody asks for is a violation.
pub struct Object<'a> {
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    pub violations: &'a mut Violations,
}

impl<'a> Object<'a> {
    pub fn new(value: &'a Value, violations: &'a mut Violations) -> Self {
        let members = value.as_object();
        if members.is_none() {
            violations.add("body", "must be a JSON object");
        }
        Object { members, known: Vec::new(), violations }
    }

    fn member(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.and_then(|members| members.get(name))
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.member(name)?;
        let outcome = if value.is_null() { Err("must not be null".to_owned()) } else { parse(value) };
        outcome.map_err(|message| self.violations.add(name, message)).ok()
    }

    /// Notes that a member has to be there, whatever reads it.
    pub fn require(&mut self, name: &'static str) {
        if self.members.is_some_and(|members| !members.contains_key(name)) {
            self.violations.add(name, "is required");
        }
    }

    /// A member whose null means something: `Some(None)` when it is null, `None` when it is absent.
    pub fn nullable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.member(name) {
            Some(Value::Null) => Some(None),
            Some(_) => read(self, name).map(Some),
            None => None,
        }
    }

    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.parsed(name, |value| value.as_bool().ok_or_else(|| "must be true or false".to_owned()))
    }

    pub fn integer(&mut self, name: &'static str, bounds: &RangeInclusive<i64>) -> Option<i32> {
        self.parsed(name, |value| {
            integer(value)
                .and_then(|value| integer_within(value, bounds))
                .and_then(|value| i32::try_from(value).map_err(|error| error.to_string()))
        })
    }

    pub fn text(&mut self, name: &'static str, bounds: &RangeInclusive<usize>) -> Option<String> {
        self.parsed(name, |value| {
            let text = value.as_str().ok_or("must be a string")?;
            characters(text, bounds).map(|()| text.to_owned())
        })
    }

    pub fn uuid(&mut self, name: &'static str) -> Option<Uuid> {
        self.parsed(name, |value| uuid(value.as_str().unwrap_or_default()).map_err(str::to_owned))
    }

    pub fn word<T: Word>(&mut self, name: &'static str) -> Option<T> {
        self.parsed(name, |value| word(value.as_str().unwrap_or_default()))
    }

    pub fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        self.parsed(name, |value| date(value.as_str().unwrap_or_default()).map_err(str::to_owned))
    }

    /// A list of so many values, each answered once; what is wrong with one is told by its place.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let values =
            self.parsed(name, |value| value.as_array().ok_or_else(|| "must be a list".to_owned()))?;
        if !bounds.contains(&values.len()) {
            let message = match (bounds.start(), bounds.end()) {
                (0, most) => format!("must have at most {most} entries"),
                (least, most) => format!("must have {least} to {most} entries"),
            };
            self.violations.add(name, message);
            return None;
        }
        Some(distinct(values.iter().enumerate().filter_map(|(place, value)| {
            read(value).map_err(|message| self.violations.add(format!("{name}[{place}]"), message)).ok()
        })))
    }

    /// Tags: text by text.
    pub fn metadata(&mut self, name: &'static str) -> Option<Metadata> {
        let tags =
            self.parsed(name, |value| value.as_object().ok_or_else(|| "must be an object".to_owned()))?;
        if tags.len() > limits::METADATA_KEYS {
            self.violations.add(name, format!("must have at most {} keys", limits::METADATA_KEYS));
        }
        let mut metadata = Metadata::new();
        for (key, value) in tags {
            let field = || format!("{name}.{key}");
            if let Err(message) = characters(key, &(1..=limits::METADATA_CHARACTERS)) {
                self.violations.add(field(), format!("as a key {message}"));
            }
            let outcome = value.as_str().ok_or_else(|| "must be a string".to_owned());
            let outcome =
                outcome.and_then(|text| characters(text, &(0..=limits::METADATA_CHARACTERS)).map(|()| text));
            match outcome {
                Ok(text) => drop(metadata.insert(key.clone(), text.to_owned())),
                Err(message) => self.violations.add(field(), message),
            }
        }
        Some(metadata)
    }

    /// Refuses the members that nobody read.
    pub fn finish(self) {
        for name in self.members.into_iter().flat_map(Map::keys) {
            if !self.known.contains(&name.as_str()) {
                self.violations.add(name, "is not a field of this request");
            }
        }
    }
}
