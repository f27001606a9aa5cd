//! The outbox: events committed with each change, which the relay delivers to ClickHouse.
//!
//! Each attempt of a delivery has a new number, stored here before it starts and in ClickHouse when it is visible. Comparing
//! the numbers shows what either store has lost ([`recovery`]).

pub mod data_version;
pub mod event;
mod recovery;
pub mod unknown_history;
pub mod visibility;

use std::collections::BTreeMap;

use chrono::NaiveDate;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use self::event::{DecodeError, Event};
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::postgres::advisory_lock::{AdvisoryLock, LockName};
use crate::store::postgres::notifications::Topic;

pub use recovery::{
    MissingHistory, PRUNED_ROWS, Recovery, detect_missing_history, fetch_missing_history,
    has_unfinished_rows, invalidate_responses, last_applied_delivery, last_delivery_number, prune_delivered,
    resume,
};

/// The name of [`RelayLock`].
pub enum RelayLockName {}

impl LockName for RelayLockName {
    const NAME: &'static str = "tidemark.relay";
}

/// The lock of the relay: one process delivers at a time.
pub type RelayLock = AdvisoryLock<RelayLockName>;

/// Outbox rows that reach ClickHouse together.
#[derive(Debug)]
pub struct Delivery {
    /// Increases with every attempt.
    pub number: i64,
    pub first_position: i64,
    /// Ordered by position.
    pub rows: Vec<OutboxRow>,
}

/// The events of a unit of work.
#[derive(Debug)]
pub struct OutboxRow {
    pub organization: Uuid,
    /// The earliest day whose numbers the events change; `None` if they change none.
    pub since: Option<NaiveDate>,
    pub events: Vec<Event>,
}

#[derive(sqlx::FromRow)]
struct EncodedRow {
    delivery: i64,
    position: i64,
    organization_id: Uuid,
    since: Option<NaiveDate>,
    events: Vec<u8>,
}

/// Organizations with an unreadable row, and its position: later rows may depend on it and are not delivered.
#[derive(Debug, Default)]
pub struct BlockedOrganizations(BTreeMap<Uuid, i64>);

impl BlockedOrganizations {
    fn block(&mut self, row: &EncodedRow, error: &DecodeError) {
        tracing::error!(
            position = row.position,
            organization = %row.organization_id,
            %error,
            "cannot read an outbox row, pausing its organization: run a version that reads it, or delete the row"
        );
        self.0.insert(row.organization_id, row.position);
    }

    fn contains(&self, row: &EncodedRow) -> bool {
        self.0.get(&row.organization_id).is_some_and(|position| *position <= row.position)
    }

    /// Unblocks organizations whose row was deleted.
    pub async fn unblock_deleted(&mut self, pg: &PgPool) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let positions: Vec<_> = self.0.values().copied().collect();
        let remaining: Vec<i64> = sqlx::query_scalar("select position from outbox where position = any($1)")
            .bind(positions)
            .fetch_all(pg)
            .await?;
        self.0.retain(|_, position| remaining.contains(position));
        Ok(())
    }
}

/// Rows beyond this number are not counted: there may be many while ClickHouse is down.
pub const MAX_COUNTED_ROWS: i64 = 100_000;

/// The rows that are not in ClickHouse yet.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::FromRow)]
pub struct Backlog {
    /// At most [`MAX_COUNTED_ROWS`].
    pub rows: i64,
    /// The age of the oldest row, 0 without any.
    pub oldest_seconds: f64,
}

pub async fn fetch_backlog(pg: &PgPool) -> Result<Backlog, Error> {
    let backlog = sqlx::query_as(
        "select count(*) as rows,
                coalesce(extract(epoch from now() - (
                    select created_at from outbox where applied_at is null order by position limit 1
                )), 0)::float8 as oldest_seconds
         from (select from outbox where applied_at is null limit $1) waiting",
    )
    .bind(MAX_COUNTED_ROWS)
    .fetch_one(pg)
    .await?;
    Ok(backlog)
}

/// Assigns a delivery number to the oldest pending rows, up to `max_bytes` of events, and returns them.
///
/// The connection is that of the relay lock: a relay that lost it would number rows that the next one then leaves out, and
/// delivers after later ones.
pub async fn begin_delivery(
    connection: &mut PgConnection,
    max_bytes: i64,
    blocked: &mut BlockedOrganizations,
) -> Result<Option<Delivery>, Error> {
    loop {
        let encoded = assign_number(connection, max_bytes, blocked).await?;
        let Some(&EncodedRow { delivery: number, position: first_position, .. }) = encoded.first() else {
            return Ok(None);
        };
        let mut rows = Vec::with_capacity(encoded.len());
        let mut skipped = Vec::new();
        for row in encoded {
            match event::decode(&row.events) {
                Ok(_) if blocked.contains(&row) => skipped.push(row.position),
                Ok(events) => {
                    rows.push(OutboxRow { organization: row.organization_id, since: row.since, events });
                }
                Err(error) => {
                    if !blocked.contains(&row) {
                        blocked.block(&row, &error);
                    }
                    skipped.push(row.position);
                }
            }
        }
        if !skipped.is_empty() {
            sqlx::query("update outbox set delivery = null where position = any($1)")
                .bind(skipped)
                .execute(&mut *connection)
                .await?;
        }
        if !rows.is_empty() {
            return Ok(Some(Delivery { number, first_position, rows }));
        }
    }
}

async fn assign_number(
    connection: &mut PgConnection,
    max_bytes: i64,
    blocked: &BlockedOrganizations,
) -> Result<Vec<EncodedRow>, Error> {
    let (organizations, positions): (Vec<Uuid>, Vec<i64>) = blocked.0.iter().unzip();
    let mut numbered: Vec<EncodedRow> = sqlx::query_as(
        "with pending as (
            select position, length(events) as size from outbox o
            where applied_at is null and delivery is null and not exists (
                select from unnest($2::uuid[], $3::bigint[]) as blocked(organization_id, since)
                where blocked.organization_id = o.organization_id and blocked.since <= o.position
            )
            order by position limit 2000
         ), chosen as (
            select position from (
                select position, sum(size) over (order by position) - size as before from pending
            ) sized where before < $1
         ), number as materialized (
            select nextval('deliveries') as delivery where exists (select from chosen)
         )
         update outbox o set delivery = number.delivery from chosen, number where o.position = chosen.position
         returning o.delivery, o.position, o.organization_id, nullif(o.since, 'infinity') as since, o.events",
    )
    .bind(max_bytes)
    .bind(organizations)
    .bind(positions)
    .fetch_all(connection)
    .await?;
    numbered.sort_unstable_by_key(|row| row.position);
    Ok(numbered)
}

/// Marks a delivery as applied once ClickHouse shows it. Subjects that it removed need not be excluded any more, and
/// responses cached before it are outdated.
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
    transaction.commit_and_notify(Topic::Deliveries).await?;
    Ok(())
}
