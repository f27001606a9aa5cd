//! JSON Schemas: of parameters and body fields, and of response types, whose named schemas are collected while operations
//! are described.

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

/// Removes null from the types of optional fields, at any depth: a response omits an optional field that has no value, unless
/// the field is [`NULLABLE`].
pub(super) fn remove_null_of_optional_fields(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_optional =
        |name: &str| !required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, field) in properties.iter_mut().filter(|(name, _)| is_optional(name)) {
            let is_nullable = field.as_object_mut().and_then(|members| members.remove(NULLABLE)).is_some();
            if !is_nullable {
                remove_null(field);
            }
        }
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
    if let Some(members) = schema.as_object_mut()
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
        let names = names.iter().filter(|name| !name.is_null());
        return names.map(|name| name.as_str().map(str::to_owned)).collect();
    }
    let variants = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array())?;
    Some(variants.iter().map(names_of).collect::<Option<Vec<_>>>()?.concat())
}

/// Returns the names of an enumeration.
pub fn variant_names<T: JsonSchema>() -> Vec<String> {
    let [schema, _] = input_schemas::<T>();
    names_of(&schema).unwrap_or_default()
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
            for (keyword, value) in one {
                schema.entry(keyword).or_insert(value);
            }
        }
    }
}

// Keywords of schemas that only the readers of requests know.

/// A text without the blanks around it; a blank one counts as absent.
pub const TRIMMED: &str = "x-trimmed";
/// A hashtag, whose `#` is optional.
pub const HASHTAG: &str = "x-hashtag";
/// A field that may be null.
pub const NULLABLE: &str = "x-nullable";
/// A list whose repetitions count.
pub const REPEATABLE: &str = "x-repeatable";
/// A list whose entries are checked one by one, after the request as a whole.
pub const DEFERRED: &str = "x-deferred";
/// A parameter that is no field of a body.
pub const QUERY_ONLY: &str = "x-query-only";
/// Lists that share the limit of one. A query must have one of them.
pub const SHARED_LIMIT: &str = "x-shared-limit";
/// The rules of the dates of a window.
pub const WINDOW: &str = "x-window";

/// Returns the schema of a type that is read from a request, and its schema as a response, which requires all fields in
/// their order.
pub fn input_schemas<T: JsonSchema>() -> [Value; 2] {
    let generate = |settings: SchemaSettings| {
        let mut generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
        generator.subschema_for::<T>().to_value()
    };
    let [for_deserialize, for_serialize] = [SchemaSettings::for_deserialize, SchemaSettings::for_serialize]
        .map(|contract| contract(SchemaSettings::draft2020_12()));
    let mut schema = generate(for_deserialize);
    restrict(&mut schema);
    [schema, generate(for_serialize)]
}

/// Removes from the schema of a request what only Rust's types say, such as null for an absent field, and restricts texts
/// to those that Postgres can store.
fn restrict(schema: &mut Value) {
    if schema.get(NULLABLE).is_none() {
        remove_null(schema);
    }
    let names = names_of(schema);
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if let Some(names) = names {
        let is_nullable = members.contains_key(NULLABLE);
        members.retain(|keyword, _| ["default", "description", NULLABLE].contains(&keyword.as_str()));
        let mut variants: Vec<Value> = names.into_iter().map(Value::from).collect();
        variants.extend(is_nullable.then_some(Value::Null));
        members
            .insert("type".to_owned(), if is_nullable { json!(["string", "null"]) } else { json!("string") });
        members.insert("enum".to_owned(), variants.into());
    }
    let is_empty = |value: &Value| [Value::Null, json!([]), json!({})].contains(value);
    members.retain(|keyword, value| keyword != "default" || !is_empty(value));
    if members.contains_key("enum") {
        members.retain(|keyword, _| !["minimum", "maximum", "format"].contains(&keyword.as_str()));
    }
    if members.contains_key("minimum") {
        members.remove("format");
    }
    let is_restricted = ["format", "pattern", "anyOf"].iter().any(|keyword| members.contains_key(*keyword));
    let is_text = members.get("type").is_some_and(|name| *name == "string" || name[0] == "string");
    if is_text && !is_restricted && members.contains_key("maxLength") {
        members.insert("pattern".to_owned(), STORABLE_PATTERN.into());
    }
    for keyword in ["items", "propertyNames", "additionalProperties"] {
        members.get_mut(keyword).into_iter().for_each(restrict);
    }
    // The description of a list is about its entries.
    if let Some(Value::Object(items)) = members.get_mut("items") {
        items.remove("description");
    }
    if let Some(Value::Object(mut fields)) = members.remove("properties") {
        fields.values_mut().for_each(restrict);
        if let Some(Value::Array(required)) = members.get_mut("required") {
            required.retain(|name| name.as_str().is_some_and(|name| fields[name].get("default").is_none()));
        }
        members.retain(|keyword, value| keyword != "required" || *value != json!([]));
        members.insert("properties".to_owned(), fields.into());
        members.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Returns the schema as the document shows it. The descriptions of lists have their defaults.
pub fn documented(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_list = members.get("type").is_some_and(|name| name == "array");
            let is_hidden = |keyword: &str| keyword.starts_with("x-") || is_list && keyword == "default";
            let shown = members.iter().filter(|(keyword, _)| !is_hidden(keyword));
            // Fields of a body.
            let shown = shown.filter(|(_, value)| value.get(QUERY_ONLY).is_none());
            shown.map(|(keyword, value)| (keyword.clone(), documented(value))).collect()
        }
        Value::Array(items) => items.iter().map(documented).collect(),
        other => other.clone(),
    }
}
