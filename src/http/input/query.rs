//! The parameters of a query string. Parameters that a request does not have are ignored.

use std::collections::{BTreeMap, HashSet};

use salvo_oapi::{Operation, ParameterIn};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::reader::{InputField, InputSchema, from_text, limit, max_distinct, read_scalar, type_name};
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;
use crate::http::openapi::schema::TRIMMED;
use crate::model::date_or_time::DateOrTime;
use crate::model::limits::LIST_ENTRIES_PER_VALUE;

const GIVEN_ONCE: &str = "must be given once";

/// A query string, parsed into `T`.
#[derive(Serialize)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> RequestPart for Query<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let pairs = &context.parsed.query;
        let schema = InputSchema::of::<T>();
        schema
            .read_query(context.today, violations, |field, violations| {
                QueryReader { pairs, violations }.read(field)
            })
            .map(Query)
    }

    fn describe(operation: &mut Operation) {
        add_parameters(operation, ParameterIn::Query, &InputSchema::of::<T>().fields);
    }
}

impl_extractible!([T: DeserializeOwned + JsonSchema + Send + 'static] Query<T>);

struct QueryReader<'a> {
    pairs: &'a [(String, String)],
    violations: &'a mut Violations,
}

impl<'a> QueryReader<'a> {
    fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let pairs = self.pairs;
        pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn read(&mut self, field: &InputField) -> Option<Value> {
        match type_name(&field.schema) {
            Some("object") => return Some(self.read_tags(field)),
            _ if self.values(&field.name).next().is_none() => return field.read_absent(self.violations),
            Some("array") => return self.read_list(field),
            _ => {}
        }
        let text = self.read_once(&field.name)?;
        if text.is_empty() && !accepts_empty(&field.schema) {
            self.violations.add(&field.name, "must not be empty");
            return None;
        }
        let value = read_scalar(&field.schema, &from_text(&field.schema, text));
        let explain = |message| explain_blank(&field.schema, text).unwrap_or(message);
        let value = value.map_err(|message| self.violations.add(&field.name, explain(message))).ok()?;
        // A blank search text counts as absent.
        (field.schema.get(TRIMMED).is_none() || value != "").then_some(value)
    }

    fn read_once(&mut self, name: &str) -> Option<&'a str> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() {
            self.violations.add(name, GIVEN_ONCE);
            return None;
        }
        first
    }

    /// Reads entries that are separated by commas, in parameters of their own, or both. Repetitions are left out and do
    /// not count for the limit of values, only for that of entries. A violation names the index of the entry, except of a
    /// single alternative of a filter.
    fn read_list(&mut self, field: &InputField) -> Option<Value> {
        let InputField { name, schema, .. } = field;
        let max = max_distinct(schema);
        let max_entries = max * LIST_ENTRIES_PER_VALUE;
        let texts = self.values(name).flat_map(|value| value.split(','));
        let texts: Vec<_> = texts.take(max_entries + 1).collect();
        let mut seen = HashSet::new();
        let read = |(index, text): (usize, &&str)| {
            let item = read_scalar(&schema["items"], &from_text(&schema["items"], text));
            (index, item.map_err(|message| (text.to_string(), message)))
        };
        let entries = texts.iter().enumerate().map(read).filter(|(_, entry)| seen.insert(entry.clone()));
        let entries: Vec<_> = entries.collect();
        let message = match texts[..] {
            [""] => "must not be empty".to_owned(),
            // Checked first, so that a response lists at most `max` invalid entries.
            _ if texts.len() > max_entries => format!("must have at most {max_entries} entries"),
            _ if entries.len() > max => format!("must have at most {max} different entries"),
            _ => {
                let has_index = texts.len() > 1 || !is_filter(field);
                let entries = entries.into_iter().filter_map(|(index, entry)| {
                    let path = || if has_index { format!("{name}[{index}]") } else { name.clone() };
                    entry.map_err(|(_, message)| self.violations.add(path(), message)).ok()
                });
                return Some(entries.collect());
            }
        };
        self.violations.add(name, message);
        None
    }

    /// Reads the parameters `name.KEY`: texts by key. Generated clients send them as `name[KEY]` or `name[name.KEY]`.
    fn read_tags(&mut self, InputField { name, schema, .. }: &InputField) -> Value {
        let (prefix, max) = (format!("{name}."), limit(schema, "maxProperties").unwrap_or(usize::MAX));
        if self.values(name).next().is_some() {
            self.violations.add(name, format!("must name a key, as {prefix}KEY"));
        }
        let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (parameter, text) in self.pairs {
            if let Some(key) = tag_key(name, parameter) {
                texts.entry(key).or_default().push(text);
            }
        }
        let mut tags = Map::new();
        // Checked first, so that a response lists at most `max` invalid tags.
        if texts.len() > max {
            self.violations.add(name, format!("must have at most {max} keys"));
            return Value::Object(tags);
        }
        for (key, values) in texts {
            let read = |text: &&str| {
                read_scalar(&schema["propertyNames"], &json!(key))
                    .map_err(|message| format!("as a key {message}"))
                    .and_then(|_| read_scalar(&schema["additionalProperties"], &json!(text)))
            };
            let tag = match &values[..] {
                [text] => read(text),
                _ => Err(GIVEN_ONCE.to_owned()),
            };
            match tag {
                Ok(value) => drop(tags.insert(key.to_owned(), value)),
                Err(message) => self.violations.add(format!("{prefix}{key}"), message),
            }
        }
        Value::Object(tags)
    }
}

/// Returns the key of the tag `name` that a parameter sets.
fn tag_key<'a>(name: &str, parameter: &'a str) -> Option<&'a str> {
    let after_dot = |text: &'a str| text.strip_prefix(name)?.strip_prefix('.');
    let in_brackets = || parameter.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']');
    after_dot(parameter).or_else(|| in_brackets().map(|key| after_dot(key).unwrap_or(key)))
}

/// Whether a list is a filter by any of several ids or names.
fn is_filter(field: &InputField) -> bool {
    let items = &field.schema["items"];
    let is_optional = !field.is_required && field.schema.get("default").is_none();
    is_optional && type_name(items) == Some("string") && limit(items, "maxLength").is_none()
}

/// Returns the message of a time whose `+` was not encoded, which makes it a blank.
fn explain_blank(schema: &Value, text: &str) -> Option<String> {
    let time = text.replace(' ', "+");
    let is_time = schema.get("anyOf").is_some() && DateOrTime::parse(&time).is_some();
    is_time.then(|| format!("must have its + encoded as %2B: {}", time.replace('+', "%2B")))
}

/// Whether an empty text is a value.
fn accepts_empty(schema: &Value) -> bool {
    limit(schema, "maxLength").is_some() && limit(schema, "minLength").is_none()
}
