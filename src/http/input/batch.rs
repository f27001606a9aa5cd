//! Batches: lists of ids that are asked about at once, in the body of a POST or in the query of a GET. What a batch
//! holds is said once, over the source that both of them are.

use std::hash::Hash;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::input::fields::{Object, Params, Violations, uuid, whole};
use crate::http::input::window::WindowParams;
use crate::http::input::{FromBody, FromQuery, Parts};
use crate::http::openapi::schema_recorder;
use crate::model::limits::{MAX_BATCH_IDS, MAX_QUERY_IDS};
use crate::model::period::DateRules;

/// What is asked about at once.
pub trait Batch: Send {
    /// A body that is read without violations.
    fn example() -> Value;

    fn read<S: BatchSource>(source: &mut S) -> Self;
}

/// A value that stands in a list of a batch.
pub trait Entry: Copy + Eq + Hash {
    fn schema() -> Value;
    fn of_text(text: &str) -> Result<Self, String>;
    fn of_json(value: &Value) -> Result<Self, String>;
}

/// Where the lists and the window of a batch stand.
pub trait BatchSource {
    /// How many ids may be asked about, all lists together.
    const MOST: usize;

    /// Says what the list that is read next means.
    fn about(&mut self, text: &'static str) -> &mut Self;
    /// A list without repetitions; `None` when it is absent or refused.
    fn list<T: Entry>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>>;
    /// Notes that a list has to be there.
    fn require(&mut self, name: &'static str);
    /// Notes that one of two lists has to be there, unless asking about nothing is answered with nothing.
    fn require_either(&mut self, names: [&'static str; 2]);
    fn window(&mut self) -> WindowParams;
    fn violations(&mut self) -> &mut Violations;

    /// Ids that may be left out.
    fn ids<T: Entry>(&mut self, name: &'static str) -> Option<Vec<T>> {
        self.list(name, 0..=Self::MOST)
    }

    /// Ids that have to be named.
    fn required_ids<T: Entry>(&mut self, name: &'static str) -> Vec<T> {
        self.require(name);
        self.ids(name).unwrap_or_default()
    }
}

impl BatchSource for Object<'_> {
    const MOST: usize = MAX_BATCH_IDS;

    fn about(&mut self, text: &'static str) -> &mut Self {
        Object::about(self, text)
    }

    fn list<T: Entry>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>> {
        Object::list(self, name, &bounds, T::schema, T::of_json)
    }

    fn require(&mut self, name: &'static str) {
        Object::require(self, name);
    }

    fn require_either(&mut self, _names: [&'static str; 2]) {}

    fn window(&mut self) -> WindowParams {
        WindowParams::read_body(self)
    }

    fn violations(&mut self) -> &mut Violations {
        self.violations
    }
}

impl BatchSource for Params<'_> {
    const MOST: usize = MAX_QUERY_IDS;

    fn about(&mut self, text: &'static str) -> &mut Self {
        Params::about(self, text)
    }

    fn list<T: Entry>(&mut self, name: &'static str, bounds: RangeInclusive<usize>) -> Option<Vec<T>> {
        Params::list(self, name, *bounds.end(), T::schema, T::of_text)
    }

    fn require(&mut self, name: &'static str) {
        Params::require(self, name);
    }

    fn require_either(&mut self, [one, other]: [&'static str; 2]) {
        if !self.has(one) && !self.has(other) {
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

impl<T: Batch> FromBody for T {
    fn example() -> Value {
        <T as Batch>::example()
    }

    fn read(body: &mut Object<'_>) -> Self {
        Batch::read(body)
    }
}

impl<T: Batch> FromQuery for T {
    fn read(query: &mut Params<'_>, _parts: &Parts<'_>) -> Self {
        Batch::read(query)
    }
}

impl Entry for Uuid {
    fn schema() -> Value {
        schema_recorder::uuid()
    }

    fn of_text(text: &str) -> Result<Self, String> {
        uuid(text).map_err(str::to_owned)
    }

    fn of_json(value: &Value) -> Result<Self, String> {
        Self::of_text(value.as_str().unwrap_or_default())
    }
}

impl Entry for i64 {
    fn schema() -> Value {
        json!({"type": "integer", "format": "int64"})
    }

    fn of_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an integer of at most 64 bits".to_owned())
    }

    fn of_json(value: &Value) -> Result<Self, String> {
        whole(value)?.ok_or_else(|| "must be an integer of at most 64 bits".to_owned())
    }
}
