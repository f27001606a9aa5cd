//! What `tidemark rebuild` and `tidemark verify` read, some subjects at a time: the rollup as it is stored, the facts
//! that it has to follow from, and what Postgres knows of the same subjects. What follows from what stands in
//! `crate::rollup`.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::{Query, RowCursor};
use clickhouse::{Client, Row};
use serde::Deserialize;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::model::counters::{Counters, ROLLUP_COUNTERS, base_column, gain_column};
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::clickhouse::cluster;
use crate::store::clickhouse::history_writer::Subject;

/// How long ClickHouse may take for one statement.
const LONGEST: Duration = Duration::from_secs(300);
/// No delivery ever has so high a number.
const IMPOSSIBLE: u64 = 1 << 62;
/// How far above the highest version of the rollup coming deliveries are numbered: further than others number meanwhile.
const MARGIN: i64 = 1_000;

/// One day of one subject in the rollup.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct StoredDay {
    pub subject_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    pub platform: String,
    /// In the order of the counters' names, followers last.
    pub gains: Vec<Option<i64>>,
    pub bases: Vec<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
}

/// A snapshot of a video, or of a profile where `video_id` is 0 and the only counter is the number of followers.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct StoredSnapshot {
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    pub counters: Vec<Option<i64>>,
}

/// What Postgres knows of a subject.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SubjectRecord {
    pub subject_id: i64,
    /// None: a video that is tracked on its own.
    pub account_id: Option<Uuid>,
    pub platform: String,
    pub username: Option<String>,
    pub tracked_since: Option<NaiveDate>,
}

/// What Postgres knows of a video, or the table `videos` of ClickHouse.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow, Row, Deserialize)]
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
    pub is_tracked: bool,
}

/// What Postgres knows of an account, or the table `accounts` of ClickHouse.
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
}

/// Every subject of an organization that either store knows, ascending.
pub async fn list_subjects(pg: &PgPool, client: &Client, organization: Uuid) -> Result<Vec<i64>, Error> {
    let sql = "
        SELECT DISTINCT subject_id FROM
        (
            SELECT DISTINCT subject_id FROM video_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_daily WHERE org_id = {org:UUID}
        )";
    let stored: Vec<u64> =
        client::fetch_all(client, sql, LONGEST, |query| query.param("org", organization)).await?;
    let mut subjects: BTreeSet<_> = stored.into_iter().map(u64::cast_signed).collect();
    let known: Vec<i64> = sqlx::query_scalar(
        "select internal_id from accounts where organization_id = $1
         union select subject_id from videos where organization_id = $1",
    )
    .bind(organization)
    .fetch_all(pg)
    .await?;
    subjects.extend(known);
    Ok(subjects.into_iter().collect())
}

/// Subjects apart: those that Postgres knows, and those that it does not.
pub async fn partition_by_existence(
    pg: &PgPool,
    subjects: BTreeSet<Subject>,
) -> Result<(Vec<Subject>, Vec<Subject>), Error> {
    if subjects.is_empty() {
        return Ok(Default::default());
    }
    let (organizations, ids): (Vec<_>, Vec<_>) = subjects.iter().copied().unzip();
    let known: Vec<Subject> = sqlx::query_as(
        "select x.organization_id, x.subject_id from unnest($1::uuid[], $2::bigint[]) as x(organization_id, subject_id)
         where exists (select from accounts a
                       where a.organization_id = x.organization_id and a.internal_id = x.subject_id)
            or exists (select from videos v
                       where v.organization_id = x.organization_id and v.subject_id = x.subject_id)",
    )
    .bind(organizations)
    .bind(ids)
    .fetch_all(pg)
    .await?;
    let known: BTreeSet<_> = known.into_iter().collect();
    Ok(subjects.into_iter().partition(|subject| known.contains(subject)))
}

/// The accounts and the videos of subjects, by their ids in the API.
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
    let videos =
        sqlx::query_scalar("select id from videos where organization_id = $1 and subject_id = any($2)")
            .bind(organization)
            .bind(subjects)
            .fetch_all(pg)
            .await?;
    Ok((accounts, videos))
}

