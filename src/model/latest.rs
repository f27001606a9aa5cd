//! The latest known value of a field, independent of the order in which observations arrive.
//!
//! Each field has its own time, so an older observation fills fields that a newer one lacks and overwrites nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The time of values without a time of observation: earlier than any observation.
pub const UNDATED: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// A value and when it was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Timestamped<T> {
    pub value: T,
    pub at: DateTime<Utc>,
}

/// The latest observed value of a field; empty until the field is observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatestValue<T>(Option<Timestamped<T>>);

impl<T> LatestValue<T> {
    pub fn new(value: Option<T>, at: Option<DateTime<Utc>>) -> Self {
        LatestValue(value.zip(at).map(|(value, at)| Timestamped { value, at }))
    }

    /// Replaces the value unless the new one is unknown or older.
    pub fn record(&mut self, value: Option<T>, at: DateTime<Utc>) {
        self.merge(LatestValue(value.map(|value| Timestamped { value, at })));
    }

    /// Replaces the value with the other one if that is not older.
    pub fn merge(&mut self, other: LatestValue<T>) {
        if other.at() >= self.at() && other.0.is_some() {
            self.0 = other.0;
        }
    }

    pub const fn get(&self) -> Option<&T> {
        match &self.0 {
            Some(latest) => Some(&latest.value),
            None => None,
        }
    }

    /// Returns when the value was observed.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        self.0.as_ref().map(|latest| latest.at)
    }

    pub fn into_timestamped(self) -> Option<Timestamped<T>> {
        self.0
    }
}

/// When a field was last observed.
pub struct FieldTime {
    pub name: &'static str,
    /// Whether an unknown value is stored as null, instead of 0 or false.
    pub is_nullable: bool,
    pub at: Option<DateTime<Utc>>,
}

/// The stored times of fields that the latest observation did not have.
///
/// A null column needs no entry: its value was never observed. A zero that was never observed has the time null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownAt(BTreeMap<String, Option<DateTime<Utc>>>);

impl KnownAt {
    pub fn new(times: impl Iterator<Item = FieldTime>, observed_at: Option<DateTime<Utc>>) -> Self {
        let exceptions =
            times.filter(|time| time.at != observed_at && (time.at.is_some() || !time.is_nullable));
        KnownAt(exceptions.map(|time| (time.name.to_owned(), time.at)).collect())
    }

    /// Returns when a field was last observed.
    pub fn get(&self, field: &str, observed_at: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        self.0.get(field).copied().unwrap_or(observed_at)
    }

    /// Returns the stored form; `None` if the latest observation had every field.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        (!self.0.is_empty()).then(|| serde_json::json!(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::model::observed::{VideoFields, VideoLatest};

    fn at(second: u32) -> DateTime<Utc> {
        DateTime::from_timestamp(i64::from(second), 0).unwrap()
    }

    fn observation(second: u32, views: Option<i64>, saves: Option<i64>) -> VideoLatest {
        let mut latest = VideoLatest::default();
        let counters = Counters { view_count: views, saved_count: saves, ..Counters::default() };
        latest.record(VideoFields::default(), counters, at(second));
        latest
    }

    #[test]
    fn order_of_observations_does_not_matter() {
        let observations = [
            observation(1, Some(10), Some(1)),
            observation(2, Some(20), Some(2)),
            observation(3, Some(30), None),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut latest = VideoLatest::default();
            for n in order {
                // Stored and restored each time, as between two batches of an import.
                let observed_at = latest.observed_at();
                let known_at = latest.known_at(observed_at);
                latest = VideoLatest::restore(
                    latest.fields(),
                    latest.counters().or_zero(),
                    observed_at,
                    Some(&known_at),
                );
                latest.merge(observations[n].clone());
            }
            let expected = Counters { view_count: Some(30), saved_count: Some(2), ..Counters::default() };
            assert_eq!(latest.counters(), expected, "{order:?}");
        }
    }

    #[test]
    fn zero_differs_from_an_unknown_counter() {
        let latest = observation(3, Some(0), None);
        let json = latest.known_at(latest.observed_at()).to_json().unwrap();
        assert_eq!(json.get("view_count"), None);
        assert_eq!(json.get("like_count"), Some(&serde_json::Value::Null));
        assert_eq!(json.get("saved_count"), None, "a null column is unknown");
    }
}
