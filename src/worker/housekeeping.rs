//! Deletes expired responses of idempotent requests, rate limit windows and ended attempts, and compacts counts of posts,
//! targets and attempts.
//!
//! Each statement processes a bounded number of rows, so that none holds locks for long.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::timeout;
use crate::app::Databases;
use crate::store::Error;
use crate::store::lifecycle::vacuum;
use crate::store::records::idempotency;
use crate::store::records::post_days;
use crate::store::records::rate_limits;
use crate::store::tracking::{ended_attempts, target_counts};

const INTERVAL: Duration = Duration::from_secs(60);
/// Rows per statement.
const BATCH_ROWS: u64 = 5_000;
/// Stored responses may contain data that was deleted since, so they leave the table's file soon after they expire.
const VACUUM_INTERVAL: Duration = Duration::from_secs(3600);

/// Cleans up until it is stopped. Several processes may do so at once.
pub async fn run(databases: Databases, stop: CancellationToken) {
    let mut housekeeping = Housekeeping { databases, has_counts: false, unvacuumed: 0, last_vacuum: None };
    let mut interval = tokio::time::interval(INTERVAL);
    let clean_up = async {
        loop {
            interval.tick().await;
            if let Err(error) = housekeeping.clean_up().await {
                tracing::warn!(%error, "housekeeping failed, retrying in a minute");
            }
        }
    };
    let _: Option<()> = stop.run_until_cancelled(clean_up).await;
}

struct Housekeeping {
    databases: Databases,
    /// Whether targets that are older than their counts were counted since the start.
    has_counts: bool,
    /// Stored responses that were deleted since the last vacuum.
    unvacuumed: u64,
    last_vacuum: Option<Instant>,
}

impl Housekeeping {
    async fn clean_up(&mut self) -> Result<(), Error> {
        let pg = &self.databases.pg;
        loop {
            let deleted = timeout::long(idempotency::delete_expired(pg, BATCH_ROWS as i64)).await?;
            self.unvacuumed += deleted;
            if deleted < BATCH_ROWS {
                break;
            }
        }
        while timeout::long(rate_limits::delete_expired(pg, BATCH_ROWS as i64)).await? == BATCH_ROWS {}
        while timeout::long(post_days::compact(pg, BATCH_ROWS as i64)).await? == BATCH_ROWS {}
        if !self.has_counts {
            while timeout::long(target_counts::add_missing(pg, BATCH_ROWS as i64)).await? == BATCH_ROWS {}
            self.has_counts = true;
        }
        while timeout::long(target_counts::compact(pg, BATCH_ROWS as i64)).await? == BATCH_ROWS {}
        while timeout::long(ended_attempts::compact(pg, BATCH_ROWS as i64)).await? == BATCH_ROWS {}
        let now = self.databases.clock.now().await;
        while timeout::long(ended_attempts::delete_expired(pg, now, BATCH_ROWS as i64)).await? == BATCH_ROWS {
        }
        if self.unvacuumed > 0 && self.last_vacuum.is_none_or(|at| at.elapsed() >= VACUUM_INTERVAL) {
            vacuum::vacuum_table(pg, "idempotency_keys").await?;
            (self.unvacuumed, self.last_vacuum) = (0, Some(Instant::now()));
        }
        Ok(())
    }
}
