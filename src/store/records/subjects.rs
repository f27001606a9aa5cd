//! Subjects in Postgres: the accounts and individually tracked videos behind the subject ids of ClickHouse.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::store::Error;
use crate::store::clickhouse::history_writer::Subject;

/// A subject: an account, or a video tracked individually.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SubjectRecord {
    pub subject_id: i64,
    /// None for a video.
    pub account_id: Option<Uuid>,
    pub platform: String,
    pub username: Option<String>,
    pub tracked_since: Option<NaiveDate>,
}

/// A video as both databases store it, for comparison.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, Row, Deserialize)]
pub struct VideoRecord {
    #[sqlx(try_from = "i64")]
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    pub id: Uuid,
    #[sqlx(try_from = "i64")]
    pub subject_id: u64,
    pub platform: String,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros::option")]
    pub posted_at: Option<DateTime<Utc>>,
    pub media_type: Option<String>,
    pub is_tracked: bool,
    pub url: Option<String>,
    pub duration: Option<f64>,
    pub hashtags: Vec<String>,
    #[sqlx(json)]
    pub metadata: Metadata,
}

/// An account as both databases store it, for comparison.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow, Row, Deserialize)]
pub struct AccountRecord {
    #[sqlx(try_from = "i64")]
    pub subject_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    pub id: Uuid,
    pub platform: String,
    pub username: String,
    #[serde(with = "clickhouse::serde::uuid::option")]
    pub creator_id: Option<Uuid>,
    pub is_active: bool,
    pub category: Option<String>,
    pub is_verified: bool,
    #[sqlx(json)]
    pub metadata: Metadata,
}

/// Lists the ids of all subjects of an organization.
pub async fn list(pg: &PgPool, organization: Uuid) -> Result<Vec<i64>, Error> {
    Ok(sqlx::query_scalar(
        "select internal_id from accounts where organization_id = $1
         union select subject_id from videos where organization_id = $1",
    )
    .bind(organization)
    .fetch_all(pg)
    .await?)
}

/// Splits subjects into those that exist and those that do not.
pub async fn partition_by_existence(
    pg: &PgPool,
    subjects: BTreeSet<Subject>,
) -> Result<(Vec<Subject>, Vec<Subject>), Error> {
    if subjects.is_empty() {
        return Ok(Default::default());
    }
    let (organizations, ids): (Vec<_>, Vec<_>) = subjects.iter().copied().unzip();
    let existing: Vec<Subject> = sqlx::query_as(
        "select x.organization_id, x.subject_id from unnest($1::uuid[], $2::bigint[]) as x(organization_id, subject_id)
         where exists (select from accounts a
                       where a.organization_id = x.organization_id and a.internal_id = x.subject_id)
            or exists (select from videos v
                       where v.organization_id = x.organization_id and v.subject_id = x.subject_id
                         and v.account_id is null)",
    )
    .bind(organizations)
    .bind(ids)
    .fetch_all(pg)
    .await?;
    let existing: BTreeSet<_> = existing.into_iter().collect();
    Ok(subjects.into_iter().partition(|subject| existing.contains(subject)))
}

/// Lists the API ids of the accounts and the videos of subjects.
pub async fn list_record_ids(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<(Vec<Uuid>, Vec<Uuid>), Error> {
    let accounts =
        sqlx::query_scalar("select id from accounts where organization_id = $1 and internal_id = any($2)")
            .bind(organization)
            .bind(subjects)
            .fetch_all(pg)
            .await?;
    let videos = sqlx::query_scalar(
        "select v.id from accounts a join videos v on v.account_id = a.id
         where a.organization_id = $1 and a.internal_id = any($2)
         union all
         select id from videos where organization_id = $1 and subject_id = any($2) and account_id is null",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?;
    Ok((accounts, videos))
}

/// Reads subjects; those that do not exist are absent.
pub async fn fetch(pg: &PgPool, organization: Uuid, subjects: &[i64]) -> Result<Vec<SubjectRecord>, Error> {
    Ok(sqlx::query_as(
        "select internal_id as subject_id, id as account_id, platform, username, tracked_since
         from accounts where organization_id = $1 and internal_id = any($2)
         union all
         select subject_id, null, platform, null, tracked_since
         from videos where organization_id = $1 and subject_id = any($2) and account_id is null",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?)
}

/// Reads the videos of subjects, ordered by internal id.
pub async fn fetch_videos(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<VideoRecord>, Error> {
    Ok(sqlx::query_as(
        "select v.internal_id as video_id, v.id, v.subject_id, v.platform, v.create_time as posted_at, v.media_type,
             v.is_tracked, v.url, v.duration, coalesce(v.hashtags, '{}') as hashtags, v.metadata
         from accounts a join videos v on v.account_id = a.id
         where a.organization_id = $1 and a.internal_id = any($2)
         union all
         select internal_id, id, subject_id, platform, create_time, media_type, is_tracked, url, duration,
             coalesce(hashtags, '{}'), metadata
         from videos where organization_id = $1 and subject_id = any($2) and account_id is null
         order by video_id",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?)
}

/// Reads the accounts among subjects, ordered by internal id.
pub async fn fetch_accounts(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<AccountRecord>, Error> {
    Ok(sqlx::query_as(
        "select internal_id as subject_id, id, platform, username, creator_id, is_active, category, is_verified,
             metadata
         from accounts where organization_id = $1 and internal_id = any($2) order by internal_id",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?)
}

/// Finds videos by their internal ids, and posts of accounts among the subjects by their ids on the platform. Returns the
/// subject, the internal id and the id on the platform.
pub async fn find_known_videos(
    pg: &PgPool,
    organization: Uuid,
    videos: &[i64],
    subjects: &[i64],
    external_ids: &[&str],
) -> Result<Vec<(i64, i64, Option<String>)>, Error> {
    Ok(sqlx::query_as(
        "select subject_id, internal_id, external_id from videos
         where organization_id = $1 and internal_id = any($2)
         union
         select v.subject_id, v.internal_id, v.external_id from accounts a join videos v on v.account_id = a.id
         where a.organization_id = $1 and a.internal_id = any($3) and v.external_id = any($4)",
    )
    .bind(organization)
    .bind(videos)
    .bind(subjects)
    .bind(external_ids)
    .fetch_all(pg)
    .await?)
}
