//! The outbox as the relay works it off: deliveries are numbered and recorded before they are made, so that
//! whatever ClickHouse turns out to lack can be made again.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Error;
use super::event::{self, Event};

/// Outbox rows that reach ClickHouse together.
#[derive(Debug)]
pub struct Delivery {
    /// Counts up by one from the first delivery ever.
    pub number: i64,
    pub rows: Vec<Row>,
}

/// What one unit of work committed.
#[derive(Debug)]
pub struct Row {
    pub organization: Uuid,
    pub events: Vec<Event>,
}

#[derive(sqlx::FromRow)]
struct Stored {
    organization_id: Uuid,
    events: Vec<u8>,
}

/// Takes the relay's place for as long as the connection lives; false while another process has it.
pub async fn lead(connection: &mut PgConnection) -> Result<bool, Error> {
    let leads = sqlx::query_scalar("select pg_try_advisory_lock(hashtext('tidemark.relay'))")
        .fetch_one(connection)
        .await?;
    Ok(leads)
}

/// Whether some process has the relay's place.
pub async fn is_led(connection: &mut PgConnection) -> Result<bool, Error> {
    let is_led = sqlx::query_scalar(
        "select exists (
             select from pg_locks l join pg_database d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
                 and l.objid::bigint = hashtext('tidemark.relay')::bigint & 4294967295
         )",
    )
    .fetch_one(connection)
    .await?;
    Ok(is_led)
}

/// The last delivery that was numbered.
pub async fn last_delivery(pg: &PgPool) -> Result<i64, Error> {
    let last: Option<i64> = sqlx::query_scalar("select max(delivery) from outbox").fetch_one(pg).await?;
    Ok(last.unwrap_or(0))
}

/// Opens again every kept delivery after the one that ClickHouse has; says how many rows that makes.
pub async fn reopen_after(pg: &PgPool, delivery: i64) -> Result<u64, Error> {
    let reopened =
        sqlx::query("update outbox set applied_at = null where delivery > $1 and applied_at is not null")
            .bind(delivery)
            .execute(pg)
            .await?;
    Ok(reopened.rows_affected())
}

/// The next delivery: an unfinished one as it was numbered, else the oldest waiting rows, up to `bytes` of events.
/// Numbers go on from whatever is higher, the last one here or `known`, the last one that ClickHouse has.
pub async fn next(pg: &PgPool, known: i64, bytes: i64) -> Result<Option<Delivery>, Error> {
    let unfinished: Option<i64> = sqlx::query_scalar(
        "select min(delivery) from outbox where applied_at is null and delivery is not null",
    )
    .fetch_one(pg)
    .await?;
    let number = match unfinished {
        Some(number) => number,
        None => match number_next(pg, known, bytes).await? {
            Some(number) => number,
            None => return Ok(None),
        },
    };
    let stored: Vec<Stored> =
        sqlx::query_as("select organization_id, events from outbox where delivery = $1 order by position")
            .bind(number)
            .fetch_all(pg)
            .await?;
    let rows = stored
        .into_iter()
        .map(|row| Ok(Row { organization: row.organization_id, events: event::decode(&row.events)? }))
        .collect::<Result<_, Error>>()?;
    Ok(Some(Delivery { number, rows }))
}

async fn number_next(pg: &PgPool, known: i64, bytes: i64) -> Result<Option<i64>, Error> {
    let number = sqlx::query_scalar(
        "with waiting as (
            select position, length(events) as size from outbox
            where applied_at is null and delivery is null order by position limit 2000
         ), chosen as (
            select position from (
                select position, sum(size) over (order by position) - size as before from waiting
            ) sized where before < $1
         )
         update outbox o set delivery = greatest((select max(delivery) from outbox), $2) + 1
         from chosen where o.position = chosen.position
         returning o.delivery",
    )
    .bind(bytes)
    .bind(known)
    .fetch_all(pg)
    .await?
    .first()
    .copied();
    Ok(number)
}

/// Records that a delivery is visible in ClickHouse, and that what it removed no longer has to be left out.
pub async fn finish(pg: &PgPool, delivery: &Delivery) -> Result<(), Error> {
    let removed: (Vec<Uuid>, Vec<i64>) = delivery
        .rows
        .iter()
        .flat_map(|row| row.events.iter().map(move |event| (row.organization, event)))
        .filter_map(|(organization, event)| match event {
            Event::SubjectRemoved { subject_id, .. } => Some((organization, *subject_id)),
            _ => None,
        })
        .unzip();
    let mut transaction = pg.begin().await?;
    sqlx::query("update outbox set applied_at = now() where delivery = $1")
        .bind(delivery.number)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "delete from removed_subjects r using unnest($1::uuid[], $2::bigint[]) as x(organization_id, subject_id)
         where r.organization_id = x.organization_id and r.subject_id = x.subject_id",
    )
    .bind(removed.0)
    .bind(removed.1)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// Forgets delivered rows older than the time for which ClickHouse's loss can be made good.
pub async fn forget_delivered(pg: &PgPool) -> Result<u64, Error> {
    let forgotten = sqlx::query(
        "delete from outbox where applied_at < now() - interval '7 days'
            and delivery < (select max(delivery) from outbox)",
    )
    .execute(pg)
    .await?;
    Ok(forgotten.rows_affected())
}
