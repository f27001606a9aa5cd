//! The dimension tables: accounts, creators, videos and collections in their current state.
//!
//! A change names the record only; its state is read from Postgres when it is written, so changes may be repeated and
//! arrive in any order. Of several rows of a record the one with the highest delivery number wins.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use clickhouse::{Client, Row, RowOwned, RowWrite};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgPool};
use uuid::Uuid;

use super::batch::{STATEMENT_TIMEOUT, Subject, execute_in_batches};
use crate::model::account::Metadata;
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::postgres::with_timeout;

/// Organization and id in the API.
pub type RecordKey = (Uuid, Uuid);

/// Records whose state has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedRecords {
    pub accounts: BTreeSet<RecordKey>,
    pub creators: BTreeSet<RecordKey>,
    pub videos: BTreeSet<RecordKey>,
    pub collections: BTreeSet<RecordKey>,
}

/// Deleted records; accounts and videos by their internal ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemovedRecords {
    pub accounts: Vec<Subject>,
    pub creators: Vec<RecordKey>,
    pub videos: Vec<(Uuid, i64)>,
}

/// Records per query to Postgres and per insert.
const MAX_BATCH_ROWS: usize = 20_000;

#[derive(Row, Serialize, FromRow)]
struct AccountRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    #[sqlx(try_from = "i64")]
    subject_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    platform: String,
    username: String,
    name: Option<String>,
    #[serde(with = "clickhouse::serde::uuid::option")]
    creator_id: Option<Uuid>,
    category: Option<String>,
    is_active: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    is_verified: bool,
    #[sqlx(json)]
    metadata: Metadata,
    #[sqlx(try_from = "i64")]
    version: u64,
}

#[derive(Row, Serialize, FromRow)]
struct CreatorRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    name: String,
    is_active: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    #[sqlx(json)]
    metadata: Metadata,
    #[sqlx(try_from = "i64")]
    version: u64,
}

#[derive(Row, Serialize, FromRow)]
struct VideoRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    #[sqlx(try_from = "i64")]
    video_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    #[sqlx(try_from = "i64")]
    subject_id: u64,
    #[serde(with = "clickhouse::serde::uuid::option")]
    account_id: Option<Uuid>,
    platform: String,
    external_id: Option<String>,
    shortcode: Option<String>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros::option")]
    posted_at: Option<DateTime<Utc>>,
    media_type: Option<String>,
    description: Option<String>,
    is_tracked: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    url: Option<String>,
    duration: Option<f64>,
    hashtags: Vec<String>,
    #[sqlx(json)]
    metadata: Metadata,
    #[sqlx(try_from = "i64")]
    version: u64,
}

#[derive(Row, Serialize, FromRow)]
struct CollectionRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    name: String,
    description: Option<String>,
    rule: Option<String>,
    #[sqlx(try_from = "Vec<i64>")]
    included: VideoIds,
    #[sqlx(try_from = "Vec<i64>")]
    excluded: VideoIds,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    #[sqlx(try_from = "i64")]
    version: u64,
    #[sqlx(try_from = "i16")]
    is_deleted: u8,
}

/// Internal ids of videos.
#[derive(Serialize)]
struct VideoIds(Vec<u64>);

impl From<Vec<i64>> for VideoIds {
    fn from(ids: Vec<i64>) -> Self {
        VideoIds(ids.into_iter().map(i64::cast_unsigned).collect())
    }
}

/// A collection that does not exist any more has a row that says so.
const SELECT_COLLECTIONS: &str = "
    select x.organization_id as org_id, x.id, coalesce(r.name, '') as name, r.description, r.rule::text,
           array(select v.internal_id from collection_marks m join videos v on v.id = m.video_id
                 where m.collection_id = r.id and m.state = 'included' order by v.internal_id) as included,
           array(select v.internal_id from collection_marks m join videos v on v.id = m.video_id
                 where m.collection_id = r.id and m.state = 'excluded' order by v.internal_id) as excluded,
           coalesce(r.added_at, 'epoch') as added_at, $3::bigint as version,
           (r.id is null)::int::smallint as is_deleted
    from unnest($1::uuid[], $2::uuid[]) as x(organization_id, id)
    left join collections r on r.organization_id = x.organization_id and r.id = x.id";

