//! Examples made from schemas, so that none of them can fall behind: a field's own example where its type gives one,
//! else the smallest sensible value.

use serde_json::{Map, Value, json};

const UUID: &str = "0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65";

/// An example of a schema; `definitions` are what it may refer to.
pub(super) fn example(schema: &Value, definitions: &Map<String, Value>) -> Value {
    if let Some(own) = schema.get("examples").and_then(|examples| examples.get(0)) {
        return own.clone();
    }
    for fixed in ["const", "default"] {
        if let Some(value) = schema.get(fixed) {
            return value.clone();
        }
    }
    if let Some(word) = schema.get("enum").and_then(|words| words.get(0)) {
        return word.clone();
    }
    if let Some(referred) = schema.get("$ref").and_then(Value::as_str) {
        let name = referred.rsplit('/').next().unwrap_or_default();
        return definitions.get(name).map_or(Value::Null, |schema| example(schema, definitions));
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|any| schema.get(any)?.get(0)) {
        return example(first, definitions);
    }
    match kind(schema) {
        "object" => object(schema, definitions),
        "array" => array(schema, definitions),
        "string" => text(schema),
        "integer" => {
            schema.get("minimum").filter(|least| least.as_i64() > Some(0)).cloned().unwrap_or(json!(1200))
        }
        "number" => json!(0.25),
        "boolean" => json!(true),
        _ => Value::Null,
    }
}

/// The type of a schema; of a nullable one, what it is besides.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    }
}

fn object(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let members = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), schema));
    let members = members.chain(entry(schema));
    Value::Object(members.map(|(name, schema)| (name, example(schema, definitions))).collect())
}

/// One entry of a map. What keys are is said where they are no ids, by an example.
fn entry(schema: &Value) -> Option<(String, &Value)> {
    if let Some(of_numbers) = schema.get("patternProperties").and_then(Value::as_object) {
        return of_numbers.values().next().map(|schema| ("120417".to_owned(), schema));
    }
    let schema = schema.get("additionalProperties").filter(|schema| schema.is_object())?;
    Some((UUID.to_owned(), schema))
}

fn array(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).max(1);
    let item = schema.get("items").map_or(Value::Null, |items| example(items, definitions));
    Value::Array(vec![item; least as usize])
}

fn text(schema: &Value) -> Value {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("uuid") => UUID,
        Some("date-time") => "2026-03-14T09:26:53.589793Z",
        Some("date") => "2026-03-14",
        Some("uri") => "https://example.com/",
        _ => "text",
    };
    json!(text)
}
