//! The table `ended_attempts`, attempts per organization and minute of the last 24 hours:
//! [`finish_attempt`](super::targets::finish_attempt) appends a row, which `summed_table` merges into one per minute.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::summed_table::SummedTable;

pub static TABLE: SummedTable = SummedTable {
    name: "ended_attempts",
    key: &["minute", "organization_id"],
    numbers: &["succeeded", "failed"],
};

const COUNTED: TimeDelta = TimeDelta::hours(24);

/// Attempts of the last 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AttemptCounts {
    /// Attempts that read their account or video.
    #[schemars(example = 1_204)]
    pub succeeded: i64,
    /// Attempts that failed.
    #[schemars(example = 3)]
    pub failed: i64,
}

/// Returns the minute of a time.
pub(super) fn minute(time: DateTime<Utc>) -> DateTime<Utc> {
    time.duration_trunc(TimeDelta::minutes(1)).unwrap_or(time)
}

/// Counts an organization's attempts that ended within 24 hours before `now`, up to a minute more.
pub async fn count(pg: &PgPool, organization: Uuid, now: DateTime<Utc>) -> Result<AttemptCounts, Error> {
    let counts = sqlx::query_as(
        "select coalesce(sum(succeeded), 0)::bigint as succeeded, coalesce(sum(failed), 0)::bigint as failed
         from ended_attempts where organization_id = $1 and minute between $2 and $3",
    )
    .bind(organization)
    .bind(minute(now) - COUNTED)
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(counts)
}

/// Deletes up to `limit` sums that no longer count at `now`, and returns their number.
pub async fn delete_expired(pg: &PgPool, now: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = sqlx::query(
        "delete from ended_attempts where ctid = any(array(
             select ctid from ended_attempts where is_sum and minute < $1
             order by minute limit $2 for update skip locked))",
    )
    .bind(minute(now) - COUNTED)
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(deleted.rows_affected())
}
