//! What the rollups need of the records behind the snapshots, in their current state.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::super::batch::STATEMENT_TIMEOUT;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::with_timeout;

/// A video, or an account.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct Record {
    organization_id: Uuid,
    internal_id: i64,
    pub id: Uuid,
    pub platform: Platform,
    pub posted_at: Option<DateTime<Utc>>,
    pub media_type: Option<String>,
}

/// Records by organization and internal id.
pub(super) type Records = HashMap<(Uuid, i64), Record>;

pub(super) async fn fetch(pg: &PgPool, keys: Vec<(Uuid, i64)>) -> Result<Records, Error> {
    let (organizations, ids): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
    let select = sqlx::query_as(
        "with keys as materialized (
             select * from unnest($1::uuid[], $2::bigint[]) as x(organization_id, internal_id)
         )
         select v.organization_id, v.internal_id, v.id, v.platform, v.create_time as posted_at, v.media_type
         from keys join videos v using (organization_id, internal_id)
         union all
         select a.organization_id, a.internal_id, a.id, a.platform, null, null
         from keys join accounts a using (organization_id, internal_id)",
    )
    .bind(organizations)
    .bind(ids);
    let records: Vec<Record> = with_timeout(STATEMENT_TIMEOUT, select.fetch_all(pg)).await?;
    Ok(records.into_iter().map(|record| ((record.organization_id, record.internal_id), record)).collect())
}
