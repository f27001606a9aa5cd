//! JSON Schemas of parameters and body fields.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

/// Matches every text that Postgres can store.
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

/// An object of strings, with limits on the number of keys and on the length of keys and values.
pub fn tags(max_keys: usize, max_characters: usize) -> Value {
    json!({
        "type": "object",
        "maxProperties": max_keys,
        "propertyNames": text(&(1..=max_characters)),
        "additionalProperties": text(&(0..=max_characters)),
    })
}
