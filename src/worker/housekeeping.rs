//! Deletes expired responses of idempotent requests, rate limit windows, imports, events and ended attempts, compacts counts of posts,
//! targets and attempts, and stores hashtags that an earlier version left out.
//!
//! Each statement processes a bounded number of rows, so that none holds locks for long.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::passes::{self, PassTask};
use super::timeout;
use crate::app::Databases;
use crate::store::Error;
use crate::store::lifecycle::vacuum;
use crate::store::records::{events, hashtags, idempotency, post_days, rate_limits, uploads, webhooks};
use crate::store::tracking::{ended_attempts, target_counts};

/// Rows per statement.
const BATCH_ROWS: u32 = 5_000;
/// Stored responses may contain data that was deleted since, so they leave the table's file soon after they expire.
const VACUUM_INTERVAL: Duration = Duration::from_secs(3600);

/// Cleans up until it is stopped. Several processes may do so at once.
pub async fn run(databases: Databases, stop: CancellationToken) {
    let housekeeping = Housekeeping { databases, is_vacuum_due: false, last_vacuum: None };
    passes::run(housekeeping, stop).await;
}

struct Housekeeping {
    databases: Databases,
    /// Stored responses may have been deleted since the last vacuum.
    is_vacuum_due: bool,
    last_vacuum: Option<Instant>,
}

impl PassTask for Housekeeping {
    const FAILURE: &'static str = "housekeeping failed";
    const INTERVAL: Duration = Duration::from_secs(60);

    async fn run_pass(&mut self) -> Result<(), Error> {
        let pg = &self.databases.pg;
        let deleted = repeat(|rows| idempotency::delete_expired(pg, rows)).await;
        self.is_vacuum_due |= !matches!(deleted, Ok(0));
        deleted?;
        repeat(|rows| rate_limits::delete_expired(pg, rows)).await?;
        repeat(|rows| hashtags::fill_missing(pg, rows)).await?;
        repeat(|rows| uploads::queue::delete_expired(pg, rows)).await?;
        for table in [&post_days::TABLE, &target_counts::TABLE, &ended_attempts::TABLE] {
            repeat(|rows| table.compact(pg, rows)).await?;
        }
        let now = self.databases.clock.now().await;
        repeat(|rows| ended_attempts::delete_expired(pg, now, rows)).await?;
        repeat(|rows| events::delete_expired(pg, now, rows)).await?;
        repeat(|rows| webhooks::deliveries::delete_expired_tests(pg, now, rows)).await?;
        if self.is_vacuum_due && self.last_vacuum.is_none_or(|at| at.elapsed() >= VACUUM_INTERVAL) {
            vacuum::vacuum_table(pg, "idempotency_keys").await?;
            (self.is_vacuum_due, self.last_vacuum) = (false, Some(Instant::now()));
        }
        Ok(())
    }
}

/// Repeats a statement until it processes fewer rows than a batch has. Returns how many it processed.
async fn repeat<F>(statement: impl Fn(i64) -> F) -> Result<u64, Error>
where
    F: Future<Output = Result<u64, Error>>,
{
    let mut rows = 0;
    loop {
        let batch = timeout::long(statement(BATCH_ROWS.into())).await?;
        rows += batch;
        if batch < BATCH_ROWS.into() {
            return Ok(rows);
        }
    }
}
