//! Puts all records and subjects into the outbox once more, so that ClickHouse gets the columns that earlier versions did not
//! write.
//!
//! The relay does it, not a migration: while that runs, the relay of the earlier version delivers.

use std::collections::BTreeMap;

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::outbox::event::Event;
use crate::store::{Error, Write, retry_on_conflict};

/// The columns of `schemas/0006_labels.sql` and `0007_saved_gains.sql`, in the table of finished changes.
const NAME: &str = "clickhouse_saved_gains";

/// Records that are read in pages. Those of one organization are put into the outbox in a unit of work.
struct Table {
    /// Their ids, organizations and subjects, if they have one of their own.
    select: &'static str,
    changed: fn(Vec<Uuid>) -> Event,
    /// An account has many videos, whose whole history is read.
    page_records: i64,
}

const TABLES: [Table; 3] = [
    Table {
        select: "select id, organization_id, null::bigint from creators where id > $1 order by id limit $2",
        changed: Event::CreatorsChanged,
        page_records: 1_000,
    },
    Table {
        select: "select id, organization_id, internal_id from accounts where id > $1 order by id limit $2",
        changed: Event::AccountsChanged,
        page_records: 50,
    },
    Table {
        select: "select id, organization_id, case when account_id is null then subject_id end
                 from videos where id > $1 order by id limit $2",
        changed: Event::VideosChanged,
        page_records: 1_000,
    },
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
        let Some(Table { select, changed, page_records }) = TABLES.get(self.table) else {
            record_finished(pg).await?;
            return Ok(false);
        };
        let page: Vec<(Uuid, Uuid, Option<i64>)> =
            sqlx::query_as(*select).bind(self.last).bind(page_records).fetch_all(pg).await?;
        *self = match page.last() {
            Some((last, ..)) => Rewrite { last: *last, ..*self },
            None => Rewrite { table: self.table + 1, last: Uuid::nil() },
        };
        let mut by_organization = BTreeMap::<Uuid, (Vec<Uuid>, Vec<i64>)>::new();
        for (id, organization, subject) in page {
            let (ids, subjects) = by_organization.entry(organization).or_default();
            ids.push(id);
            subjects.extend(subject);
        }
        for (organization, (ids, subjects)) in by_organization {
            let recorded = retry_on_conflict(async || {
                let mut write = Write::begin(pg, organization).await?;
                write.record_rewrite([changed(ids.clone()), Event::SubjectsChanged(subjects.clone())]);
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
