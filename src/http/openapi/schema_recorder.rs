//! What readers note about themselves for the API's document: every value with its schema, as JSON Schema, and what
//! it means. A reader of a request has no page to note on and notes nothing.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::http::input::fields::Word;

/// One value that a reader asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub about: &'static str,
    pub schema: Value,
}

/// Everything that a reader asks for.
#[derive(Debug, Default)]
pub struct Page {
    pub fields: Vec<Field>,
    pub required: Vec<&'static str>,
    /// Schemas of which one has to hold for all values together.
    pub cases: Vec<Value>,
}

/// Where a reader notes what it reads.
#[derive(Debug)]
pub struct Notes<'a> {
    page: Option<&'a mut Page>,
    /// What the next value means.
    about: &'static str,
}

impl<'a> Notes<'a> {
    pub const fn on(page: &'a mut Page) -> Self {
        Notes { page: Some(page), about: "" }
    }

    pub const fn none() -> Self {
        Notes { page: None, about: "" }
    }

    /// Whether nothing is read and everything is noted.
    pub(in crate::http) const fn are_taken(&self) -> bool {
        self.page.is_some()
    }

    pub const fn about(&mut self, text: &'static str) {
        self.about = text;
    }

    pub fn note(&mut self, name: &str, schema: impl FnOnce() -> Value) {
        let about = std::mem::take(&mut self.about);
        if let Some(page) = &mut self.page {
            page.fields.push(Field { name: name.to_owned(), about, schema: schema() });
        }
    }

    pub(in crate::http) fn require(&mut self, name: &'static str) {
        if let Some(page) = &mut self.page {
            page.required.push(name);
        }
    }

    pub(in crate::http) fn cases(&mut self, cases: impl FnOnce() -> Vec<Value>) {
        if let Some(page) = &mut self.page {
            page.cases = cases();
        }
    }

    /// Says what the text that was noted last has to match.
    pub(in crate::http) fn pattern(&mut self, pattern: impl FnOnce() -> String) {
        self.amend("pattern", || pattern().into());
    }

    /// Says what the value that was noted last is when it is absent.
    pub(in crate::http) fn default(&mut self, value: impl Into<Value>) {
        self.amend("default", || value.into());
    }

    /// Says that the value that was noted last may be null.
    pub(in crate::http) fn nullable(&mut self) {
        let last = self.page.as_mut().and_then(|page| page.fields.last_mut());
        if let Some(kind) = last.and_then(|field| field.schema.get_mut("type")) {
            *kind = json!([kind.take(), "null"]);
        }
    }

    fn amend(&mut self, key: &str, value: impl FnOnce() -> Value) {
        let last = self.page.as_mut().and_then(|page| page.fields.last_mut());
        if let Some(schema) = last.and_then(|field| field.schema.as_object_mut()) {
            schema.insert(key.to_owned(), value());
        }
    }
}

/// Every text but what no store can hold.
const STORABLE: &str = "^[^\\u0000]*$";

pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub fn integer(bounds: &RangeInclusive<i64>) -> Value {
    json!({"type": "integer", "minimum": bounds.start(), "maximum": bounds.end()})
}

pub fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

pub fn date() -> Value {
    json!({"type": "string", "format": "date"})
}

pub fn words<T: Word>() -> Value {
    let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
    json!({"type": "string", "enum": words})
}

pub fn text(bounds: &RangeInclusive<usize>) -> Value {
    let mut schema = json!({"type": "string", "maxLength": bounds.end(), "pattern": STORABLE});
    if *bounds.start() > 0 {
        schema["minLength"] = json!(bounds.start());
    }
    schema
}

pub fn list(items: Value, bounds: &RangeInclusive<usize>) -> Value {
    let mut schema = json!({"type": "array", "items": items, "maxItems": bounds.end()});
    if *bounds.start() > 0 {
        schema["minItems"] = json!(bounds.start());
    }
    schema
}

/// Tags: text by text.
pub fn tags(keys: usize, characters: usize) -> Value {
    json!({
        "type": "object",
        "maxProperties": keys,
        "propertyNames": text(&(1..=characters)),
        "additionalProperties": text(&(0..=characters)),
    })
}