/// What Postgres knows of subjects; those that it does not know are absent.
pub async fn fetch_subjects(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<SubjectRecord>, Error> {
    let known = sqlx::query_as(
        "select internal_id as subject_id, id as account_id, platform, username, tracked_since
         from accounts where organization_id = $1 and internal_id = any($2)
         union all
         select subject_id, null, platform, null, tracked_since
         from videos where organization_id = $1 and subject_id = any($2) and account_id is null",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?;
    Ok(known)
}

/// The videos of subjects as Postgres has them, by their internal ids.
pub async fn fetch_postgres_videos(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<VideoRecord>, Error> {
    let videos = sqlx::query_as(
        "select internal_id as video_id, id, subject_id, platform, create_time as posted_at, is_tracked
         from videos where organization_id = $1 and subject_id = any($2) order by internal_id",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?;
    Ok(videos)
}

/// The accounts among subjects as Postgres has them.
pub async fn fetch_postgres_accounts(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<AccountRecord>, Error> {
    let accounts = sqlx::query_as(
        "select internal_id as subject_id, id, platform, username, creator_id, is_active
         from accounts where organization_id = $1 and internal_id = any($2) order by internal_id",
    )
    .bind(organization)
    .bind(subjects)
    .fetch_all(pg)
    .await?;
    Ok(accounts)
}

/// The videos of subjects as ClickHouse has them, ascending.
pub fn stream_videos(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<VideoRecord>, Error> {
    let sql = "
        SELECT video_id, id, subject_id, toString(platform) AS platform, posted_at, is_tracked FROM videos FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)} ORDER BY video_id";
    Ok(stream(client, sql, organization, subjects).fetch()?)
}

/// The accounts among subjects as ClickHouse has them, ascending.
pub fn stream_accounts(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<AccountRecord>, Error> {
    let sql = "
        SELECT subject_id, id, toString(platform) AS platform, username, creator_id, is_active FROM accounts FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)} ORDER BY subject_id";
    Ok(stream(client, sql, organization, subjects).fetch()?)
}

/// The days of subjects in the rollup, by subject and day.
pub fn stream_days(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<StoredDay>, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT
                subject_id, date, toString(platform) AS platform, [{}] AS gains, [{}] AS bases, observed_at
            FROM account_daily FINAL
            WHERE org_id = {{org:UUID}} AND subject_id IN {{subjects:Array(UInt64)}}
            ORDER BY subject_id, date",
            ROLLUP_COUNTERS.map(gain_column).join(", "),
            ROLLUP_COUNTERS.map(base_column).join(", ")
        )
    });
    Ok(stream(client, &SELECT, organization, subjects).fetch()?)
}

/// The snapshots of profiles, by subject and day.
pub fn stream_account_snapshots(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<StoredSnapshot>, Error> {
    let sql = "
        SELECT subject_id, toUInt64(0) AS video_id, date, observed_at, [follower_count] AS counters
        FROM account_snapshots FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        ORDER BY subject_id, date";
    Ok(stream(client, sql, organization, subjects).fetch()?)
}

/// The snapshots of videos, by subject, video and day.
pub fn stream_video_snapshots(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<StoredSnapshot>, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT subject_id, video_id, date, observed_at, [{}] AS counters
            FROM video_snapshots FINAL
            WHERE org_id = {{org:UUID}} AND subject_id IN {{subjects:Array(UInt64)}}
            ORDER BY subject_id, video_id, date",
            Counters::NAMES.join(", ")
        )
    });
    Ok(stream(client, &SELECT, organization, subjects).fetch()?)
}

/// The first day on which each subject or one of its videos was observed.
pub async fn fetch_tracking_starts(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Vec<(u64, NaiveDate)>, Error> {
    #[derive(Row, Deserialize)]
    struct Start {
        subject_id: u64,
        #[serde(with = "clickhouse::serde::chrono::date")]
        date: NaiveDate,
    }
    let sql = "
        SELECT subject_id, min(day) AS date FROM
        (
            SELECT subject_id, date AS day FROM video_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
            UNION ALL
            SELECT subject_id, date AS day FROM account_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        )
        GROUP BY subject_id";
    let starts: Vec<Start> = client::fetch_all(client, sql, LONGEST, |query| {
        query.param("org", organization).param("subjects", subjects)
    })
    .await?;
    Ok(starts.into_iter().map(|Start { subject_id, date }| (subject_id, date)).collect())
}

/// The next row, unless ClickHouse falls silent.
pub async fn next_row<T: clickhouse::RowOwned + clickhouse::RowRead>(
    rows: &mut RowCursor<T>,
) -> Result<Option<T>, Error> {
    match tokio::time::timeout(LONGEST, rows.next()).await {
        Ok(row) => Ok(row?),
        Err(_) => Err(Error::Clickhouse(clickhouse::error::Error::TimedOut)),
    }
}

/// Sees to it that coming deliveries outrank everything that is in an organization's rollup, whoever wrote it there.
pub async fn outrank_stored_versions(pg: &PgPool, client: &Client, organization: Uuid) -> Result<(), Error> {
    let sql = "SELECT max(version) FROM account_daily WHERE org_id = {org:UUID}";
    let ask = || client::fetch_one(client, sql, LONGEST, |query| query.param("org", organization));
    let mut highest: u64 = ask().await?;
    if highest >= IMPOSSIBLE {
        // No delivery wrote such rows, and none could replace them.
        let delete =
            "ALTER TABLE account_daily DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}";
        let delete = AssertSqlSafe(cluster::on_every_shard(client, delete));
        client::execute(client, delete, LONGEST, |query| {
            query.with_setting("mutations_sync", "2").param("org", organization).param("first", IMPOSSIBLE)
        })
        .await?;
        highest = ask().await?;
    }
    sqlx::query("select setval('deliveries', $1::bigint + $2) from deliveries where last_value < $1")
        .bind(highest.cast_signed())
        .bind(MARGIN)
        .execute(pg)
        .await?;
    Ok(())
}

/// A statement over some subjects of an organization, whose rows are read as they come.
fn stream(client: &Client, sql: &'static str, organization: Uuid, subjects: &[i64]) -> Query {
    client
        .query_raw(sql)
        .with_setting("max_execution_time", LONGEST.as_secs().to_string())
        .param("org", organization)
        .param("subjects", subjects)
}
