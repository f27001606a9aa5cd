//! Puts all records into the outbox once more, so that ClickHouse gets the columns that earlier versions did not write.
//!
//! The relay does it, not a migration: while that runs, the relay of the earlier version delivers.

use std::collections::BTreeMap;

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::outbox::event::Event;
use crate::store::{Error, Write, retry_on_conflict};

/// The columns of `schemas/0006_labels.sql`, in the table of finished changes.
const NAME: &str = "clickhouse_labels";
/// Records that are read at once. Those of one organization are put into the outbox in a unit of work.
const PAGE_RECORDS: i64 = 1_000;

/// The event of changed records.
type NewEvent = fn(Vec<Uuid>) -> Event;

const TABLES: [(&str, NewEvent); 3] = [
    ("select id, organization_id from creators where id > $1 order by id limit $2", Event::CreatorsChanged),
    ("select id, organization_id from accounts where id > $1 order by id limit $2", Event::AccountsChanged),
    ("select id, organization_id from videos where id > $1 order by id limit $2", Event::VideosChanged),
];

/// A new database has no records of an earlier version.
pub async fn skip_if_new(pg: &PgPool) -> Result<(), Error> {
    let is_new: bool =
        sqlx::query_scalar("select not exists (select from organizations)").fetch_one(pg).await?;
    if is_new { record_finished(pg).await } else { Ok(()) }
}

async fn record_finished(pg: &PgPool) -> Result<(), Error> {
    sqlx::query("insert into backfills (name, finished_at) values ($1, now()) on conflict do nothing")
        .bind(NAME)
        .execute(pg)
        .await?;
    Ok(())
}

/// How far it is. An interrupted one starts again.
#[derive(Debug)]
pub struct Rewrite {
    table: usize,
    last: Uuid,
}

impl Rewrite {
    /// None if it is finished.
    pub async fn start(pg: &PgPool) -> Result<Option<Self>, Error> {
        let finished = sqlx::query("select from backfills where name = $1").bind(NAME);
        let is_finished = finished.fetch_optional(pg).await?.is_some();
        Ok((!is_finished).then_some(Rewrite { table: 0, last: Uuid::nil() }))
    }

    /// Puts a page of records into the outbox. Returns false once there are no more.
    pub async fn step(&mut self, pg: &PgPool) -> Result<bool, Error> {
        let Some((select, event)) = TABLES.get(self.table) else {
            record_finished(pg).await?;
            return Ok(false);
        };
        let page: Vec<(Uuid, Uuid)> =
            sqlx::query_as(*select).bind(self.last).bind(PAGE_RECORDS).fetch_all(pg).await?;
        *self = match page.last() {
            Some((last, _)) => Rewrite { last: *last, ..*self },
            None => Rewrite { table: self.table + 1, last: Uuid::nil() },
        };
        let mut by_organization = BTreeMap::<Uuid, Vec<Uuid>>::new();
        for (id, organization) in page {
            by_organization.entry(organization).or_default().push(id);
        }
        for (organization, ids) in by_organization {
            let recorded = retry_on_conflict(async || {
                let mut write = Write::begin(pg, organization).await?;
                write.record_rewrite(event(ids.clone()));
                write.commit().await
            });
            match recorded.await {
                // Deleted meanwhile.
                Err(Error::NotFound(_)) => {}
                other => drop(other?),
            }
        }
        Ok(true)
    }
}
