//! The dimension tables in ClickHouse: what accounts, creators and videos are called and whose they are.
//!
//! A change names the record; its state is read from Postgres when it is brought, so bringing it twice, or later
//! than another change, ends the same. The number of the delivery decides which state stays.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use clickhouse::{Client, Row};
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;

/// Records of one organization whose state has to be brought.
#[derive(Debug, Default)]
pub struct Changed {
    pub accounts: BTreeSet<Uuid>,
    pub creators: BTreeSet<Uuid>,
    pub videos: BTreeSet<Uuid>,
}

/// Reads so many records from Postgres at a time.
const CHUNK: usize = 5_000;

#[derive(Row, Serialize, sqlx::FromRow)]
struct Account {
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
    #[sqlx(try_from = "i64")]
    version: u64,
}

#[derive(Row, Serialize, sqlx::FromRow)]
struct Creator {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    name: String,
    is_active: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    #[sqlx(try_from = "i64")]
    version: u64,
}

#[derive(Row, Serialize, sqlx::FromRow)]
struct Video {
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
    description: Option<String>,
    is_tracked: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    added_at: DateTime<Utc>,
    #[sqlx(try_from = "i64")]
    version: u64,
}

/// Brings the present state of changed records; those that are gone bring their own removal.
pub async fn bring(
    pg: &PgPool,
    client: &Client,
    organization: Uuid,
    changed: &Changed,
    version: i64,
) -> Result<(), Error> {
    for ids in chunks(&changed.creators) {
        let rows: Vec<Creator> = sqlx::query_as(
            "select organization_id as org_id, id, name, is_active, added_at, $3::bigint as version
             from creators where organization_id = $1 and id = any($2)",
        )
        .bind(organization)
        .bind(ids)
        .bind(version)
        .fetch_all(pg)
        .await?;
        insert(client, "creators", &rows).await?;
    }
    for ids in chunks(&changed.accounts) {
        let rows: Vec<Account> = sqlx::query_as(
            "select organization_id as org_id, internal_id as subject_id, id, platform, username, name, creator_id,
                    category, is_active, added_at, $3::bigint as version
             from accounts where organization_id = $1 and id = any($2)",
        )
        .bind(organization)
        .bind(ids)
        .bind(version)
        .fetch_all(pg)
        .await?;
        insert(client, "accounts", &rows).await?;
    }
    for ids in chunks(&changed.videos) {
        let rows: Vec<Video> = sqlx::query_as(
            "select organization_id as org_id, internal_id as video_id, id, subject_id, account_id, platform,
                    external_id, shortcode, create_time as posted_at, description, is_tracked, added_at,
                    $3::bigint as version
             from videos where organization_id = $1 and id = any($2)",
        )
        .bind(organization)
        .bind(ids)
        .bind(version)
        .fetch_all(pg)
        .await?;
        insert(client, "videos", &rows).await?;
    }
    Ok(())
}

fn chunks(ids: &BTreeSet<Uuid>) -> impl Iterator<Item = Vec<Uuid>> {
    let ids: Vec<_> = ids.iter().copied().collect();
    (0..ids.len()).step_by(CHUNK).map(move |start| ids[start..ids.len().min(start + CHUNK)].to_vec())
}

async fn insert<T>(client: &Client, table: &str, rows: &[T]) -> Result<(), Error>
where
    T: clickhouse::RowOwned + clickhouse::RowWrite,
{
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = client.insert::<T>(table).await?;
    for row in rows {
        insert.write(row).await?;
    }
    insert.end().await?;
    Ok(())
}

/// Removes an account from its table.
pub async fn remove_account(
    client: &Client,
    organization: Uuid,
    subject_id: i64,
    version: i64,
) -> Result<(), Error> {
    client
        .query_raw(include_str!("remove_account.sql"))
        .param("org", organization)
        .param("subject", subject_id)
        .param("version", version)
        .execute()
        .await?;
    Ok(())
}

/// Removes a video from its table.
pub async fn remove_video(
    client: &Client,
    organization: Uuid,
    video_id: i64,
    version: i64,
) -> Result<(), Error> {
    client
        .query_raw(include_str!("remove_video.sql"))
        .param("org", organization)
        .param("video", video_id)
        .param("version", version)
        .execute()
        .await?;
    Ok(())
}

/// Removes a creator from its table.
pub async fn remove_creator(
    client: &Client,
    organization: Uuid,
    id: Uuid,
    version: i64,
) -> Result<(), Error> {
    client
        .query_raw(include_str!("remove_creator.sql"))
        .param("org", organization)
        .param("id", id)
        .param("version", version)
        .execute()
        .await?;
    Ok(())
}
