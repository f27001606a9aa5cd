//! How the relay goes on after either store has lost something: what ClickHouse lacks is opened again for as long as
//! the outbox keeps it, and what is kept no longer is named.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::{PgExecutor, PgPool};

use crate::store::Error;
use crate::store::clickhouse::history_writer::RecordedDelivery;
use crate::store::outbox::data_version;
use crate::store::postgres::Transaction;

/// How many rows are opened again, or forgotten, at a time.
const CHUNK: i64 = 20_000;

/// What was found when the relay began where ClickHouse stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Delivered rows that ClickHouse turned out to lack; they wait again.
    pub reopened: u64,
    /// The last position that was in an attempt which nobody finished, 0 without any.
    pub abandoned_position: i64,
    /// Whether ClickHouse has deliveries that Postgres does not remember.
    pub postgres_is_older: bool,
}

/// History that has to come back from a backup of ClickHouse: what was committed between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct MissingHistory {
    /// `None`: from the beginning.
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
            "clickhouse lacks history that was committed from {since} to {until}, and the outbox no longer keeps it: \
             restore a backup of clickhouse that was made after {until}"
        )
    }
}

/// The last number that Postgres remembers to have given to a delivery.
pub async fn last_delivery_number(pg: &PgPool) -> Result<i64, Error> {
    let remembered = sqlx::query_scalar(
        "select greatest((select last_value from deliveries), (select max(delivery) from outbox))",
    )
    .fetch_one(pg)
    .await?;
    Ok(remembered)
}

/// The last delivery that is known to be applied; 0 when there is none.
pub async fn last_applied_delivery(pg: impl PgExecutor<'_>) -> Result<i64, Error> {
    let applied = sqlx::query_scalar(
        "select greatest(
            0,
            (select max(delivery) from outbox where applied_at is not null),
            (select delivery from outbox_pruned))",
    )
    .fetch_one(pg)
    .await?;
    Ok(applied)
}

/// Goes on after the delivery that ClickHouse recorded last: everything after it waits again, removed subjects that it
/// may still show are left out again, and coming deliveries are numbered above everything that either store knows.
pub async fn resume(pg: &PgPool, recorded: RecordedDelivery) -> Result<Resumed, Error> {
    let has = recorded.number;
    let remembered = last_delivery_number(pg).await?;
    sqlx::query("select setval('deliveries', greatest($1, $2))")
        .bind(remembered)
        .bind(has.max(1))
        .execute(pg)
        .await?;
    record_missing_history(pg, recorded, remembered.max(has)).await?;
    let mut transaction = Transaction::begin(pg).await?;
    sqlx::query("update removed_subjects set delivery = null where delivery > $1")
        .bind(has)
        .execute(&mut *transaction)
        .await?;
    if last_applied_delivery(&mut *transaction).await? != has {
        data_version::increment_clickhouse_generation(&mut transaction).await?;
    }
    transaction.commit().await?;
    let mut reopened = 0;
    loop {
        let opened = sqlx::query(
            "update outbox set delivery = null, applied_at = null where position in (
                 select position from outbox where delivery > $1 and applied_at is not null limit $2
             )",
        )
        .bind(has)
        .bind(CHUNK)
        .execute(pg)
        .await?
        .rows_affected();
        if opened == 0 {
            break;
        }
        reopened += opened;
    }
    // Attempts that nobody finished. One may still be at work in ClickHouse: the next has a higher number.
    let abandoned_position = sqlx::query_scalar(
        "with abandoned as (
             update outbox set delivery = null where applied_at is null and delivery is not null returning position
         )
         select coalesce(max(position), 0) from abandoned",
    )
    .fetch_one(pg)
    .await?;
    Ok(Resumed { reopened, abandoned_position, postgres_is_older: has > remembered })
}

/// Lets no id be given again that ClickHouse holds history of, after Postgres was restored to a time before it was given.
pub async fn raise_id_sequence(pg: &PgPool, highest: i64) -> Result<(), Error> {
    sqlx::query("select setval('internal_ids', greatest(last_value, $1)) from internal_ids")
        .bind(highest)
        .execute(pg)
        .await?;
    Ok(())
}

/// Notes what was delivered after `recorded` and is not kept any more. Files that are older than a loss noticed before
/// do not have its gap.
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

/// What was delivered after `recorded` and is not kept any more.
pub async fn detect_missing_history(
    pg: impl PgExecutor<'_>,
    recorded: RecordedDelivery,
) -> Result<Option<MissingHistory>, Error> {
    let forgotten = sqlx::query_as(
        "select $2::timestamptz as since, applied_at as until from outbox_pruned where delivery > $1",
    )
    .bind(recorded.number)
    .bind(recorded.applied_at)
    .fetch_optional(pg)
    .await?;
    Ok(forgotten)
}

/// The history that has to come back from a backup of ClickHouse, as far as a relay has noticed.
pub async fn fetch_missing_history(pg: &PgPool) -> Result<Vec<MissingHistory>, Error> {
    let missing =
        sqlx::query_as("select since, until from missing_history order by until").fetch_all(pg).await?;
    Ok(missing)
}

/// Forgets delivered rows older than the time for which ClickHouse's loss can be made good, the oldest first and some at
/// a time, and says how many there were.
pub async fn prune_delivered(pg: &PgPool) -> Result<u64, Error> {
    let mut forgotten = 0;
    loop {
        match forget_some(pg).await? {
            0 => return Ok(forgotten),
            rows => forgotten += rows,
        }
    }
}

async fn forget_some(pg: &PgPool) -> Result<u64, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let (rows, delivery, applied_at): (i64, Option<i64>, Option<DateTime<Utc>>) = sqlx::query_as(
        "with forgotten as (
             delete from outbox where position = any(array(
                 select position from outbox where applied_at < now() - interval '7 days' order by applied_at limit $1
             )) returning delivery, applied_at
         )
         select count(*), max(delivery), max(applied_at) from forgotten",
    )
    .bind(CHUNK)
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
    Ok(rows.cast_unsigned())
}