/// Writes the current state of changed records. Deleted accounts, creators and videos are skipped: [`remove`] removes them.
pub async fn write_changed(
    pg: &PgPool,
    client: &Client,
    changed: &ChangedRecords,
    delivery: i64,
) -> Result<(), Error> {
    tokio::try_join!(
        write_table::<CreatorRow>(
            pg,
            client,
            "creators",
            "select r.organization_id as org_id, r.id, r.name, r.is_active, r.added_at, r.metadata, $3::bigint as version
             from unnest($1::uuid[], $2::uuid[]) as x(organization_id, id)
             join creators r on r.organization_id = x.organization_id and r.id = x.id",
            &changed.creators,
            delivery,
        ),
        write_table::<AccountRow>(
            pg,
            client,
            "accounts",
            "select r.organization_id as org_id, r.internal_id as subject_id, r.id, r.platform, r.username, r.name,
                    r.creator_id, r.category, r.is_active, r.added_at, r.is_verified, r.metadata,
                    $3::bigint as version
             from unnest($1::uuid[], $2::uuid[]) as x(organization_id, id)
             join accounts r on r.organization_id = x.organization_id and r.id = x.id",
            &changed.accounts,
            delivery,
        ),
        write_table::<VideoRow>(
            pg,
            client,
            "videos",
            "select r.organization_id as org_id, r.internal_id as video_id, r.id, r.subject_id, r.account_id,
                    r.platform, r.external_id, coalesce(r.whole_shortcode, r.shortcode) as shortcode,
                    r.create_time as posted_at, r.media_type, r.description, r.is_tracked, r.added_at, r.url, r.duration,
                    coalesce(r.hashtags, '{}') as hashtags, r.metadata, $3::bigint as version
             from unnest($1::uuid[], $2::uuid[]) as x(organization_id, id)
             join videos r on r.organization_id = x.organization_id and r.id = x.id",
            &changed.videos,
            delivery,
        ),
        write_table::<CollectionRow>(
            pg,
            client,
            "collections",
            SELECT_COLLECTIONS,
            &changed.collections,
            delivery,
        ),
    )?;
    Ok(())
}

async fn write_table<T>(
    pg: &PgPool,
    client: &Client,
    table: &str,
    select: &'static str,
    records: &BTreeSet<RecordKey>,
    delivery: i64,
) -> Result<(), Error>
where
    T: for<'r> FromRow<'r, PgRow> + RowOwned + RowWrite + Send + Unpin,
{
    let records: Vec<_> = records.iter().copied().collect();
    for batch in records.chunks(MAX_BATCH_ROWS) {
        let (organizations, ids): (Vec<_>, Vec<_>) = batch.iter().copied().unzip();
        let select = sqlx::query_as(select).bind(organizations).bind(ids).bind(delivery);
        let rows: Vec<T> = with_timeout(STATEMENT_TIMEOUT, select.fetch_all(pg)).await?;
        client::insert(client, table, &rows, STATEMENT_TIMEOUT).await?;
    }
    Ok(())
}

/// Removes records from their tables.
pub async fn remove(client: &Client, removed: &RemovedRecords, delivery: i64) -> Result<(), Error> {
    let RemovedRecords { accounts, creators, videos } = removed;
    let version = Some(delivery);
    execute_in_batches(client, include_str!("remove_accounts.sql"), "accounts", accounts, version).await?;
    execute_in_batches(client, include_str!("remove_creators.sql"), "creators", creators, version).await?;
    execute_in_batches(client, include_str!("remove_videos.sql"), "videos", videos, version).await
}

/// The highest internal id of an account or video, including deleted ones until a purge removes them.
pub async fn highest_id(client: &Client) -> Result<i64, Error> {
    let sql = "select max(id) from (
                   select max(subject_id) as id from accounts
                   union all select max(greatest(subject_id, video_id)) from videos)";
    let highest: u64 = client::fetch_one(client, sql, STATEMENT_TIMEOUT, |query| query).await?;
    Ok(highest.cast_signed())
}
