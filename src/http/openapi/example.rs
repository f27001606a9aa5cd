//! Generates an example from a schema: the schema's own example, or the smallest typical value.

use serde_json::{Map, Value, json};

const EXAMPLE_UUID: &str = "0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65";
const EXAMPLE_NUMERIC_ID: &str = "120417";

/// Generates an example; `schemas` resolves references.
pub(super) fn generate_example(schema: &Value, schemas: &Map<String, Value>) -> Value {
    let values = ["/examples/0", "/const", "/default", "/enum/0"];
    if let Some(value) = values.iter().find_map(|pointer| schema.pointer(pointer)) {
        return value.clone();
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return schemas.get(name).map_or(Value::Null, |referenced| generate_example(referenced, schemas));
    }
    if let Some(first) = ["/anyOf/0", "/oneOf/0"].iter().find_map(|pointer| schema.pointer(pointer)) {
        return generate_example(first, schemas);
    }
    match type_name(schema) {
        "object" => generate_object(schema, schemas),
        "array" => generate_array(schema, schemas),
        "string" => generate_string(schema),
        "integer" => {
            schema.get("minimum").filter(|minimum| minimum.as_i64() > Some(0)).cloned().unwrap_or(json!(1200))
        }
        "number" => json!(0.25),
        "boolean" => json!(true),
        _ => Value::Null,
    }
}

/// Returns the type of a schema; for a nullable one, the type besides null.
fn type_name(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    }
}

fn generate_object(schema: &Value, schemas: &Map<String, Value>) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let members = properties.into_iter().flatten().map(|(name, property)| (name.clone(), property));
    let members = members.chain(map_entry(schema));
    Value::Object(members.map(|(name, member)| (name, generate_example(member, schemas))).collect())
}

/// Returns one entry of a map. Maps with keys other than ids have an example of their own.
fn map_entry(schema: &Value) -> Option<(String, &Value)> {
    let entry = schema.get("additionalProperties").filter(|schema| schema.is_object())?;
    let is_numeric = schema.pointer("/propertyNames/pattern").is_some();
    Some((if is_numeric { EXAMPLE_NUMERIC_ID } else { EXAMPLE_UUID }.to_owned(), entry))
}

fn generate_array(schema: &Value, schemas: &Map<String, Value>) -> Value {
    let length = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).max(1);
    let item = schema.get("items").map_or(Value::Null, |items| generate_example(items, schemas));
    Value::Array(vec![item; length as usize])
}

fn generate_string(schema: &Value) -> Value {
    json!(match schema.get("format").and_then(Value::as_str) {
        Some("uuid") => EXAMPLE_UUID,
        Some("date-time") => "2026-03-14T09:26:53.589793Z",
        Some("date") => "2026-03-14",
        Some("uri") => "https://example.com/",
        _ => "text",
    })
}
