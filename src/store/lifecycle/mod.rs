//! How what was deleted goes for good: deleted organizations with all they had, what deletions of accounts, videos and
//! creators leave behind in ClickHouse, in the outbox and in the files of Postgres, and history that is older than an
//! organization keeps.
//!
//! Every step may be repeated, by this process or another, and none looks at what another step remembers: what is left to
//! do is what is still there. When each is due is `worker::erasure`'s matter.

pub mod purge;
pub mod organizations;
pub mod outbox;
pub mod retention;
pub mod vacuum;

use super::Error;
use super::postgres::advisory_lock::{AdvisoryLock, LockName};

/// Taking out what was deleted.
pub enum Erasure {}

impl LockName for Erasure {
    const NAME: &'static str = "tidemark.erasure";
}

/// The place of the process that erases.
pub type ErasureLock = AdvisoryLock<Erasure>;

/// How many rows two steps took out, neither of which keeps the other from being taken; the first failure, if there is one.
pub fn sum_results(rows: Result<u64, Error>, more: Result<u64, Error>) -> Result<u64, Error> {
    Ok(rows? + more?)
}
