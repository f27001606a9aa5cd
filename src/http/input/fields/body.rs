//! The members of a JSON body.

use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Violations, Word, characters, date, distinct, integer, integer_within, uuid, word};
use crate::http::openapi::schema_recorder::{self, Notes, Page};
use crate::model::account::Metadata;
use crate::model::limits;

/// The members of a JSON object. What nobody asks for is a violation.
pub struct Object<'a> {
    members: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    pub violations: &'a mut Violations,
    notes: Notes<'a>,
}

impl<'a> Object<'a> {
    pub fn new(value: &'a Value, violations: &'a mut Violations) -> Self {
        let members = value.as_object();
        if members.is_none() {
            violations.add("body", "must be a JSON object");
        }
        Object { members, known: Vec::new(), violations, notes: Notes::none() }
    }

    /// The object of no request: what asks for members is noted.
    pub const fn noted(page: &'a mut Page, violations: &'a mut Violations) -> Self {
        Object { members: None, known: Vec::new(), violations, notes: Notes::on(page) }
    }

    /// Says what the member that is read next means.
    pub const fn about(&mut self, text: &'static str) -> &mut Self {
        self.notes.about(text);
        self
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
        self.notes.require(name);
        if self.members.is_some_and(|members| !members.contains_key(name)) {
            self.violations.add(name, "is required");
        }
    }

    /// Says what holds between members that are read by a rule of their own: one of the schemas does.
    pub fn cases(&mut self, cases: impl FnOnce() -> Vec<Value>) {
        self.notes.cases(cases);
    }

    /// A member whose null means something: `Some(None)` when it is null, `None` when it is absent.
    pub fn nullable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.notes.are_taken() {
            let value = read(self, name).map(Some);
            self.notes.nullable();
            return value;
        }
        match self.member(name) {
            Some(Value::Null) => Some(None),
            Some(_) => read(self, name).map(Some),
            None => None,
        }
    }

    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.notes.note(name, schema_recorder::boolean);
        self.parsed(name, |value| value.as_bool().ok_or_else(|| "must be true or false".to_owned()))
    }

    pub fn boolean_or(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.boolean(name);
        self.notes.default(default);
        value.unwrap_or(default)
    }

    pub fn integer(&mut self, name: &'static str, bounds: &RangeInclusive<i64>) -> Option<i32> {
        self.notes.note(name, || schema_recorder::integer(bounds));
        self.parsed(name, |value| {
            integer(value)
                .and_then(|value| integer_within(value, bounds))
                .and_then(|value| i32::try_from(value).map_err(|error| error.to_string()))
        })
    }

    pub fn integer_or(&mut self, name: &'static str, bounds: &RangeInclusive<i64>, default: i32) -> i32 {
        let value = self.integer(name, bounds);
        self.notes.default(default);
        value.unwrap_or(default)
    }

    pub fn text(&mut self, name: &'static str, bounds: &RangeInclusive<usize>) -> Option<String> {
        self.notes.note(name, || schema_recorder::text(bounds));
        self.parsed(name, |value| {
            let text = value.as_str().ok_or("must be a string")?;
            characters(text, bounds).map(|()| text.to_owned())
        })
    }

    /// A text that is read by a rule of its own, which the pattern tells.
    pub fn text_with<T>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        pattern: impl FnOnce() -> String,
        parse: impl FnOnce(String) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(name, bounds);
        self.notes.pattern(pattern);
        parse(text?).map_err(|message| self.violations.add(name, message)).ok()
    }

    pub fn uuid(&mut self, name: &'static str) -> Option<Uuid> {
        self.notes.note(name, schema_recorder::uuid);
        self.parsed(name, |value| uuid(value.as_str().unwrap_or_default()).map_err(str::to_owned))
    }

    pub fn word<T: Word>(&mut self, name: &'static str) -> Option<T> {
        self.notes.note(name, schema_recorder::words::<T>);
        self.parsed(name, |value| word(value.as_str().unwrap_or_default()))
    }

    pub fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        self.notes.note(name, schema_recorder::date);
        self.parsed(name, |value| date(value.as_str().unwrap_or_default()).map_err(str::to_owned))
    }

    /// A list of so many values, each answered once; what is wrong with one is told by its place.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        item: impl FnOnce() -> Value,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.notes.note(name, || schema_recorder::list(item(), bounds));
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
        self.notes
            .note(name, || schema_recorder::tags(limits::MAX_METADATA_KEYS, limits::MAX_METADATA_CHARS));
        let tags =
            self.parsed(name, |value| value.as_object().ok_or_else(|| "must be an object".to_owned()))?;
        if tags.len() > limits::MAX_METADATA_KEYS {
            self.violations.add(name, format!("must have at most {} keys", limits::MAX_METADATA_KEYS));
        }
        let mut metadata = Metadata::new();
        for (key, value) in tags {
            let field = || format!("{name}.{key}");
            if let Err(message) = characters(key, &(1..=limits::MAX_METADATA_CHARS)) {
                self.violations.add(field(), format!("as a key {message}"));
            }
            let outcome = value.as_str().ok_or_else(|| "must be a string".to_owned());
            let outcome =
                outcome.and_then(|text| characters(text, &(0..=limits::MAX_METADATA_CHARS)).map(|()| text));
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
