//! Answers held against the contract's OpenAPI document: the part of JSON Schema that the document uses, and what is
//! wrong told in words.

use std::sync::LazyLock;

use chrono::DateTime;
use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../docs/http-source.openapi.json")).unwrap_or_default()
});
/// Faults are told of so many places at most.
const MOST: usize = 5;

/// What of a value is not as the schema of this name says, each fault with its place.
pub(super) fn faults(schema: &str, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    match component(schema) {
        Some(schema) => compare(schema, value, "", &mut faults),
        None => faults.push(format!("the document has no schema {schema}")),
    }
    faults.truncate(MOST);
    faults
}

fn component(name: &str) -> Option<&'static Value> {
    DOCUMENT.pointer(&format!("/components/schemas/{name}"))
}

fn compare(schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    if faults.len() >= MOST {
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        if let Some(schema) = target.strip_prefix("#/components/schemas/").and_then(component) {
            compare(schema, value, place, faults);
        }
        return;
    }
    let at = || if place.is_empty() { "the answer".to_owned() } else { format!("`{place}`") };
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|of| is(value, of)) {
        faults.push(format!("{} is {} instead of {}", at(), kind(value), types.join(" or ")));
        return;
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        faults.push(format!("{} is {value}, which is none of {}", at(), words.join(", ")));
    }
    if let (Some(least), Some(number)) = (schema.get("minimum").and_then(Value::as_f64), value.as_f64())
        && number < least
    {
        faults.push(format!("{} is {value}, less than {least}", at()));
    }
    if let (Some("date-time"), Some(text)) = (schema.get("format").and_then(Value::as_str), value.as_str())
        && DateTime::parse_from_rfc3339(text).is_err()
    {
        faults.push(format!("{} is \"{text}\", which is no time of RFC 3339", at()));
    }
    if let Value::Object(fields) = value {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if name.as_str().is_some_and(|name| !fields.contains_key(name)) {
                faults.push(format!("{} lacks {name}", at()));
            }
        }
        for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = fields.get(name) {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                compare(schema, value, &place, faults);
            }
        }
    }
    if let (Some(schema), Some(items)) = (schema.get("items"), value.as_array()) {
        for (number, item) in items.iter().enumerate() {
            compare(schema, item, &format!("{place}[{number}]"), faults);
        }
    }
}

fn is(value: &Value, of: &str) -> bool {
    match of {
        // A number as 12.0 is a whole one too.
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

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a truth value".to_owned(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text \"{}\"", text.chars().take(40).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Keywords that say something to be held against an answer, and those that explain only.
    const KNOWN: [&str; 11] = [
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
    fn the_document_uses_no_keyword_that_is_not_understood() {
        fn walk(schema: &Value, seen: &mut usize) {
            for (keyword, inner) in schema.as_object().into_iter().flatten() {
                assert!(KNOWN.contains(&keyword.as_str()), "{keyword}");
                *seen += 1;
                match keyword.as_str() {
                    "properties" => {
                        inner.as_object().into_iter().flatten().for_each(|(_, schema)| walk(schema, seen))
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
    fn faults_name_their_place() {
        let post = json!({"id": "1", "view_count": -1, "like_count": "5", "duration": 1.5});
        let answer = json!({"profile": {"is_verified": 1}, "posts": [post, {}], "next": null});
        assert_eq!(
            faults("AccountAnswer", &answer),
            [
                "`posts[0].like_count` is the text \"5\" instead of integer or null",
                "`posts[0].view_count` is -1, less than 0",
                "`posts[1]` lacks \"id\"",
                "`profile.is_verified` is the number 1 instead of boolean or null",
            ]
        );
        assert_eq!(faults("AccountAnswer", &json!({"posts": []})), ["the answer lacks \"profile\""]);
        let error = json!({"error": {"code": "odd", "retry_at": "soon"}});
        assert_eq!(faults("ErrorAnswer", &error).len(), 2);
        assert_eq!(faults("ErrorAnswer", &json!([])), ["the answer is a list instead of object"]);
        assert!(faults("PostAnswer", &json!({"post": {"id": 7, "like_count": null, "more": 1}})).is_empty());
    }
}
