//! The parameters of a query string.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use salvo::Request;
use salvo_oapi::{Operation, ParameterIn};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::{check_range, parse_date, parse_date_or_time, parse_text, parse_uuid, parse_variant};
use super::request_part::{ParsedRequest, RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;
use crate::http::openapi::schema;
use crate::http::openapi::schema_recorder::{RecordedFields, SchemaRecorder};
use crate::model::account::Metadata;
use crate::model::date_or_time::DateOrTime;
use crate::model::limits::{self, LIST_ENTRIES_PER_VALUE, MAX_METADATA_CHARS};

/// A query string, parsed into `T`.
#[derive(Serialize)]
pub struct Query<T>(pub T);

/// A type that is read from a query string.
pub trait FromQuery: Send {
    fn read(query: &mut QueryParams<'_>) -> Self;
}

impl<T: FromQuery> RequestPart for Query<T> {
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

    pub fn number_or(&mut self, name: &str, bounds: &RangeInclusive<f64>, default: f64) -> f64 {
        let parse = |text: &str| {
            let value = text.parse().map_err(|_| "must be a number".to_owned())?;
            let (min, max) = (bounds.start(), bounds.end());
            bounds.contains(&value).then_some(value).ok_or_else(|| format!("must be from {min} to {max}"))
        };
        let value = self.parse(name, || schema::number(bounds), parse);
        self.recorder.set_keyword("default", || default.into());
        value.unwrap_or(default)
    }

    pub fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.parse(name, schema::uuid, parse_uuid)
    }

    pub fn variant<T: DeserializeOwned + JsonSchema>(&mut self, name: &str) -> Option<T> {
        self.parse(name, schema::variant::<T>, parse_variant)
    }

    pub fn variant_or<T: DeserializeOwned + Serialize + JsonSchema>(&mut self, name: &str, default: T) -> T {
        let value = self.variant(name);
        self.recorder.set_keyword("default", || json!(default));
        value.unwrap_or(default)
    }

    pub fn date(&mut self, name: &str) -> Option<NaiveDate> {
        self.parse(name, schema::date, parse_date)
    }

    pub fn date_or_time(&mut self, name: &str) -> Option<DateOrTime> {
        self.parse(name, schema::date_or_time, parse_date_or_time)
    }

    /// Reads a list of at most `max` different entries without its repetitions; a violation names the index of the
    /// invalid entry.
    pub fn list<T: Clone + Eq + Hash>(
        &mut self,
        name: &str,
        max: usize,
        item_schema: impl FnOnce() -> Value,
        parse_item: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let texts = self.entries(name, max, item_schema)?;
        self.parse_entries((name, max), &texts, |index| format!("{name}[{index}]"), parse_item)
    }

    /// Reads alternative values of a filter like a list, except that a violation of a single value has no index.
    fn alternatives<T: Clone + Eq + Hash>(
        &mut self,
        name: &str,
        max: usize,
        item_schema: impl FnOnce() -> Value,
        parse_item: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let texts = self.entries(name, max, item_schema)?;
        let field = |index| if texts.len() == 1 { name.to_owned() } else { format!("{name}[{index}]") };
        self.parse_entries((name, max), &texts, field, parse_item)
    }

    /// Returns the entries of a list, which are separated by commas, in parameters of their own, or both.
    fn entries(
        &mut self,
        name: &str,
        max: usize,
        item_schema: impl FnOnce() -> Value,
    ) -> Option<Vec<&'a str>> {
        let max_entries = max * LIST_ENTRIES_PER_VALUE;
        self.recorder.record(name, || schema::list(item_schema(), &(1..=max_entries)));
        self.recorder.add_to_description(|| {
            format!("At most {max} different values, separated by commas or in repeated parameters.")
        });
        let values = self.context.parsed.query.iter().filter(|(key, _)| key == name);
        let entries = values.flat_map(|(_, value)| value.split(','));
        let entries: Vec<_> = entries.take(max_entries + 1).collect();
        let message = match entries[..] {
            [] => return None,
            [""] => "must not be empty".to_owned(),
            _ if entries.len() > max_entries => format!("must have at most {max_entries} entries"),
            _ => return Some(entries),
        };
        self.violations.add(name, message);
        None
    }

    fn parse_entries<T: Clone + Eq + Hash>(
        &mut self,
        (name, max): (&str, usize),
        texts: &[&str],
        field: impl Fn(usize) -> String,
        parse_item: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let mut seen = HashSet::new();
        let parse = |(index, text): (usize, &&str)| {
            (index, parse_item(text).map_err(|message| (text.to_string(), message)))
        };
        let entries: Vec<_> =
            texts.iter().enumerate().map(parse).filter(|(_, entry)| seen.insert(entry.clone())).collect();
        // Checked first, so that a response lists at most `max` invalid entries.
        if entries.len() > max {
            self.violations.add(name, format!("must have at most {max} different entries"));
            return None;
        }
        let entries = entries.into_iter().filter_map(|(index, entry)| {
            entry.map_err(|(_, message)| self.violations.add(field(index), message)).ok()
        });
        Some(entries.collect())
    }

    /// Reads alternative ids of a filter.
    pub fn uuids(&mut self, name: &str, max: usize) -> Option<Vec<Uuid>> {
        self.alternatives(name, max, schema::uuid, |text| parse_uuid(text).map_err(str::to_owned))
    }

    /// Reads alternative values of a filter.
    pub fn variants<T: DeserializeOwned + JsonSchema + Clone + Eq + Hash>(
        &mut self,
        name: &str,
    ) -> Option<Vec<T>> {
        let max = schema::variant_names::<T>().len();
        self.alternatives(name, max, schema::variant::<T>, parse_variant)
    }

    /// Reads the parameters `name.KEY`, of at most `max` keys: tags by key.
    pub fn tags(&mut self, name: &str, max: usize) -> Metadata {
        let prefix = format!("{name}.");
        self.recorder.record(name, || schema::prefixed_string_map(&prefix, max, MAX_METADATA_CHARS));
        if self.contains(name) {
            self.violations.add(name, format!("must name a key, as {prefix}KEY"));
        }
        let names = self.context.parsed.query.iter().map(|(name, _)| name.as_str());
        let keys: BTreeSet<_> = names.filter_map(|name| name.strip_prefix(&prefix)).collect();
        // Checked first, so that a response lists at most `max` invalid tags.
        if keys.len() > max {
            self.violations.add(name, format!("must have at most {max} keys"));
            return Metadata::new();
        }
        keys.into_iter().filter_map(|key| self.tag(&prefix, key)).collect()
    }

    fn tag(&mut self, prefix: &str, key: &str) -> Option<(String, String)> {
        let field = format!("{prefix}{key}");
        let value = self.get(&field)?;
        let tag = parse_text(key, &(1..=MAX_METADATA_CHARS))
            .map_err(|message| format!("the key {message}"))
            .and_then(|key| Ok((key, parse_text(value, &(0..=MAX_METADATA_CHARS))?)));
        tag.map_err(|message| self.violations.add(field, message)).ok()
    }

    /// Reads a list of texts.
    pub fn texts(
        &mut self,
        name: &str,
        max: usize,
        characters: &RangeInclusive<usize>,
    ) -> Option<Vec<String>> {
        self.list(name, max, || schema::text(characters), |text| parse_text(text, characters))
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
