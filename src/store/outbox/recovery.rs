//! Recovery of the relay after a store has lost data: deliveries that ClickHouse lacks are replayed from the outbox, and
//! history that the outbox no longer has is reported.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::store::Error;
use crate::store::clickhouse::history_writer::RecordedDelivery;
use crate::store::postgres::Transaction;

const BATCH_ROWS: i64 = 20_000;
/// Rows that are pruned at once. Nothing is delivered meanwhile.
pub const PRUNED_ROWS: i64 = 5_000;

/// The losses and unfinished attempts found when the relay resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// How many delivered rows ClickHouse lacks; they are pending again.
    pub reopened: u64,
    /// The last position of an unfinished attempt, 0 without any.
    pub abandoned_position: i64,
}

/// History that has to be restored from a backup of ClickHouse: changes committed between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct MissingHistory {
    /// `None` means since the first change.
    pub since: Option<DateTime<Utc>>,
    pub until: DateTime<Utc>,
}

impl fmt::Display for MissingHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let since = self.since.map_or_else(|| "the beginning".to_owned(), time);
        let until = time(self.until);
        write!(
            f,
            "clickhouse lacks history committed from {since} to {until} that the outbox no longer has: restore a backup of \
             clickhouse made after {until}"
        )
    }
}

/// Returns the highest delivery number that Postgres has assigned.
pub async fn last_delivery_number(pg: &PgPool) -> Result<i64, Error> {
    let number = sqlx::query_scalar(
        "select greatest((select last_value from deliveries), (select max(delivery) from outbox))",
    )
    .fetch_one(pg)
    .await?;
    Ok(number)
}

/// Returns the last delivery that is marked as applied, 0 without any.
pub async fn last_applied_delivery(pg: impl PgExecutor<'_>) -> Result<i64, Error> {
    let delivery = sqlx::query_scalar(
        "select greatest(
            0,
            (select max(delivery) from outbox where applied_at is not null),
            (select delivery from outbox_pruned))",
    )
    .fetch_one(pg)
    .await?;
    Ok(delivery)
}

/// Resumes after the last delivery that ClickHouse recorded: later rows are pending again, removed subjects that it may still
/// show are excluded again, and the next delivery number is above all that either store knows.
pub async fn resume(pg: &PgPool, recorded: RecordedDelivery) -> Result<Recovery, Error> {
    let last_number = last_delivery_number(pg).await?;
    sqlx::query("select setval('deliveries', greatest($1, $2))")
        .bind(last_number)
        .bind(recorded.number.max(1))
        .execute(pg)
        .await?;
    record_missing_history(pg, recorded, last_number.max(recorded.number)).await?;
    let mut transaction = Transaction::begin(pg).await?;
    sqlx::query("update removed_subjects set delivery = null where delivery > $1")
        .bind(recorded.number)
        .execute(&mut *transaction)
        .await?;
    if last_applied_delivery(&mut *transaction).await? != recorded.number {
        // ClickHouse's data was replaced.
        invalidate_responses(&mut *transaction, None).await?;
    }
    transaction.commit().await?;
    let reopened = reopen_rows(pg, recorded).await?;
    // Unfinished attempts. One may still be running in ClickHouse: the next attempt has a higher number.
    let abandoned_position = sqlx::query_scalar(
        "with abandoned as (
             update outbox set delivery = null where applied_at is null and delivery is not null returning position
         )
         select coalesce(max(position), 0) from abandoned",
    )
    .fetch_one(pg)
    .await?;
    Ok(Recovery { reopened, abandoned_position })
}

/// Makes cached responses and rollups outdated: an organization's, or all.
pub async fn invalidate_responses(pg: impl PgExecutor<'_>, organization: Option<Uuid>) -> Result<(), Error> {
    let sql = match organization {
        Some(_) => "update organizations set history_generation = history_generation + 1 where id = $1",
        None => "update clickhouse_generation set generation = generation + 1 where $1::uuid is null",
    };
    sqlx::query(sql).bind(organization).execute(pg).await?;
    Ok(())
}

