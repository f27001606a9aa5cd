//! The rollups `account_daily`, `video_daily` and `video_ages`, computed from the snapshots.

use chrono::NaiveDate;
use clickhouse::Client;
use clickhouse::query::Query;

use super::batch::{STATEMENT_TIMEOUT, Subject, execute_in_batches};
use crate::store::Error;
use crate::store::clickhouse::client;

/// Reads snapshots in the order of their windows instead of sorting them, and keeps the smaller side of a join in memory, which
/// is the right one: a history of any length takes little memory.
const STREAMING_SETTINGS: [(&str, &str); 2] = [
    ("query_plan_reuse_storage_ordering_for_window_functions", "1"),
    ("query_plan_join_swap_table", "false"),
];

/// Which days of a rollup a recompute writes.
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
    client::execute(client, include_str!("recompute.sql"), STATEMENT_TIMEOUT, |query| {
        with_streaming(query)
            .param("subjects", subjects)
            .param("version", delivery)
            .param("all_days", mode == RecomputeMode::AllDays)
    })
    .await
}

/// Computes the rollups of the videos of subjects, after [`recompute_rollup`]: daily gains since a day before which none has
/// changed, and views at ages.
pub async fn recompute_videos(
    client: &Client,
    subjects: &[Subject],
    since: NaiveDate,
    delivery: i64,
    mode: RecomputeMode,
) -> Result<(), Error> {
    let all_days = mode == RecomputeMode::AllDays;
    for sql in [include_str!("recompute_videos.sql"), include_str!("recompute_ages.sql")] {
        client::execute(client, sql, STATEMENT_TIMEOUT, |query| {
            with_streaming(query)
                .param("subjects", subjects)
                .param("since", if all_days { NaiveDate::default() } else { since })
                .param("version", delivery)
                .param("all_days", all_days)
        })
        .await?;
    }
    Ok(())
}

fn with_streaming(query: Query) -> Query {
    STREAMING_SETTINGS.iter().fold(query, |query, (name, value)| query.with_setting(*name, *value))
}

/// Removes the rollups of subjects, even if they have snapshots.
pub async fn clear_rollup(client: &Client, subjects: &[Subject], delivery: i64) -> Result<(), Error> {
    for sql in
        [include_str!("clear_rollup.sql"), include_str!("clear_videos.sql"), include_str!("clear_ages.sql")]
    {
        execute_in_batches(client, sql, "subjects", subjects, Some(delivery)).await?;
    }
    Ok(())
}
