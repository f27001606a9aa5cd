//! The fields of a JSON body.

use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use salvo_oapi::Operation;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::fields::{
    check_range, deduplicate, parse_date, parse_integer, parse_string, parse_text, parse_uuid, parse_variant,
};
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::set_body;
use crate::http::openapi::schema;
use crate::http::openapi::schema_recorder::{RecordedFields, SchemaRecorder};
use crate::model::account::Metadata;
use crate::model::limits::{MAX_METADATA_CHARS, MAX_METADATA_KEYS};

/// A JSON body, parsed into `T`.
#[derive(Serialize)]
pub struct Body<T>(pub T);

/// A type that is read from a JSON object.
pub trait FromBody: Send {
    /// A valid body, for the OpenAPI document.
    fn example() -> Value;

    fn read(body: &mut BodyFields<'_>) -> Self;
}

impl<T: FromBody> RequestPart for Body<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Self {
        static ABSENT: Value = Value::Null;
        let body = context.parsed.body.as_ref().unwrap_or(&ABSENT);
        Body(read_object(body, "body", violations, &T::read))
    }

    fn describe(operation: &mut Operation) {
        let (mut violations, example) = (Violations::default(), T::example());
        read_object(&example, "body", &mut violations, &T::read);
        debug_assert!(violations.is_empty(), "invalid example of a body: {violations:?}");
        set_body(operation, record_object(&T::read), example);
    }
}

impl_extractible!([T: FromBody] Body<T>);

