//! Imports over HTTP, as clients see them. [`queue`] has what their processes do.

pub mod queue;

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::upload::{Import, UploadOptions};
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey,
};
use crate::store::{Error, Write};

/// How long a process counts as alive without a sign of life.
pub const LEASE: Duration = Duration::from_secs(30);
/// Imports of an organization that have not ended; each has a file.
pub const MAX_UNFINISHED: i64 = 20;

/// Lists of imports have no filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportFilter {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportSort {
    CreatedAt,
}

impl Sort for ImportSort {
    type Record = Import;

    fn column(self) -> SortColumn {
        SortColumn::required("u.created_at")
    }

    fn position(self, import: &Import) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(import.created_at), id: import.id }
    }
}

/// Selects the imports of `page`, which has their ids. One that was cancelled while it runs counts as ended.
const SELECT: &str =
    "select u.id, u.filename, (u.options->>'dry_run')::boolean as dry_run, u.rows_read, u.accounts,
    u.videos, u.snapshots_written, u.refused, u.findings, u.error, u.created_at,
    case when u.cancelled_at is null then u.status else 'cancelled' end as status,
    coalesce(u.cancelled_at, u.finished_at) as finished_at
    from page
    join uploads u on u.id = page.id";

/// Lists imports.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    page: &PageRequest<ImportSort>,
) -> Result<ListPage<Import>, Error> {
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("u.organization_id = ").push_bind(organization);
    };
    let list = List {
        table: "uploads u",
        id: "u.id",
        conditions,
        parents: None,
        sorted: None,
        text: None,
        tags: None,
        custom_plan: false,
    };
    let query = list.select_page(page, |query| _ = query.push(SELECT));
    list.fetch_page(pg, page, query).await
}

/// Reads one import.
pub async fn get(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<Import, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("with page as (select id from uploads where organization_id = ");
    query.push_bind(organization).push(" and id = ").push_bind(id).push(") ").push(SELECT);
    query.build_query_as().fetch_optional(pg).await?.ok_or(Error::NotFound("import"))
}

/// A file that a process took.
#[derive(Debug, Clone)]
pub struct NewUpload {
    pub id: Uuid,
    pub process: Uuid,
    pub filename: Option<String>,
    pub options: UploadOptions,
    /// When the file was complete, by the service's clock.
    pub received_at: DateTime<Utc>,
}

/// Queues the import of a file, unless the organization has too many. The organization stays locked until the commit.
pub async fn create(write: &mut Write, new: &NewUpload) -> Result<(), Error> {
    let organization = write.organization();
    sqlx::query("select from organizations where id = $1 for no key update")
        .bind(organization)
        .execute(write.connection())
        .await?;
    require_room(write.connection(), organization).await?;
    sqlx::query(
        "insert into uploads (id, organization_id, process_id, lease_until, filename, options, received_at, created_at)
         values ($1, $2, $3, now() + $4, $5, $6, $7, $8)",
    )
    .bind(new.id)
    .bind(organization)
    .bind(new.process)
    .bind(LEASE)
    .bind(&new.filename)
    .bind(Json(&new.options))
    .bind(new.received_at)
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Fails if too many imports of the organization have not ended.
pub async fn require_room(pg: impl PgExecutor<'_>, organization: Uuid) -> Result<(), Error> {
    let unfinished: i64 = sqlx::query_scalar(
        "select count(*) from uploads
         where organization_id = $1 and status in ('queued', 'running') and cancelled_at is null",
    )
    .bind(organization)
    .fetch_one(pg)
    .await?;
    if unfinished < MAX_UNFINISHED {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{MAX_UNFINISHED} imports of the organization have not ended: wait until one has, or cancel one"
    )))
}

/// Cancels an import that has not ended. One that runs is stopped soon by its process.
pub async fn cancel(write: &mut Write, id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    let sql = concat!(
        "update uploads set cancelled_at = $3,
            status = case status when 'queued' then 'cancelled' else status end,
            finished_at = case status when 'queued' then $3 end
         where organization_id = $1 and id = $2 and status in ('queued', 'running') and cancelled_at is null
         returning status = 'cancelled' as has_ended, ",
        queue::ended_columns!()
    );
    let cancelled: Option<CancelledUpload> = sqlx::query_as(sql)
        .bind(write.organization())
        .bind(id)
        .bind(Utc::now())
        .fetch_optional(write.connection())
        .await?;
    if let Some(CancelledUpload { upload, has_ended }) = cancelled {
        if let Some(event) = upload.into_event().filter(|_| has_ended) {
            write.record_event(event, now);
        }
        return Ok(());
    }
    let organization = write.organization();
    get(write.connection(), organization, id).await?;
    Err(Error::Conflict("the import has ended".to_owned()))
}

#[derive(sqlx::FromRow)]
struct CancelledUpload {
    #[sqlx(flatten)]
    upload: queue::EndedUpload,
    /// It was queued.
    has_ended: bool,
}
