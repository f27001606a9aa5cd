//! Records in Postgres: organizations, keys, accounts, creators, videos and what belongs to them.

pub mod accounts;
pub(in crate::store) mod captions;
pub mod content;
pub mod creators;
pub mod exports;
pub mod idempotency;
pub mod imports;
pub mod keys;
pub mod links;
pub mod organizations;
pub mod post_days;
pub mod rate_limits;
pub mod subjects;
pub mod videos;

use std::fmt::Display;

use serde::Serializer;

use crate::store::Error;

/// Serializes the values of a filter with commas between them.
fn serialize_list<S: Serializer, T: Display>(
    values: &Option<Vec<T>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let values = values.iter().flatten().map(T::to_string);
    serializer.serialize_str(&values.collect::<Vec<_>>().join(","))
}

/// Returns the result of a batch of one.
fn result_of_one<T>(results: Vec<Result<T, Error>>) -> Result<T, Error> {
    results.into_iter().next().unwrap_or(Err(Error::WriteConflict))
}
