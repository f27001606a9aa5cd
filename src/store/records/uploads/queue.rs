//! The queue of imports over HTTP: each API process loads the files that it took, one of an organization at a time among all
//! processes, and extends its lease. Imports of a process that does not are failed by any other.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use sqlx::types::Json;
use sqlx::{PgPool, Postgres};
use uuid::Uuid;

use super::LEASE;
use crate::failpoint;
use crate::model::event::{EventData, EventImport};
use crate::model::upload::{ImportResult, ImportStatus, ImportType, UploadOptions};
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::postgres::notifications::Topic;
use crate::store::records::events::{self, NewEvent};

/// Columns of [`EndedUpload`].
macro_rules! ended_columns {
    () => {
        "id, organization_id, filename, (options->>'dry_run')::boolean as dry_run, status, rows_read, snapshots_written,
            refused, error"
    };
}
pub(super) use ended_columns;

/// Why imports of a process that ended have failed.
pub const INTERRUPTED: &str = "interrupted, upload it again";

/// An import that a process begins.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ClaimedUpload {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub filename: Option<String>,
    #[sqlx(json)]
    pub options: UploadOptions,
    pub received_at: DateTime<Utc>,
}

/// Begins the oldest import of a process whose organization has none running. `None` if there is no such import.
pub async fn claim(pg: &PgPool, process: Uuid) -> Result<Option<ClaimedUpload>, Error> {
    let claimed = sqlx::query_as(
        "update uploads set status = 'running'
         where id = (
            select id from uploads u
            where process_id = $1 and status = 'queued' and not exists (
                select from uploads other where other.organization_id = u.organization_id and other.status = 'running'
            )
            order by created_at, id limit 1
            for update skip locked
         ) and status = 'queued'
         returning id, organization_id, filename, options, received_at",
    )
    .bind(process)
    .fetch_optional(pg)
    .await;
    match claimed {
        // Another process began one of the organization at the same time.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(None),
        claimed => {
            let claimed = claimed?;
            failpoint::reached("upload-claimed");
            Ok(claimed)
        }
    }
}

/// Extends the lease of a process, and returns its imports that have not ended.
pub async fn extend_lease(pg: &PgPool, process: Uuid) -> Result<HashSet<Uuid>, Error> {
    let unfinished: Vec<Uuid> = sqlx::query_scalar(
        "update uploads set lease_until = now() + $2
         where process_id = $1 and status in ('queued', 'running')
         returning id",
    )
    .bind(process)
    .bind(LEASE)
    .fetch_all(pg)
    .await?;
    Ok(unfinished.into_iter().collect())
}

/// Records how far a running import has come. Returns false if it has to stop: it was cancelled, its organization was
/// deleted, or this process counts as ended.
pub async fn record_progress(
    pg: &PgPool,
    id: Uuid,
    rows_read: u64,
    refused: u64,
    snapshots_written: u64,
) -> Result<bool, Error> {
    let continues: Option<bool> = sqlx::query_scalar(
        "update uploads set rows_read = $2, refused = $3, snapshots_written = $4
         where id = $1 and status = 'running'
         returning cancelled_at is null",
    )
    .bind(id)
    .bind(rows_read as i64)
    .bind(refused as i64)
    .bind(snapshots_written as i64)
    .fetch_optional(pg)
    .await?;
    Ok(continues.unwrap_or_default())
}

/// Ends a running import, as cancelled if a client cancelled it, otherwise by its error. Returns its status; `None` if it had
/// ended.
pub async fn finish(
    pg: &PgPool,
    id: Uuid,
    result: &ImportResult,
    now: DateTime<Utc>,
) -> Result<Option<ImportStatus>, Error> {
    let status = if result.error.is_some() { ImportStatus::Failed } else { ImportStatus::Succeeded };
    let sql = concat!(
        "update uploads set rows_read = $2, accounts = $3, videos = $4, snapshots_written = $5, refused = $6, findings = $7,
            status = case when cancelled_at is null then $8 else 'cancelled' end,
            error = case when cancelled_at is null then $9 end,
            finished_at = coalesce(cancelled_at, $10)
         where id = $1 and status = 'running'
         returning ",
        ended_columns!()
    );
    let update = sqlx::query_as(sql)
        .bind(id)
        .bind(result.rows_read as i64)
        .bind(result.accounts as i64)
        .bind(result.videos as i64)
        .bind(result.snapshots_written as i64)
        .bind(result.refused as i64)
        .bind(Json(&result.findings))
        .bind(status)
        .bind(&result.error)
        .bind(Utc::now());
    let ended = commit_end(pg, update, now).await?;
    failpoint::reached("upload-finished");
    Ok(ended)
}

