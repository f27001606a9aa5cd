//! Validates responses against the contract's OpenAPI document: the subset of JSON Schema that the document uses.

use std::sync::LazyLock;

use chrono::DateTime;
use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../docs/http-source.openapi.json")).unwrap_or_default()
});
/// The most violations that are reported for one response.
const MAX_VIOLATIONS: usize = 5;

/// Describes how a value violates the schema of this name, with the path of each violation.
pub(super) fn violations(schema: &str, value: &Value) -> Vec<String> {
    let mut violations = Vec::new();
    match find_schema(schema) {
        Some(schema) => validate(schema, value, "", &mut violations),
        None => violations.push(format!("the document has no schema {schema}")),
    }
    violations.truncate(MAX_VIOLATIONS);
    violations
}

fn find_schema(name: &str) -> Option<&'static Value> {
    DOCUMENT.pointer(&format!("/components/schemas/{name}"))
}

fn validate(schema: &Value, value: &Value, path: &str, violations: &mut Vec<String>) {
    if violations.len() >= MAX_VIOLATIONS {
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        if let Some(referenced) = target.strip_prefix("#/components/schemas/").and_then(find_schema) {
            validate(referenced, value, path, violations);
        }
        return;
    }
    let subject = || if path.is_empty() { "the response".to_owned() } else { format!("`{path}`") };
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name)) {
        violations.push(format!("{} is {} instead of {}", subject(), describe(value), types.join(" or ")));
        return;
    }
    if let Some(variants) = schema.get("enum").and_then(Value::as_array)
        && !variants.contains(value)
    {
        let variants: Vec<_> = variants.iter().filter_map(Value::as_str).collect();
        violations.push(format!("{} is {value}, which is none of {}", subject(), variants.join(", ")));
    }
    if let (Some(minimum), Some(number)) = (schema.get("minimum").and_then(Value::as_f64), value.as_f64())
        && number < minimum
    {
        violations.push(format!("{} is {value}, less than {minimum}", subject()));
    }
    if let (Some("date-time"), Some(text)) = (schema.get("format").and_then(Value::as_str), value.as_str())
        && DateTime::parse_from_rfc3339(text).is_err()
    {
        violations.push(format!("{} is \"{text}\", which is not an RFC 3339 time", subject()));
    }
    if let Value::Object(fields) = value {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if name.as_str().is_some_and(|name| !fields.contains_key(name)) {
                violations.push(format!("{} lacks {name}", subject()));
            }
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(member) = fields.get(name) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                validate(property, member, &path, violations);
            }
        }
    }
    if let (Some(schema), Some(items)) = (schema.get("items"), value.as_array()) {
        for (index, item) in items.iter().enumerate() {
            validate(schema, item, &format!("{path}[{index}]"), violations);
        }
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        // 12.0 is an integer in JSON Schema.
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string \"{}\"", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The keywords that are validated, and those that only explain.
    const SUPPORTED: [&str; 11] = [
        "$ref",
        "type",
        "enum",
        "minimum",
        "format",
        "required",
        "properties",
        "items",
        "description",
        "title",
        "default",
    ];

    #[test]
    fn document_uses_only_supported_keywords() {
        fn walk(schema: &Value, seen: &mut usize) {
            for (keyword, inner) in schema.as_object().into_iter().flatten() {
                assert!(SUPPORTED.contains(&keyword.as_str()), "{keyword}");
                *seen += 1;
                match keyword.as_str() {
                    "properties" => {
                        inner.as_object().into_iter().flatten().for_each(|(_, property)| walk(property, seen))
                    }
                    "items" => walk(inner, seen),
                    "format" => assert!(["int64", "date-time"].contains(&inner.as_str().unwrap()), "{inner}"),
                    _ => {}
                }
            }
        }
        let mut seen = 0;
        for (_, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
            walk(schema, &mut seen);
        }
        assert!(seen > 50);
    }

    #[test]
    fn violations_name_their_path() {
        let post = json!({"id": "1", "view_count": -1, "like_count": "5", "duration": 1.5});
        let response = json!({"profile": {"is_verified": 1}, "posts": [post, {}], "next": null});
        assert_eq!(
            violations("AccountResponse", &response),
            [
                "`posts[0].like_count` is the string \"5\" instead of integer or null",
                "`posts[0].view_count` is -1, less than 0",
                "`posts[1]` lacks \"id\"",
                "`profile.is_verified` is the number 1 instead of boolean or null",
            ]
        );
        assert_eq!(violations("AccountResponse", &json!({"posts": []})), ["the response lacks \"profile\""]);
        let error = json!({"error": {"code": "odd", "retry_at": "soon"}});
        assert_eq!(violations("ErrorResponse", &error).len(), 2);
        assert_eq!(violations("ErrorResponse", &json!([])), ["the response is a list instead of object"]);
        assert!(
            violations("PostResponse", &json!({"post": {"id": 7, "like_count": null, "more": 1}})).is_empty()
        );
    }
}
