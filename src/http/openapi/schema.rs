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

/// Writes a schema, at any depth, as generators of clients read it: an enumeration as `enum`, with a list of the
/// descriptions of its values, and an object by keys of one pattern as `additionalProperties`.
pub(super) fn simplify(schema: &mut Value) {
    let members = schema.as_object_mut();
    if let Some(members) = members
        && let Some(Value::Object(patterns)) = members.remove("patternProperties")
        && let Some((pattern, entry)) = patterns.into_iter().next()
    {
        members.insert("propertyNames".to_owned(), json!({"pattern": pattern}));
        members.insert("additionalProperties".to_owned(), entry);
    }
    if let Some(Value::Array(variants)) = schema.get("oneOf")
        && let Some(names) = names_of(schema)
    {
        let describe = |variant: &Value| {
            Some(format!("- `{}`: {}", variant["const"].as_str()?, variant["description"].as_str()?))
        };
        let descriptions: Vec<_> = variants.iter().filter_map(describe).collect();
        let texts = [schema["description"].as_str().unwrap_or_default(), &descriptions.join("\n")];
        let description = texts.join("\n\n").trim().to_owned();
        *schema = json!({"description": description, "type": "string", "enum": names});
        return;
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(simplify),
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Returns the names of an enumeration; `None` for other schemas.
fn names_of(schema: &Value) -> Option<Vec<String>> {
    if let Some(name) = schema.get("const").and_then(Value::as_str) {
        return Some(vec![name.to_owned()]);
    }
    if let Some(Value::Array(names)) = schema.get("enum") {
        return names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
    }
    let variants = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array())?;
    Some(variants.iter().map(names_of).collect::<Option<Vec<_>>>()?.concat())
}

/// Returns the names of an enumeration.
pub fn variant_names<T: JsonSchema>() -> Vec<String> {
    let settings =
        SchemaSettings::draft2020_12().for_deserialize().with(|settings| settings.inline_subschemas = true);
    names_of(settings.into_generator().subschema_for::<T>().as_value()).unwrap_or_default()
}

/// A name of an enumeration.
pub fn variant<T: JsonSchema>() -> Value {
    json!({"type": "string", "enum": variant_names::<T>()})
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
