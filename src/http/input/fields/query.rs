//! The parameters of a query string.

use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde_json::Value;
use uuid::Uuid;

use super::{Violations, Word, characters, date, distinct, integer_within, uuid, word, word_of};
use crate::http::openapi::schema_recorder::{self, Notes, Page};
use crate::model::limits;

/// The parameters of a query string. What nobody asks for is ignored.
pub struct Params<'a> {
    pairs: &'a [(String, String)],
    pub violations: &'a mut Violations,
    notes: Notes<'a>,
}

impl<'a> Params<'a> {
    pub const fn new(pairs: &'a [(String, String)], violations: &'a mut Violations) -> Self {
        Params { pairs, violations, notes: Notes::none() }
    }

    /// Parameters of no request: what asks for them is noted.
    pub const fn noted(page: &'a mut Page, violations: &'a mut Violations) -> Self {
        Params { pairs: &[], violations, notes: Notes::on(page) }
    }

    /// Says what the parameter that is read next means.
    pub const fn about(&mut self, text: &'static str) -> &mut Self {
        self.notes.about(text);
        self
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
    pub fn require(&mut self, name: &'static str) {
        self.notes.require(name);
        if !self.has(name) && !self.notes.are_taken() {
            self.violations.add(name, "is required");
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| key == name)
    }

    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        self.notes.note(name, schema_recorder::boolean);
        self.parsed(name, |text| text.parse().map_err(|_| "must be true or false"))
    }

    pub fn boolean_or(&mut self, name: &str, default: bool) -> bool {
        let value = self.boolean(name);
        self.notes.default(default);
        value.unwrap_or(default)
    }

    pub fn integer(&mut self, name: &str, bounds: &RangeInclusive<i64>) -> Option<i64> {
        self.notes.note(name, || schema_recorder::integer(bounds));
        self.parsed(name, |text| {
            text.parse()
                .map_err(|_| "must be an integer".to_owned())
                .and_then(|value| integer_within(value, bounds))
        })
    }

    pub fn integer_or(&mut self, name: &str, bounds: &RangeInclusive<i64>, default: i64) -> i64 {
        let value = self.integer(name, bounds);
        self.notes.default(default);
        value.unwrap_or(default)
    }

    pub fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.notes.note(name, schema_recorder::uuid);
        self.parsed(name, uuid)
    }

    pub fn word<T: Word>(&mut self, name: &str) -> Option<T> {
        self.notes.note(name, schema_recorder::words::<T>);
        self.parsed(name, word)
    }

    pub fn word_or<T: Word + PartialEq>(&mut self, name: &str, default: T) -> T {
        let value = self.word(name);
        self.notes.default(word_of(default));
        value.unwrap_or(default)
    }

    pub fn date(&mut self, name: &str) -> Option<NaiveDate> {
        self.notes.note(name, schema_recorder::date);
        self.parsed(name, date)
    }

    /// Values with commas between them, each answered once; what is wrong with one is told by its place.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &str,
        most: usize,
        item: impl FnOnce() -> Value,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.notes.note(name, || schema_recorder::list(item(), &(1..=most)));
        let texts = self.parsed(name, |text| {
            // Before any is read, so that an answer never names more than so many that are wrong.
            if text.split(',').nth(most).is_some() {
                return Err(format!("must have at most {most} entries"));
            }
            Ok(text.split(','))
        })?;
        Some(distinct(texts.enumerate().filter_map(|(place, text)| {
            read(text).map_err(|message| self.violations.add(format!("{name}[{place}]"), message)).ok()
        })))
    }

    /// A text that is read by a rule of its own and must not be empty.
    pub fn with<T>(
        &mut self,
        name: &str,
        schema: impl FnOnce() -> Value,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.notes.note(name, schema);
        self.parsed(name, parse)
    }

    /// A text that matches exactly, the empty one included.
    pub fn text(&mut self, name: &str, most: usize) -> Option<String> {
        self.notes.note(name, || schema_recorder::text(&(0..=most)));
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
        self.notes.note(name, || schema_recorder::text(&(0..=limits::MAX_QUERY_CHARS)));
        let text = self.single(name)?.trim();
        match characters(text, &(0..=limits::MAX_QUERY_CHARS)) {
            Ok(()) => Some(text.to_owned()).filter(|text| !text.is_empty()),
            Err(message) => {
                self.violations.add(name, message);
                None
            }
        }
    }
}
