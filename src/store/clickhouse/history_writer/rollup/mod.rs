//! The rollups `account_daily`, `video_daily` and `video_ages`, computed from the snapshots.

mod days;
mod output;
mod queries;
mod recompute;
mod records;
mod rows;
mod sorted_rows;

use chrono::NaiveDate;
use clickhouse::Client;

use super::batch::{Subject, execute_in_batches};
use crate::store::Error;

pub use recompute::recompute;

/// Which days of a rollup a recompute writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeMode {
    /// Days whose numbers changed.
    ChangedDays,
    /// All days, and those that have lost their snapshots: replaces all rows of attempts with a lower number, even of one
    /// that is still running.
    AllDays,
}

/// What a recompute may assume, and what it writes.
#[derive(Debug, Clone, Copy)]
pub struct Recompute {
    /// No number of an earlier day has changed.
    pub since: NaiveDate,
    /// The version of its rows.
    pub delivery: i64,
    pub mode: RecomputeMode,
}

/// Removes the rollups of subjects, even if they have snapshots.
pub async fn clear_rollup(client: &Client, subjects: &[Subject], delivery: i64) -> Result<(), Error> {
    for sql in [
        include_str!("../clear_rollup.sql"),
        include_str!("../clear_videos.sql"),
        include_str!("../clear_ages.sql"),
    ] {
        execute_in_batches(client, sql, "subjects", subjects, Some(delivery)).await?;
    }
    Ok(())
}
