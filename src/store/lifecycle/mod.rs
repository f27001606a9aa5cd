//! Erasure of deleted data from ClickHouse, the outbox and Postgres' files, retention of history, and repair of its times.
//!
//! Every step is idempotent and finds its remaining work in the stores. `worker::erasure` and `rollup::repair` run them.

pub mod future_times;
pub mod organizations;
pub mod outbox;
pub mod purge;
pub mod retention;
pub mod rewrite;
pub mod subject_range;
pub mod vacuum;

use super::Error;
use super::postgres::advisory_lock::{AdvisoryLock, LockName};

/// The name of [`ErasureLock`].
pub enum ErasureLockName {}

impl LockName for ErasureLockName {
    const NAME: &'static str = "tidemark.erasure";
}

/// The lock of the process that purges deleted and expired data.
pub type ErasureLock = AdvisoryLock<ErasureLockName>;

/// The name of [`OrganizationErasureLock`].
pub enum OrganizationErasureLockName {}

impl LockName for OrganizationErasureLockName {
    const NAME: &'static str = "tidemark.organization_erasure";
}

/// The lock of the process that erases deleted organizations.
pub type OrganizationErasureLock = AdvisoryLock<OrganizationErasureLockName>;

/// Adds the rows of two independent steps, or returns the first error.
pub fn sum_results(first: Result<u64, Error>, second: Result<u64, Error>) -> Result<u64, Error> {
    Ok(first? + second?)
}
