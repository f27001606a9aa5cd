//! The outbox as the relay works it off: waiting rows are put into a delivery, and marked once ClickHouse has it.
//!
//! Every attempt at a delivery has a number of its own, recorded here before it is made and in ClickHouse after it
//! is visible, which shows what either of them lacks (`recovery`). Who may deliver stands in `leadership`.

pub mod visibility;
pub mod data_version;
pub mod event;
mod relay_lock;
mod recovery;

use std::collections::BTreeMap;

use sqlx::PgPool;
use uuid::Uuid;

use self::event::{DecodeError, Event};
use crate::store::Error;
use crate::store::postgres::Transaction;

pub use recovery::{
    MissingHistory, Resumed, detect_missing_history, fetch_missing_history, last_applied_delivery,
    last_delivery_number, prune_delivered, raise_id_sequence, resume,
};
pub use relay_lock::{RelayLock, is_relay_running};

/// Outbox rows that reach ClickHouse together.
#[derive(Debug)]
pub struct Delivery {
    /// Higher than that of every delivery before.
    pub number: i64,
    /// The position of its first row.
    pub first_position: i64,
    /// In the order of their positions.
    pub rows: Vec<OutboxRow>,
}

/// What one unit of work committed.
#[derive(Debug)]
pub struct OutboxRow {
    pub organization: Uuid,
    pub events: Vec<Event>,
}

#[derive(sqlx::FromRow)]
struct Stored {
    delivery: i64,
    position: i64,
    organization_id: Uuid,
    events: Vec<u8>,
}

/// Organizations of which nothing is delivered from a position on, because the row there cannot be read: what
/// follows may rest on it. Others go on.
#[derive(Debug, Default)]
pub struct BlockedOrganizations(BTreeMap<Uuid, i64>);

impl BlockedOrganizations {
    fn hold(&mut self, row: &Stored, error: &DecodeError) {
        tracing::error!(
            position = row.position,
            organization = %row.organization_id,
            %error,
            "a row of the outbox cannot be read; nothing more of its organization is delivered until a version that can \
             read it runs, or the row is deleted"
        );
        self.0.insert(row.organization_id, row.position);
    }

    fn holds(&self, row: &Stored) -> bool {
        self.0.get(&row.organization_id).is_some_and(|position| *position <= row.position)
    }

    fn columns(&self) -> (Vec<Uuid>, Vec<i64>) {
        self.0.iter().map(|(organization, position)| (*organization, *position)).unzip()
    }

    /// Lets those go on whose row was deleted meanwhile.
    pub async fn unblock_deleted(&mut self, pg: &PgPool) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let positions: Vec<_> = self.0.values().copied().collect();
        let left: Vec<i64> = sqlx::query_scalar("select position from outbox where position = any($1)")
            .bind(positions)
            .fetch_all(pg)
            .await?;
        self.0.retain(|_, position| left.contains(position));
        Ok(())
    }
}

/// Up to how many rows are counted: there are most of them while ClickHouse is out, and nobody has to wait for their number.
pub const MAX_COUNTED_ROWS: i64 = 100_000;

/// What is committed and not in ClickHouse yet.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::FromRow)]
pub struct Backlog {
    /// At most [`MAX_COUNTED_ROWS`].
    pub rows: i64,
    /// How long the oldest row has waited; 0 when there is none.
    pub oldest_seconds: f64,
}

/// Counts what waits, of all organizations, up to [`MAX_COUNTED_ROWS`].
pub async fn fetch_backlog(pg: &PgPool) -> Result<Backlog, Error> {
    let waiting = sqlx::query_as(
        "select count(*) as rows,
                coalesce(extract(epoch from now() - (
                    select created_at from outbox where applied_at is null order by position limit 1
                )), 0)::float8 as oldest_seconds
         from (select from outbox where applied_at is null limit $1) waiting",
    )
    .bind(MAX_COUNTED_ROWS)
    .fetch_one(pg)
    .await?;
    Ok(waiting)
}

/// Puts the oldest waiting rows into a delivery, up to `bytes` of events.
pub async fn begin_delivery(
    pg: &PgPool,
    bytes: i64,
    held: &mut BlockedOrganizations,
) -> Result<Option<Delivery>, Error> {
    loop {
        let stored = number_next(pg, bytes, held).await?;
        let Some((number, first_position)) = stored.first().map(|row| (row.delivery, row.position)) else {
            return Ok(None);
        };
        let mut rows = Vec::with_capacity(stored.len());
        let mut left_out = Vec::new();
        for row in stored {
            match event::decode(&row.events) {
                Ok(_) if held.holds(&row) => left_out.push(row.position),
                Ok(events) => rows.push(OutboxRow { organization: row.organization_id, events }),
                Err(error) => {
                    if !held.holds(&row) {
                        held.hold(&row, &error);
                    }
                    left_out.push(row.position);
                }
            }
        }
        if !left_out.is_empty() {
            sqlx::query("update outbox set delivery = null where position = any($1)")
                .bind(left_out)
                .execute(pg)
                .await?;
        }
        if !rows.is_empty() {
            return Ok(Some(Delivery { number, first_position, rows }));
        }
    }
}

async fn number_next(pg: &PgPool, bytes: i64, held: &BlockedOrganizations) -> Result<Vec<Stored>, Error> {
    let (organizations, positions) = held.columns();
    let mut numbered: Vec<Stored> = sqlx::query_as(
        "with waiting as (
            select position, length(events) as size from outbox o
            where applied_at is null and delivery is null and not exists (
                select from unnest($2::uuid[], $3::bigint[]) as held(organization_id, since)
                where held.organization_id = o.organization_id and held.since <= o.position
            )
            order by position limit 2000
         ), chosen as (
            select position from (
                select position, sum(size) over (order by position) - size as before from waiting
            ) sized where before < $1
         ), number as materialized (
            select nextval('deliveries') as delivery where exists (select from chosen)
         )
         update outbox o set delivery = number.delivery from chosen, number where o.position = chosen.position
         returning o.delivery, o.position, o.organization_id, o.events",
    )
    .bind(bytes)
    .bind(organizations)
    .bind(positions)
    .fetch_all(pg)
    .await?;
    numbered.sort_unstable_by_key(|row| row.position);
    Ok(numbered)
}

/// Records that a delivery is visible in ClickHouse: what it removed no longer has to be left out, and answers that were
/// finished before it are old.
pub async fn finish_delivery(pg: &PgPool, delivery: &Delivery) -> Result<(), Error> {
    let removed: (Vec<Uuid>, Vec<i64>) = delivery
        .rows
        .iter()
        .flat_map(|row| row.events.iter().map(move |event| (row.organization, event)))
        .filter_map(|(organization, event)| match event {
            Event::SubjectRemoved { subject_id, .. } => Some((organization, *subject_id)),
            _ => None,
        })
        .unzip();
    let mut transaction = Transaction::begin(pg).await?;
    sqlx::query("update outbox set applied_at = now() where delivery = $1")
        .bind(delivery.number)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "update removed_subjects r set delivery = $3
         from unnest($1::uuid[], $2::bigint[]) as x(organization_id, subject_id)
         where r.organization_id = x.organization_id and r.subject_id = x.subject_id",
    )
    .bind(removed.0)
    .bind(removed.1)
    .bind(delivery.number)
    .execute(&mut *transaction)
    .await?;
    data_version::record_delivery(&mut transaction, delivery.number).await?;
    transaction.commit().await?;
    Ok(())
}