/// Whether rows have the number of an attempt that was not finished.
pub async fn has_unfinished_rows(pg: &PgPool) -> Result<bool, Error> {
    let sql = "select exists (select from outbox where applied_at is null and delivery is not null)";
    Ok(sqlx::query_scalar(sql).fetch_one(pg).await?)
}

/// Makes rows that were applied after `recorded` pending again.
async fn reopen_rows(pg: &PgPool, recorded: RecordedDelivery) -> Result<u64, Error> {
    let mut reopened = 0;
    loop {
        let batch = sqlx::query(
            "update outbox set delivery = null, applied_at = null where position in (
                 select position from outbox where delivery > $1 and applied_at is not null limit $2
             )",
        )
        .bind(recorded.number)
        .bind(BATCH_ROWS)
        .execute(pg)
        .await?
        .rows_affected();
        if batch == 0 {
            return Ok(reopened);
        }
        reopened += batch;
    }
}

/// Prevents the reuse of ids that ClickHouse has history of, after an older Postgres was restored.
pub async fn raise_id_sequence(pg: &PgPool, highest: i64) -> Result<(), Error> {
    sqlx::query("select setval('internal_ids', greatest(last_value, $1)) from internal_ids")
        .bind(highest)
        .execute(pg)
        .await?;
    Ok(())
}

/// Records the history delivered after `recorded` that the outbox no longer has. ClickHouse data from before an earlier loss
/// does not have its gap.
async fn record_missing_history(pg: &PgPool, recorded: RecordedDelivery, last: i64) -> Result<(), Error> {
    let mut transaction = Transaction::begin(pg).await?;
    sqlx::query("delete from missing_history where detected_at_delivery >= $1")
        .bind(recorded.number)
        .execute(&mut *transaction)
        .await?;
    if let Some(MissingHistory { since, until }) = detect_missing_history(&mut *transaction, recorded).await?
    {
        sqlx::query("insert into missing_history (detected_at_delivery, since, until) values ($1, $2, $3)")
            .bind(last)
            .bind(since)
            .bind(until)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Returns the history delivered after `recorded` that the outbox no longer has.
pub async fn detect_missing_history(
    pg: impl PgExecutor<'_>,
    recorded: RecordedDelivery,
) -> Result<Option<MissingHistory>, Error> {
    let missing = sqlx::query_as(
        "select $2::timestamptz as since, applied_at as until from outbox_pruned where delivery > $1",
    )
    .bind(recorded.number)
    .bind(recorded.applied_at)
    .fetch_optional(pg)
    .await?;
    Ok(missing)
}

/// Returns the history that a relay has reported missing.
pub async fn fetch_missing_history(pg: &PgPool) -> Result<Vec<MissingHistory>, Error> {
    let missing =
        sqlx::query_as("select since, until from missing_history order by until").fetch_all(pg).await?;
    Ok(missing)
}

/// Deletes up to [`PRUNED_ROWS`] rows that were applied more than seven days ago, and returns their number.
pub async fn prune_delivered(pg: &PgPool) -> Result<i64, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let (rows, delivery, applied_at): (i64, Option<i64>, Option<DateTime<Utc>>) = sqlx::query_as(
        "with pruned as (
             delete from outbox where position = any(array(
                 select position from outbox where applied_at < now() - interval '7 days' order by applied_at limit $1
             )) returning delivery, applied_at
         )
         select count(*), max(delivery), max(applied_at) from pruned",
    )
    .bind(PRUNED_ROWS)
    .fetch_one(&mut *transaction)
    .await?;
    if let (Some(delivery), Some(applied_at)) = (delivery, applied_at) {
        sqlx::query(
            "insert into outbox_pruned (delivery, applied_at) values ($1, $2)
             on conflict (single) do update set
                delivery = greatest(outbox_pruned.delivery, excluded.delivery),
                applied_at = greatest(outbox_pruned.applied_at, excluded.applied_at)",
        )
        .bind(delivery)
        .bind(applied_at)
        .execute(&mut *transaction)
        .await?;
        sqlx::query("delete from removed_subjects where delivery <= $1")
            .bind(delivery)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(rows)
}
