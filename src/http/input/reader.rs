//! Reads values as their JSON Schemas say, and collects all violations. The OpenAPI document shows the same schemas.
//!
//! A type that is read derives `Deserialize` and `JsonSchema`: comments of fields are descriptions, `#[schemars(range(…))]`,
//! `length(…)` and the like are bounds, `#[serde(default)]` and `#[schemars(extend("default" = …))]` are defaults.

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::LazyLock;

use chrono::NaiveDate;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fields::{parse_date, parse_uuid, parse_whole_number};
use super::violations::Violations;
use super::window::check_window;
use crate::http::openapi::schema::{
    DEFERRED, HASHTAG, NULLABLE, QUERY_ONLY, REPEATABLE, SHARED_LIMIT, TRIMMED, WINDOW, input_schemas,
};
use crate::model::date_or_time::DateOrTime;
use crate::model::hashtag;
use crate::model::limits::{MAX_BATCH_IDS, MAX_QUERY_IDS};
use crate::model::period::DateRules;

/// The schema of a part of a request.
#[derive(Debug)]
pub struct InputSchema {
    pub schema: Value,
    /// The parameters or fields in their order.
    pub fields: Vec<InputField>,
}

/// A parameter of a path or query, or a field of a body.
#[derive(Debug)]
pub struct InputField {
    pub name: String,
    pub schema: Value,
    pub is_required: bool,
    /// The fields of an object that has fixed ones.
    fields: Vec<InputField>,
}

impl InputSchema {
    /// Returns the schema of a type, which is built once.
    pub fn of<T: JsonSchema + 'static>() -> &'static Self {
        static SCHEMAS: LazyLock<RwLock<HashMap<TypeId, &'static InputSchema>>> =
            LazyLock::new(RwLock::default);
        let id = TypeId::of::<T>();
        if let Some(found) = SCHEMAS.read().get(&id) {
            return found;
        }
        // Locked meanwhile, so that concurrent first requests do not build it several times.
        SCHEMAS.write().entry(id).or_insert_with(|| {
            let [schema, order] = input_schemas::<T>();
            let fields = InputField::list(&schema, &order);
            Box::leak(Box::new(InputSchema { schema, fields }))
        })
    }

    /// Reads a query, with `read` for each parameter. Dates may depend on `today`.
    pub fn read_query<T: DeserializeOwned>(
        &self,
        today: NaiveDate,
        violations: &mut Violations,
        mut read: impl FnMut(&InputField, &mut Violations) -> Option<Value>,
    ) -> Option<T> {
        let start = violations.len();
        let fields = self.fields.iter();
        let mut valid: Map<_, _> =
            fields.filter_map(|field| Some((field.name.clone(), read(field, violations)?))).collect();
        if let Some(rules) = self.schema.get(WINDOW) {
            check_window(rules, today, &mut valid, violations);
        }
        if let Some([first, second]) = self.shared_lists() {
            let is_absent = |name: &str| !valid.contains_key(name) && !violations.contains_field(name);
            if is_absent(first) && is_absent(second) {
                violations.add(first, format!("is required without {second}"));
            }
        }
        self.check_shared_limit(&valid, MAX_QUERY_IDS, violations);
        self.sort(violations, start);
        deserialize(valid, violations)
    }

    /// Reads a JSON object, with `check` for rules of its own.
    pub fn read_object<T: DeserializeOwned>(
        &self,
        members: &Map<String, Value>,
        violations: &mut Violations,
        check: impl FnOnce(&Map<String, Value>, &mut Violations),
    ) -> Option<T> {
        let start = violations.len();
        let mut valid = read_members(&self.fields, members, violations);
        if self.schema.get(WINDOW).is_some() {
            check_window(&json!(DateRules::Body), NaiveDate::default(), &mut valid, violations);
        }
        self.check_shared_limit(&valid, MAX_BATCH_IDS, violations);
        check(&valid, violations);
        self.sort(violations, start);
        deserialize(valid, violations)
    }

