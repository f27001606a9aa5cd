//! JSON Schemas of tools, from those of the OpenAPI document.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value, json};

use super::operation::{Location, Operation};
use super::tool::Answer;

/// Where the document has its schemas, and where a tool has them.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// How many entries a list of a write may have, so that its answer fits.
pub(super) const MAX_WRITE_ENTRIES: usize = 50;

const TAGS_DESCRIPTION: &str = "Filter by your own tags of the account: an object of those that it has to have, with exactly these values.";

/// The formats of JSON Schema that responses have; others are of OpenAPI.
const FORMATS: [&str; 3] = ["date", "date-time", "uuid"];

/// Keywords that say nothing to a model. The operation checks what they would.
const LEFT_OUT: [&str; 5] = ["pattern", "propertyNames", "oneOf", "example", "examples"];

/// Returns the schema of the arguments of all operations.
pub(super) fn input(operations: &[Operation]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for operation in operations {
        for parameter in &operation.parameters {
            let mut schema = simplify(&parameter.schema);
            let is_object = schema["type"] == "object";
            if parameter.location == Location::Query && is_object {
                schema["description"] = TAGS_DESCRIPTION.into();
            }
            if parameter.location == Location::Body && schema["type"] == "array" {
                schema["maxItems"] = MAX_WRITE_ENTRIES.into();
            }
            if parameter.is_required && !required.contains(&parameter.name) {
                required.push(parameter.name.clone());
            }
            properties.entry(parameter.name.clone()).or_insert(schema);
        }
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of the answer.
pub(super) fn output(document: &Value, answer: Answer, operations: &[Operation]) -> Value {
    let mut schema = match answer {
        Answer::Response(_) => {
            operations.first().map(|operation| operation.response.clone()).unwrap_or_default()
        }
        Answer::Joined(parts) => joined(parts, operations, document),
    };
    let mut definitions = BTreeMap::new();
    schema = simplify(&schema);
    let mut found = references(&schema);
    while let Some(name) = found.pop() {
        if let Entry::Vacant(entry) = definitions.entry(name) {
            let definition = simplify(&document["components"]["schemas"][entry.key()]);
            found.extend(references(&definition));
            entry.insert(definition);
        }
    }
    if !definitions.is_empty() {
        schema["$defs"] = json!(definitions);
    }
    schema
}

/// Returns the schema of a joined answer. Its other members are objects, with the fields of all parts.
fn joined(parts: &[(&str, &str)], operations: &[Operation], document: &Value) -> Value {
    let (mut data, mut others) = (Map::new(), Map::new());
    for ((name, _), operation) in parts.iter().zip(operations) {
        for (member, schema) in operation.response["properties"].as_object().into_iter().flatten() {
            if member == "data" {
                data.insert((*name).to_owned(), schema.clone());
                continue;
            }
            let resolved = match schema["$ref"].as_str().and_then(|path| path.strip_prefix(COMPONENTS)) {
                Some(component) => &document["components"]["schemas"][component],
                None => schema,
            };
            let all =
                others.entry(member.clone()).or_insert_with(|| json!({"type": "object", "properties": {}}));
            for (field, field_schema) in resolved["properties"].as_object().into_iter().flatten() {
                all["properties"][field] = field_schema.clone();
            }
        }
    }
    let part_names: Vec<_> = data.keys().cloned().collect();
    let mut properties = Map::from_iter(others);
    let data = json!({"type": "object", "properties": data, "required": part_names});
    properties.insert("data".to_owned(), data);
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Leaves out what a model does not need, and points to definitions of the tool's own.
fn simplify(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(members.iter().filter_map(simplify_member).collect()),
        Value::Array(items) => items.iter().map(simplify).collect(),
        other => other.clone(),
    }
}

fn simplify_member((keyword, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match (keyword.as_str(), value) {
        ("properties", Value::Object(fields)) => {
            fields.iter().map(|(name, field)| (name.clone(), simplify(field))).collect()
        }
        ("$ref", Value::String(reference)) => reference.replace(COMPONENTS, DEFINITIONS).into(),
        ("description", Value::String(text)) => {
            text.replace(", separated by commas or in repeated parameters", "").into()
        }
        ("format", format) if !FORMATS.iter().any(|known| format == known) => return None,
        ("default" | "enum" | "const", value) => value.clone(),
        (keyword, _) if LEFT_OUT.contains(&keyword) => return None,
        (_, value) => simplify(value),
    };
    Some((keyword.clone(), value))
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|reference| reference.strip_prefix(DEFINITIONS)).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_refer_to_their_own_definitions() {
        let document = json!({"components": {"schemas": {
            "A": {"type": "object", "properties": {"pattern": {"$ref": "#/components/schemas/B"}}},
            "B": {"type": "integer", "format": "int64", "examples": [1]},
        }}});
        let operation = Operation {
            method: salvo::http::Method::GET,
            path: "v2/a".to_owned(),
            summary: "Get".to_owned(),
            parameters: Vec::new(),
            response: json!({"type": "object", "properties": {"data": {"$ref": "#/components/schemas/A"}}}),
        };
        let schema = output(&document, Answer::Response("getA"), &[operation]);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {"data": {"$ref": "#/$defs/A"}},
                "$defs": {
                    "A": {"type": "object", "properties": {"pattern": {"$ref": "#/$defs/B"}}},
                    "B": {"type": "integer"},
                },
            })
        );
    }
}
