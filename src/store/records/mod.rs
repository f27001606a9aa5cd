//! Records in Postgres: organizations, keys, accounts, creators, videos and what belongs to them.

pub mod accounts;
pub(in crate::store) mod captions;
pub mod collections;
pub mod content;
pub mod creators;
pub mod events;
pub mod exports;
pub mod hashtags;
pub mod idempotency;
pub mod imports;
pub mod keys;
pub mod links;
pub mod organizations;
pub mod post_days;
pub mod rate_limits;
pub mod subjects;
pub mod uploads;
pub mod videos;
pub mod webhooks;

use crate::store::Error;

/// Returns the result of a batch of one.
fn result_of_one<T>(results: Vec<Result<T, Error>>) -> Result<T, Error> {
    results.into_iter().next().unwrap_or(Err(Error::WriteConflict))
}