    /// Sorts violations in the order of the fields.
    fn sort(&self, violations: &mut Violations, start: usize) {
        violations.sort_from(start, |name| self.fields.iter().position(|field| field.name == name));
    }

    /// The two lists that share one limit.
    fn shared_lists(&self) -> Option<[&str; 2]> {
        let names = self.schema.get(SHARED_LIMIT)?;
        Some([names[0].as_str()?, names[1].as_str()?])
    }

    fn check_shared_limit(&self, valid: &Map<String, Value>, max: usize, violations: &mut Violations) {
        let Some(names @ [first, last]) = self.shared_lists() else { return };
        let lists = names.iter().filter_map(|name| valid.get(*name)?.as_array());
        if lists.map(Vec::len).sum::<usize>() > max {
            violations.add(last, format!("must have at most {max} ids together with {first}"));
        }
    }
}

impl InputField {
    /// Lists the fields of an object; `order` is its schema as a response, which requires all fields in their order.
    fn list(schema: &Value, order: &Value) -> Vec<Self> {
        let names = order["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let required = schema["required"].as_array().into_iter().flatten().collect::<Vec<_>>();
        let field = |name: &str| {
            let schema = schema["properties"][name].clone();
            InputField {
                name: name.to_owned(),
                is_required: required.iter().any(|one| *one == name),
                fields: Self::list(&schema, &order["properties"][name]),
                schema,
            }
        };
        names.map(field).collect()
    }

    /// Returns the default of an absent field; a required one has none.
    pub fn read_absent(&self, violations: &mut Violations) -> Option<Value> {
        if self.is_required {
            violations.add(&self.name, "is required");
        }
        self.schema.get("default").cloned()
    }

    fn read(&self, value: &Value, path: &str, violations: &mut Violations) -> Option<Value> {
        match value {
            Value::Null if self.schema.get(NULLABLE).is_some() => Some(Value::Null),
            Value::Null => {
                violations.add(path, "must not be null");
                None
            }
            Value::Object(members) if !self.fields.is_empty() => {
                let mut nested = Violations::default();
                let object = read_members(&self.fields, members, &mut nested);
                violations.extend(nested.within(path));
                Some(Value::Object(object))
            }
            _ => read_value(&self.schema, value, path, violations),
        }
    }
}

/// Reads the fields of a JSON object, which must have no others. Returns the valid ones.
fn read_members(
    fields: &[InputField],
    members: &Map<String, Value>,
    violations: &mut Violations,
) -> Map<String, Value> {
    let mut valid = Map::new();
    let fields: Vec<_> = fields.iter().filter(|field| field.schema.get(QUERY_ONLY).is_none()).collect();
    for field in &fields {
        let value = match members.get(&field.name) {
            Some(value) => field.read(value, &field.name, violations),
            None => field.read_absent(violations),
        };
        valid.extend(value.map(|value| (field.name.clone(), value)));
    }
    for name in members.keys().filter(|name| fields.iter().all(|field| field.name != **name)) {
        violations.add(name, "is not a field of this request");
    }
    valid
}

/// Reads a value in its normal form. Reports what is wrong with it, or with its entries.
pub fn read_value(schema: &Value, value: &Value, path: &str, violations: &mut Violations) -> Option<Value> {
    let read = match type_name(schema) {
        Some("array") => match value.as_array() {
            Some(items) => return read_array(schema, items, path, violations),
            None => Err("must be a list".to_owned()),
        },
        Some("object") => match value.as_object() {
            Some(members) => return Some(read_map(schema, members, path, violations)),
            None => Err("must be an object".to_owned()),
        },
        _ => read_scalar(schema, value),
    };
    read.map_err(|message| violations.add(path, message)).ok()
}

fn read_array(schema: &Value, items: &[Value], path: &str, violations: &mut Violations) -> Option<Value> {
    let (min, max) =
        (limit(schema, "minItems").unwrap_or(0), limit(schema, "maxItems").unwrap_or(usize::MAX));
    if !(min..=max).contains(&items.len()) {
        violations.add(
            path,
            match min {
                0 => format!("must have at most {max} entries"),
                _ => format!("must have {min} to {max} entries"),
            },
        );
        return None;
    }
    if schema.get(DEFERRED).is_some() {
        return Some(items.into());
    }
    let read_item =
        |(index, value)| read_value(&schema["items"], value, &format!("{path}[{index}]"), violations);
    let mut seen = HashSet::new();
    let mut valid: Vec<_> = items.iter().enumerate().filter_map(read_item).collect();
    valid.retain(|item| schema.get(REPEATABLE).is_some() || seen.insert(item.clone()));
    Some(valid.into())
}

/// Reads an object of texts by keys of the client.
fn read_map(schema: &Value, members: &Map<String, Value>, path: &str, violations: &mut Violations) -> Value {
    if let Some(max) = limit(schema, "maxProperties").filter(|max| members.len() > *max) {
        violations.add(path, format!("must have at most {max} keys"));
    }
    let mut valid = Map::new();
    for (key, value) in members {
        let field = format!("{path}.{key}");
        if let Err(message) = read_scalar(&schema["propertyNames"], &json!(key)) {
            violations.add(&field, format!("as a key {message}"));
        }
        valid.extend(
            read_value(&schema["additionalProperties"], value, &field, violations)
                .map(|value| (key.clone(), value)),
        );
    }
    Value::Object(valid)
}

/// Reads a value that is neither a list nor an object. The error is the message of a violation.
pub fn read_scalar(schema: &Value, value: &Value) -> Result<Value, String> {
    if let Some(Value::Array(variants)) = schema.get("enum") {
        return if variants.contains(value) { Ok(value.clone()) } else { Err(must_be_one_of(variants)) };
    }
    let text = || value.as_str().ok_or("must be a string");
    match (type_name(schema), schema["format"].as_str()) {
        (Some("boolean"), _) => {
            value.as_bool().map(Value::from).ok_or_else(|| "must be true or false".to_owned())
        }
        (Some("integer"), Some("int64")) => {
            let number = parse_whole_number(value)?;
            number.map(Value::from).ok_or_else(|| "must be an integer of at most 64 bits".to_owned())
        }
        // One that exceeds 64 bits exceeds every bound.
        (Some("integer"), _) => {
            check_range(schema, parse_whole_number(value)?.unwrap_or(i64::MAX), Value::as_i64)
        }
        (Some("number"), _) => check_range(schema, value.as_f64().ok_or("must be a number")?, Value::as_f64),
        (Some("string"), Some("uuid")) => Ok(json!(parse_uuid(text().unwrap_or_default())?)),
        (Some("string"), Some("date")) => Ok(json!(parse_date(text().unwrap_or_default())?)),
        (Some("string"), None) if schema.get("anyOf").is_some() => {
            DateOrTime::try_from(text()?.to_owned())?;
            Ok(value.clone())
        }
        (Some("string"), _) => {
            let text = if schema.get(TRIMMED).is_some() { text()?.trim() } else { text()? };
            let bounds = ["minLength", "maxLength"].map(|keyword| limit(schema, keyword));
            check_text(text, bounds)?;
            match schema.get(HASHTAG) {
                Some(_) => Ok(hashtag::parse(text).ok_or("must be a hashtag")?.into()),
                None => Ok(text.into()),
            }
        }
        // Any value.
        _ => Ok(value.clone()),
    }
}

/// Reads a value from the text of a parameter, as far as it can be one of the schema.
pub fn from_text(schema: &Value, text: &str) -> Value {
    let value = match type_name(schema) {
        Some("boolean") => text.parse().ok().map(Value::Bool),
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().map(Value::from),
        _ => None,
    };
    value.unwrap_or_else(|| text.into())
}

/// Deserializes the valid fields of a part of a request.
fn deserialize<T: DeserializeOwned>(valid: Map<String, Value>, violations: &mut Violations) -> Option<T> {
    match serde_json::from_value(Value::Object(valid)) {
        Ok(value) => Some(value),
        Err(error) => {
            // Otherwise a required field is missing because it is invalid.
            if violations.is_empty() {
                violations.add("request", format!("cannot be read: {error}"));
            }
            None
        }
    }
}

/// Returns the type of a schema; of a nullable one, the type besides null.
pub fn type_name(schema: &Value) -> Option<&str> {
    let name = schema.get("type")?;
    name.as_str().or_else(|| name.get(0)?.as_str())
}

pub fn limit(schema: &Value, keyword: &str) -> Option<usize> {
    schema.get(keyword)?.as_u64()?.try_into().ok()
}

/// The number of different entries that a list in a query may have.
pub fn max_distinct(schema: &Value) -> usize {
    let variants = schema["items"]["enum"].as_array().map(Vec::len);
    [limit(schema, "maxItems"), variants].into_iter().flatten().fold(MAX_QUERY_IDS, usize::min)
}

fn check_range<T: Copy + PartialOrd + Display + Into<Value>>(
    schema: &Value,
    value: T,
    bound: impl Fn(&Value) -> Option<T>,
) -> Result<Value, String> {
    match ["minimum", "maximum"].map(|keyword| bound(&schema[keyword])) {
        [Some(min), Some(max)] if !(min..=max).contains(&value) => {
            Err(format!("must be from {min} to {max}"))
        }
        [Some(min), None] if value < min => Err(format!("must be at least {min}")),
        [None, Some(max)] if value > max => Err(format!("must be at most {max}")),
        _ => Ok(value.into()),
    }
}

/// Checks that Postgres can store a text, and its number of characters.
fn check_text(text: &str, [min, max]: [Option<usize>; 2]) -> Result<(), String> {
    let (count, max) = (text.chars().count(), max.unwrap_or(usize::MAX));
    match min {
        _ if text.contains('\0') => Err("must not contain the character U+0000".to_owned()),
        None if count > max => Err(format!("must have at most {max} characters")),
        Some(min) if !(min..=max).contains(&count) => Err(format!("must have {min} to {max} characters")),
        _ => Ok(()),
    }
}

fn must_be_one_of(variants: &[Value]) -> String {
    let names =
        variants.iter().map(|variant| variant.as_str().map_or_else(|| variant.to_string(), str::to_owned));
    let (signed, names): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with('-'));
    let sign = if signed.is_empty() { "" } else { ", optionally with - before it" };
    format!("must be one of {}{sign}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Fields {
        #[schemars(length(max = 3))]
        name: Option<String>,
        #[schemars(range(min = 1, max = 5), extend("default" = 2))]
        size: u8,
        #[serde(flatten)]
        more: MoreFields,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct MoreFields {
        #[schemars(length(min = 1, max = 2))]
        days: Vec<u16>,
        #[serde(default)]
        is_active: bool,
    }

    fn read(body: Value) -> Result<Fields, Vec<String>> {
        let mut violations = Violations::default();
        let schema = InputSchema::of::<Fields>();
        let fields = schema.read_object(body.as_object().unwrap(), &mut violations, |_, _| {});
        let messages = violations.into_vec().into_iter();
        let messages: Vec<_> = messages.map(|one| format!("{} {}", one.field, one.message)).collect();
        if messages.is_empty() { Ok(fields.unwrap()) } else { Err(messages) }
    }

    #[test]
    fn violations_are_in_the_order_of_the_fields() {
        let invalid = json!({"zone": 1, "is_active": null, "days": [1, "x"], "size": 9.0, "name": "long"});
        let expected = [
            "name must have at most 3 characters",
            "size must be from 1 to 5",
            "days[1] must be an integer",
            "is_active must not be null",
            "zone is not a field of this request",
        ];
        assert_eq!(read(invalid).unwrap_err(), expected);
        assert_eq!(read(json!({})).unwrap_err(), ["days is required"]);
    }

    #[test]
    fn absent_fields_have_their_defaults() {
        let more = MoreFields { days: vec![7], is_active: false };
        assert_eq!(read(json!({"days": [7, 7.0]})).unwrap(), Fields { name: None, size: 2, more });
    }
}
