//! Batches of ids with a window, read alike from the body of a POST and the query of a GET.

use std::hash::Hash;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{BodyFields, FromBody};
use super::fields::{parse_uuid, parse_whole_number};
use super::part::Parts;
use super::query::{FromQuery, QueryParams};
use super::violations::Violations;
use super::window::WindowParams;
use crate::http::openapi::schema;
use crate::model::limits::{MAX_BATCH_IDS, MAX_QUERY_IDS};
use crate::model::period::DateRules;

/// A batch request.
pub trait BatchRequest: Send {
    /// A valid body, for the OpenAPI document.
    fn example() -> Value;

    fn read<S: BatchSource>(source: &mut S) -> Self;
}

/// A value in a list of a batch.
pub trait BatchItem: Copy + Eq + Hash {
    fn schema() -> Value;
    fn from_text(text: &str) -> Result<Self, String>;
    fn from_json(value: &Value) -> Result<Self, String>;
}

/// The body or the query that a batch is read from.
pub trait BatchSource {
    /// Limit on the ids of all lists together.
    const MAX_IDS: usize;

    /// Sets the description of the list that is read next.
    fn describe(&mut self, text: &'static str) -> &mut Self;
    /// Reads a list without its repetitions; `None` if it is absent or invalid.
    fn list<T: BatchItem>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>>;
    fn require(&mut self, name: &'static str);
    /// Requires one of two lists in a query; a body without both has an empty result.
    fn require_either(&mut self, names: [&'static str; 2]);
    fn window(&mut self) -> WindowParams;
    fn violations(&mut self) -> &mut Violations;

    fn ids<T: BatchItem>(&mut self, name: &'static str) -> Option<Vec<T>> {
        self.list(name, 0..=Self::MAX_IDS)
    }

    fn required_ids<T: BatchItem>(&mut self, name: &'static str) -> Vec<T> {
        self.require(name);
        self.ids(name).unwrap_or_default()
    }
}

impl BatchSource for BodyFields<'_> {
    const MAX_IDS: usize = MAX_BATCH_IDS;

    fn describe(&mut self, text: &'static str) -> &mut Self {
        BodyFields::describe(self, text)
    }

    fn list<T: BatchItem>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>> {
        BodyFields::list(self, name, &bounds, T::schema, T::from_json)
    }

    fn require(&mut self, name: &'static str) {
        BodyFields::require(self, name);
    }

    fn require_either(&mut self, _names: [&'static str; 2]) {}

    fn window(&mut self) -> WindowParams {
        WindowParams::read_body(self)
    }

    fn violations(&mut self) -> &mut Violations {
        self.violations
    }
}

impl BatchSource for QueryParams<'_> {
    const MAX_IDS: usize = MAX_QUERY_IDS;

    fn describe(&mut self, text: &'static str) -> &mut Self {
        QueryParams::describe(self, text)
    }

    fn list<T: BatchItem>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>> {
        QueryParams::list(self, name, *bounds.end(), T::schema, T::from_text)
    }

    fn require(&mut self, name: &'static str) {
        QueryParams::require(self, name);
    }

    fn require_either(&mut self, [one, other]: [&'static str; 2]) {
        if !self.contains(one) && !self.contains(other) {
            self.violations.add(one, format!("is required without {other}"));
        }
    }

    fn window(&mut self) -> WindowParams {
        WindowParams::read_query(self, DateRules::Query)
    }

    fn violations(&mut self) -> &mut Violations {
        self.violations
    }
}

impl<T: BatchRequest> FromBody for T {
    fn example() -> Value {
        <T as BatchRequest>::example()
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        BatchRequest::read(body)
    }
}

impl<T: BatchRequest> FromQuery for T {
    fn read(query: &mut QueryParams<'_>, _parts: &Parts<'_>) -> Self {
        BatchRequest::read(query)
    }
}

impl BatchItem for Uuid {
    fn schema() -> Value {
        schema::uuid()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        parse_uuid(text).map_err(str::to_owned)
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        Self::from_text(value.as_str().unwrap_or_default())
    }
}

impl BatchItem for i64 {
    fn schema() -> Value {
        json!({"type": "integer", "format": "int64"})
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an integer of at most 64 bits".to_owned())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        parse_whole_number(value)?.ok_or_else(|| "must be an integer of at most 64 bits".to_owned())
    }
}
