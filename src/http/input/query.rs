//! The parameters of a query string.

use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use salvo::Request;
use salvo_oapi::{Operation, ParameterIn};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::fields::{
    ApiEnum, check_range, deduplicate, parse_date, parse_text, parse_uuid, parse_variant, variant_name,
    variant_schema,
};
use super::part::{ParsedRequest, Part, RequestContext, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;
use crate::http::openapi::schema;
use crate::http::openapi::schema_recorder::{RecordedFields, SchemaRecorder};
use crate::model::limits;

/// A query string, parsed into `T`.
#[derive(Serialize)]
pub struct Query<T>(pub T);

/// A type that is read from a query string.
pub trait FromQuery: Send {
    fn read(query: &mut QueryParams<'_>) -> Self;
}

impl<T: FromQuery> Part for Query<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Self {
        Query(T::read(&mut QueryParams { context, violations, recorder: SchemaRecorder::disabled() }))
    }

    fn describe(operation: &mut Operation) {
        let (mut recorded, mut violations, request) =
            (RecordedFields::default(), Violations::default(), Request::new());
        let context = RequestContext { request: &request, parsed: &ParsedRequest::default(), caller: None };
        let recorder = SchemaRecorder::new(&mut recorded);
        T::read(&mut QueryParams { context: &context, violations: &mut violations, recorder });
        add_parameters(operation, ParameterIn::Query, recorded);
    }
}

impl_extractible!([T: FromQuery] Query<T>);

/// The parameters of a query string. Parameters that are not read are ignored.
pub struct QueryParams<'a> {
    pub context: &'a RequestContext<'a>,
    pub violations: &'a mut Violations,
    recorder: SchemaRecorder<'a>,
}

impl<'a> QueryParams<'a> {
    /// Sets the description of the parameter that is read next.
    pub const fn describe(&mut self, text: &'static str) -> &mut Self {
        self.recorder.describe(text);
        self
    }

    fn get(&mut self, name: &str) -> Option<&'a str> {
        let pairs = self.context.parsed.query.iter();
        let mut values = pairs.filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            self.violations.add(name, "must be given once");
            return None;
        }
        first
    }

    /// Reads a parameter that must not be empty with a parser of its own.
    pub fn parse<T, E: Into<String>>(
        &mut self,
        name: &str,
        schema: impl FnOnce() -> Value,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Option<T> {
        self.recorder.record(name, schema);
        let text = self.get(name)?;
        if text.is_empty() {
            self.violations.add(name, "must not be empty");
            return None;
        }
        parse(text).map_err(|message| self.violations.add(name, message)).ok()
    }

    pub fn require(&mut self, name: &'static str) {
        self.recorder.require(name);
        if !self.contains(name) && !self.recorder.is_recording() {
            self.violations.add(name, "is required");
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.context.parsed.query.iter().any(|(key, _)| key == name)
    }

    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        self.parse(name, schema::boolean, |text| text.parse().map_err(|_| "must be true or false"))
    }

    pub fn boolean_or(&mut self, name: &str, default: bool) -> bool {
        let value = self.boolean(name);
        self.recorder.set_keyword("default", || default.into());
        value.unwrap_or(default)
    }

    pub fn integer(&mut self, name: &str, bounds: &RangeInclusive<i64>) -> Option<i64> {
        let parse = |text: &str| check_range(text.parse().map_err(|_| "must be an integer")?, bounds);
        self.parse(name, || schema::integer(bounds), parse)
    }

    pub fn integer_or(&mut self, name: &str, bounds: &RangeInclusive<i64>, default: i64) -> i64 {
        let value = self.integer(name, bounds);
        self.recorder.set_keyword("default", || default.into());
        value.unwrap_or(default)
    }

    pub fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.parse(name, schema::uuid, parse_uuid)
    }

    pub fn variant<T: ApiEnum>(&mut self, name: &str) -> Option<T> {
        self.parse(name, variant_schema::<T>, parse_variant)
    }

    pub fn variant_or<T: ApiEnum + PartialEq>(&mut self, name: &str, default: T) -> T {
        let value = self.variant(name);
        self.recorder.set_keyword("default", || variant_name(default).into());
        value.unwrap_or(default)
    }

    pub fn date(&mut self, name: &str) -> Option<NaiveDate> {
        self.parse(name, schema::date, parse_date)
    }

    /// Reads a comma-separated list without its repetitions; a violation names the index of the invalid entry.
    pub fn list<T: Copy + Eq + Hash>(
        &mut self,
        name: &str,
        max: usize,
        item_schema: impl FnOnce() -> Value,
        parse_item: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let schema = || schema::list(item_schema(), &(1..=max));
        let texts = self.parse(name, schema, |text| {
            // Checked first, so that a response lists at most `max` invalid entries.
            if text.split(',').nth(max).is_some() {
                return Err(format!("must have at most {max} entries"));
            }
            Ok(text.split(','))
        })?;
        Some(deduplicate(texts.enumerate().filter_map(|(index, text)| {
            parse_item(text).map_err(|message| self.violations.add(format!("{name}[{index}]"), message)).ok()
        })))
    }

    /// Reads a text that may be empty.
    pub fn text(&mut self, name: &str, max: usize) -> Option<String> {
        self.recorder.record(name, || schema::text(&(0..=max)));
        let text = self.get(name)?;
        parse_text(text, &(0..=max)).map_err(|message| self.violations.add(name, message)).ok()
    }

    /// Reads a search text and trims it; an empty one counts as absent.
    pub fn search_text(&mut self, name: &str) -> Option<String> {
        self.recorder.record(name, || schema::text(&(0..=limits::MAX_QUERY_CHARS)));
        let text = parse_text(self.get(name)?.trim(), &(0..=limits::MAX_QUERY_CHARS));
        let text = text.map_err(|message| self.violations.add(name, message)).ok()?;
        (!text.is_empty()).then_some(text)
    }
}
