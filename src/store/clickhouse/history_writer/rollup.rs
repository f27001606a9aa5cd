//! The rollup `account_daily`, computed from the snapshots.

use clickhouse::Client;
use sqlx::AssertSqlSafe;

use super::batch::{STATEMENT_TIMEOUT, Subject, execute_in_batches};
use crate::store::Error;
use crate::store::clickhouse::{client, cluster};

/// Which days of the rollup a recompute writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeMode {
    /// Days whose numbers changed.
    ChangedDays,
    /// All days, and those that have lost their snapshots: replaces all rows of attempts with a lower number, even of one
    /// that is still running.
    AllDays,
}

/// Computes the daily gains of subjects from all their snapshots.
pub async fn recompute_rollup(
    client: &Client,
    subjects: &[Subject],
    delivery: i64,
    mode: RecomputeMode,
) -> Result<(), Error> {
    let sql = cluster::adapt_insert_select(client, include_str!("recompute.sql"))?;
    client::execute(client, AssertSqlSafe(sql), STATEMENT_TIMEOUT, |query| {
        query
            .param("subjects", subjects)
            .param("version", delivery)
            .param("all_days", mode == RecomputeMode::AllDays)
    })
    .await
}

/// Removes the rollup of subjects, even if they have snapshots.
pub async fn clear_rollup(client: &Client, subjects: &[Subject], delivery: i64) -> Result<(), Error> {
    execute_in_batches(client, include_str!("clear_rollup.sql"), "subjects", subjects, Some(delivery)).await
}
