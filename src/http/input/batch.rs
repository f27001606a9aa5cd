//! Batches of ids with a window, read alike from the body of a POST and the query of a GET.

use std::hash::Hash;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{BodyFields, FromBody};
use super::fields::{parse_uuid, parse_whole_number};
use super::query::{FromQuery, QueryParams};
use super::window::WindowParams;
use crate::http::openapi::schema;
use crate::model::limits::{MAX_BATCH_IDS, MAX_QUERY_IDS};
use crate::model::period::DateRules;

pub trait BatchRequest: Send {
    /// A valid body, for the OpenAPI document.
    fn example() -> Value;

    fn read(source: &mut BatchSource<'_, '_>) -> Self;
}

/// A value in a list of a batch.
pub trait BatchItem: Copy + Eq + Hash {
    fn schema() -> Value;
    fn from_text(text: &str) -> Result<Self, String>;
    fn from_json(value: &Value) -> Result<Self, String>;
}

/// The body or the query that a batch is read from.
pub enum BatchSource<'s, 'a> {
    Body(&'s mut BodyFields<'a>),
    Query(&'s mut QueryParams<'a>),
}

impl BatchSource<'_, '_> {
    /// Limit on the ids of all lists together.
    pub const fn max_ids(&self) -> usize {
        match self {
            Self::Body(_) => MAX_BATCH_IDS,
            Self::Query(_) => MAX_QUERY_IDS,
        }
    }

    /// Sets the description of the list that is read next.
    pub fn describe(&mut self, text: &'static str) -> &mut Self {
        match self {
            Self::Body(body) => _ = body.describe(text),
            Self::Query(query) => _ = query.describe(text),
        }
        self
    }

    /// Reads a list without its repetitions; `None` if it is absent or invalid.
    pub fn list<T: BatchItem>(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<usize>,
    ) -> Option<Vec<T>> {
        match self {
            Self::Body(body) => body.list(name, &bounds, T::schema, T::from_json),
            Self::Query(query) => query.list(name, *bounds.end(), T::schema, T::from_text),
        }
    }

    pub fn ids<T: BatchItem>(&mut self, name: &'static str) -> Option<Vec<T>> {
        self.list(name, 0..=self.max_ids())
    }

    pub fn required_ids<T: BatchItem>(&mut self, name: &'static str) -> Vec<T> {
        match self {
            Self::Body(body) => body.require(name),
            Self::Query(query) => query.require(name),
        }
        self.ids(name).unwrap_or_default()
    }

    /// Requires one of two lists in a query; a body without both has an empty result.
    pub fn require_either(&mut self, [one, other]: [&'static str; 2]) {
        if let Self::Query(query) = self
            && !query.contains(one)
            && !query.contains(other)
        {
            query.violations.add(one, format!("is required without {other}"));
        }
    }

    pub fn window(&mut self) -> WindowParams {
        match self {
            Self::Body(body) => WindowParams::read_body(body),
            Self::Query(query) => WindowParams::read_query(query, DateRules::Query),
        }
    }

    pub fn add_violation(&mut self, name: &'static str, message: String) {
        match self {
            Self::Body(body) => body.violations.add(name, message),
            Self::Query(query) => query.violations.add(name, message),
        }
    }
}

impl<T: BatchRequest> FromBody for T {
    fn example() -> Value {
        <T as BatchRequest>::example()
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        BatchRequest::read(&mut BatchSource::Body(body))
    }
}

impl<T: BatchRequest> FromQuery for T {
    fn read(query: &mut QueryParams<'_>) -> Self {
        BatchRequest::read(&mut BatchSource::Query(query))
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