/// Reads a JSON object completely; `path` is its own in violations.
fn read_object<T>(
    value: &Value,
    path: &str,
    violations: &mut Violations,
    read: &impl Fn(&mut BodyFields<'_>) -> T,
) -> T {
    let members = value.as_object();
    if members.is_none() {
        violations.add(path, "must be a JSON object");
    }
    let mut fields =
        BodyFields { members, read: Vec::new(), violations, recorder: SchemaRecorder::disabled() };
    let object = read(&mut fields);
    fields.reject_unknown();
    object
}

/// Records the fields of an object.
fn record_object<T>(read: &impl Fn(&mut BodyFields<'_>) -> T) -> RecordedFields {
    let (mut recorded, mut violations) = (RecordedFields::default(), Violations::default());
    let recorder = SchemaRecorder::new(&mut recorded);
    read(&mut BodyFields { members: None, read: Vec::new(), violations: &mut violations, recorder });
    recorded
}

/// The body of a request that needs none: absent, or an object without fields.
pub struct EmptyBody;

impl RequestPart for EmptyBody {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Self {
        if let Some(body) = &context.parsed.body {
            read_object(body, "body", violations, &|_: &mut BodyFields<'_>| {});
        }
        EmptyBody
    }

    fn describe(_operation: &mut Operation) {}
}

/// The fields of a JSON object. A field that is not read is a violation.
pub struct BodyFields<'a> {
    members: Option<&'a Map<String, Value>>,
    read: Vec<&'static str>,
    pub violations: &'a mut Violations,
    recorder: SchemaRecorder<'a>,
}

impl<'a> BodyFields<'a> {
    /// Sets the description of the field that is read next.
    pub const fn describe(&mut self, text: &'static str) -> &mut Self {
        self.recorder.describe(text);
        self
    }

    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read.push(name);
        self.members.and_then(|members| members.get(name))
    }

    fn parse<T, E: Into<String>>(
        &mut self,
        name: &'static str,
        schema: impl FnOnce() -> Value,
        parse: impl FnOnce(&'a Value) -> Result<T, E>,
    ) -> Option<T> {
        self.recorder.record(name, schema);
        let value = self.get(name)?;
        if value.is_null() {
            self.violations.add(name, "must not be null");
            return None;
        }
        parse(value).map_err(|message| self.violations.add(name, message)).ok()
    }

    pub fn require(&mut self, name: &'static str) {
        self.recorder.require(name);
        if self.members.is_some_and(|members| !members.contains_key(name)) {
            self.violations.add(name, "is required");
        }
    }

    /// Records schemas of which exactly one matches every valid body.
    pub fn one_of_schemas(&mut self, schemas: impl FnOnce() -> Vec<Value>) {
        self.recorder.one_of(schemas);
    }

    /// Reads a field that may be null: `Some(None)` if it is null, `None` if it is absent.
    pub fn nullable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.recorder.is_recording() {
            let value = read(self, name).map(Some);
            self.recorder.set_nullable();
            return value;
        }
        match self.get(name) {
            Some(Value::Null) => Some(None),
            Some(_) => read(self, name).map(Some),
            None => None,
        }
    }

    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.parse(name, schema::boolean, |value| value.as_bool().ok_or("must be true or false"))
    }

    pub fn boolean_or(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.boolean(name);
        self.recorder.set_keyword("default", || default.into());
        value.unwrap_or(default)
    }

    pub fn integer(&mut self, name: &'static str, bounds: &RangeInclusive<i64>) -> Option<i32> {
        let schema = || schema::integer(bounds);
        self.parse(name, schema, |value| {
            let value = check_range(parse_integer(value)?, bounds)?;
            i32::try_from(value).map_err(|error| error.to_string())
        })
    }

    pub fn integer_or(&mut self, name: &'static str, bounds: &RangeInclusive<i64>, default: i32) -> i32 {
        let value = self.integer(name, bounds);
        self.recorder.set_keyword("default", || default.into());
        value.unwrap_or(default)
    }

    pub fn text(&mut self, name: &'static str, bounds: &RangeInclusive<usize>) -> Option<String> {
        self.parse(name, || schema::text(bounds), |value| parse_string(value, bounds))
    }

    /// Reads a text with a parser of its own, which accepts what matches `pattern`.
    pub fn text_parsed<T>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        pattern: impl FnOnce() -> String,
        parse: impl FnOnce(String) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(name, bounds);
        self.recorder.set_keyword("pattern", || pattern().into());
        parse(text?).map_err(|message| self.violations.add(name, message)).ok()
    }

    pub fn uuid(&mut self, name: &'static str) -> Option<Uuid> {
        self.parse(name, schema::uuid, |value| parse_uuid(value.as_str().unwrap_or_default()))
    }

    pub fn variant<T: DeserializeOwned + JsonSchema>(&mut self, name: &'static str) -> Option<T> {
        self.parse(name, schema::variant::<T>, |value| parse_variant(value.as_str().unwrap_or_default()))
    }

    pub fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        self.parse(name, schema::date, |value| parse_date(value.as_str().unwrap_or_default()))
    }

    fn array(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        item_schema: impl FnOnce() -> Value,
    ) -> Option<&'a Vec<Value>> {
        let schema = || schema::list(item_schema(), bounds);
        let values = self.parse(name, schema, |value| value.as_array().ok_or("must be a list"))?;
        if !bounds.contains(&values.len()) {
            let message = match (bounds.start(), bounds.end()) {
                (0, max) => format!("must have at most {max} entries"),
                (min, max) => format!("must have {min} to {max} entries"),
            };
            self.violations.add(name, message);
            return None;
        }
        Some(values)
    }

    /// Reads a list without its repetitions; a violation names the index of the invalid entry.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        item_schema: impl FnOnce() -> Value,
        parse_item: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.entries(name, bounds, item_schema, parse_item).map(|values| deduplicate(values.into_iter()))
    }

    /// Reads a list with its repetitions.
    pub fn entries<T>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        item_schema: impl FnOnce() -> Value,
        parse_item: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let values = self.array(name, bounds, item_schema)?.iter().enumerate();
        let parsed = values.filter_map(|(index, value)| {
            parse_item(value).map_err(|message| self.violations.add(format!("{name}[{index}]"), message)).ok()
        });
        Some(parsed.collect())
    }

    /// Reads an object with fields of its own.
    pub fn object<T>(&mut self, name: &'static str, read: impl Fn(&mut BodyFields<'_>) -> T) -> Option<T> {
        let is_object = |value: &'a Value| value.is_object().then_some(value).ok_or("must be an object");
        let value = self.parse(name, || record_object(&read).into_schema(), is_object)?;
        let mut violations = Violations::default();
        let object = read_object(value, name, &mut violations, &read);
        self.violations.extend(violations.within(name));
        Some(object)
    }

    /// Reads a list of objects, of which each may have violations of its own.
    pub fn objects<T>(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<usize>,
        read: impl Fn(&mut BodyFields<'_>) -> T,
    ) -> Vec<Result<T, Violations>> {
        let values = self.array(name, bounds, || record_object(&read).into_schema()).into_iter().flatten();
        let items = values.enumerate().map(|(index, value)| {
            let (path, mut violations) = (format!("{name}[{index}]"), Violations::default());
            if !value.is_object() {
                violations.add(path, "must be a JSON object");
                return Err(violations);
            }
            let item = read_object(value, &path, &mut violations, &read);
            if violations.is_empty() { Ok(item) } else { Err(violations.within(&path)) }
        });
        items.collect()
    }

    /// Reads an object of strings.
    pub fn metadata(&mut self, name: &'static str) -> Option<Metadata> {
        let schema = || schema::string_map(MAX_METADATA_KEYS, MAX_METADATA_CHARS);
        let members = self.parse(name, schema, |value| value.as_object().ok_or("must be an object"))?;
        if members.len() > MAX_METADATA_KEYS {
            self.violations.add(name, format!("must have at most {MAX_METADATA_KEYS} keys"));
        }
        let mut metadata = Metadata::new();
        for (key, value) in members {
            let field = || format!("{name}.{key}");
            if let Err(message) = parse_text(key, &(1..=MAX_METADATA_CHARS)) {
                self.violations.add(field(), format!("as a key {message}"));
            }
            match parse_string(value, &(0..=MAX_METADATA_CHARS)) {
                Ok(text) => drop(metadata.insert(key.clone(), text)),
                Err(message) => self.violations.add(field(), message),
            }
        }
        Some(metadata)
    }

    /// Adds a violation for each field that was not read.
    fn reject_unknown(self) {
        for name in self.members.into_iter().flat_map(Map::keys) {
            if !self.read.contains(&name.as_str()) {
                self.violations.add(name, "is not a field of this request");
            }
        }
    }
}