/// Fails the imports of processes that no longer extend their lease, and those of `ending`, which ends. Returns their number.
pub async fn fail_interrupted(pg: &PgPool, ending: Option<Uuid>, now: DateTime<Utc>) -> Result<usize, Error> {
    let interrupted: Vec<Uuid> = sqlx::query_scalar(
        "select id from uploads
         where status in ('queued', 'running') and (lease_until < now() or process_id = $1) order by id",
    )
    .bind(ending)
    .fetch_all(pg)
    .await?;
    let sql = concat!(
        "update uploads set
            status = case when cancelled_at is null then 'failed' else 'cancelled' end,
            error = case when cancelled_at is null then $3 end,
            finished_at = coalesce(cancelled_at, $4)
         where id = $1 and status in ('queued', 'running') and (lease_until < now() or process_id = $2)
         returning ",
        ended_columns!()
    );
    let mut failed = 0;
    for id in interrupted {
        let update = sqlx::query_as(sql).bind(id).bind(ending).bind(INTERRUPTED).bind(Utc::now());
        failed += usize::from(commit_end(pg, update, now).await?.is_some());
        failpoint::reached("upload-failed");
    }
    Ok(failed)
}

/// Fails queued imports of this process whose files are gone.
pub async fn fail_lost(pg: &PgPool, lost: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    let sql = concat!(
        "update uploads set status = 'failed', error = $2, finished_at = $3 where id = $1 and status = 'queued'
         returning ",
        ended_columns!()
    );
    for id in lost {
        let update = sqlx::query_as(sql).bind(id).bind(INTERRUPTED).bind(Utc::now());
        commit_end(pg, update, now).await?;
    }
    Ok(())
}

/// An import that has ended.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct EndedUpload {
    id: Uuid,
    organization_id: Uuid,
    filename: Option<String>,
    dry_run: Option<bool>,
    status: ImportStatus,
    rows_read: i64,
    snapshots_written: i64,
    refused: i64,
    error: Option<String>,
}

impl EndedUpload {
    /// Returns the event; none for a dry run.
    pub(super) fn into_event(self) -> Option<NewEvent> {
        let EndedUpload { id, filename, status, rows_read, snapshots_written, refused, error, .. } = self;
        let r#type = ImportType::default();
        let import =
            EventImport { id, r#type, status, filename, rows_read, snapshots_written, refused, error };
        let data = EventData { import: Some(import), ..EventData::default() };
        (!self.dry_run.unwrap_or_default()).then(|| NewEvent::of_import(data))
    }
}

/// Runs an update that ends an import, and commits it with the event. Returns the status; `None` if nothing was updated.
async fn commit_end(
    pg: &PgPool,
    update: QueryAs<'_, Postgres, EndedUpload, PgArguments>,
    now: DateTime<Utc>,
) -> Result<Option<ImportStatus>, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let Some(ended) = update.fetch_optional(&mut *transaction).await? else { return Ok(None) };
    let (organization, status) = (ended.organization_id, ended.status);
    events::append(&mut transaction, organization, now, ended.into_event().into_iter().collect()).await?;
    transaction.commit_and_notify(Topic::Writes).await?;
    Ok(Some(status))
}

/// Deletes up to `limit` imports that ended over 30 days ago, and returns their number.
pub async fn delete_expired(pg: &PgPool, limit: i64) -> Result<u64, Error> {
    let deleted = sqlx::query(
        "delete from uploads where id in (
            select id from uploads
            where created_at <= now() - interval '30 days' and status not in ('queued', 'running')
            order by created_at limit $1 for update skip locked)",
    )
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(deleted.rows_affected())
}
