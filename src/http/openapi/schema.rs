//! JSON Schemas: of parameters and body fields, and of response types, whose named schemas are collected while operations
//! are described.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use parking_lot::Mutex;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Matches every text that Postgres can store.
const STORABLE_PATTERN: &str = "^[^\\u0000]*$";

/// One generator for all types, so that no two schemas get the same name.
static SCHEMAS: LazyLock<Mutex<SchemaGenerator>> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    Mutex::new(settings.into_generator())
});

/// Returns the schema of a type, as a reference if the type has a name.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    SCHEMAS.lock().subschema_for::<T>().to_value()
}

/// Returns the named schemas that were referenced so far.
pub(super) fn named_schemas() -> Map<String, Value> {
    SCHEMAS.lock().definitions().clone()
}

/// Removes null from the types of optional fields, at any depth: a response omits an optional field that has no value.
pub(super) fn remove_null_of_optional_fields(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_optional =
        |name: &str| !required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.iter_mut().filter(|(name, _)| is_optional(name)).for_each(|(_, field)| remove_null(field));
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(remove_null_of_optional_fields),
        Value::Array(items) => items.iter_mut().for_each(remove_null_of_optional_fields),
        _ => {}
    }
}

fn remove_null(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = &types[..] {
            let name = name.clone();
            schema.insert("type".to_owned(), name);
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("anyOf") {
        types.retain(|one| *one != json!({"type": "null"}));
        if let [Value::Object(one)] = &types[..] {
            let one = one.clone();
            schema.remove("anyOf");
            schema.extend(one);
        }
    }
}

pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

pub fn integer(bounds: &RangeInclusive<i64>) -> Value {
    json!({"type": "integer", "minimum": bounds.start(), "maximum": bounds.end()})
}

pub fn number(bounds: &RangeInclusive<f64>) -> Value {
    json!({"type": "number", "minimum": bounds.start(), "maximum": bounds.end()})
}

pub fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

pub fn date() -> Value {
    json!({"type": "string", "format": "date"})
}

pub fn date_or_time() -> Value {
    json!({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]})
}

pub fn text(bounds: &RangeInclusive<usize>) -> Value {
    let mut schema = json!({"type": "string", "maxLength": bounds.end(), "pattern": STORABLE_PATTERN});
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
pub fn string_map(max_keys: usize, max_characters: usize) -> Value {
    json!({
        "type": "object",
        "maxProperties": max_keys,
        "propertyNames": text(&(1..=max_characters)),
        "additionalProperties": text(&(0..=max_characters)),
    })
}

/// An object of strings whose keys have a prefix, with limits as in [`string_map`].
pub fn prefixed_string_map(prefix: &str, max_keys: usize, max_characters: usize) -> Value {
    let mut schema = string_map(max_keys, max_characters);
    let key = format!("^{}[^\\u0000]{{1,{max_characters}}}$", prefix.replace('.', "\\."));
    schema["propertyNames"] = json!({"type": "string", "pattern": key});
    schema
}
