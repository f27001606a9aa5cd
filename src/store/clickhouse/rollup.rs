//! Reads for `tidemark rebuild` and `tidemark verify`, some subjects at a time: the rollup, its snapshots and the dimensions.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::RowCursor;
use clickhouse::{Client, Row, RowOwned, RowRead};
use serde::Deserialize;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::model::counters::{Counters, ROLLUP_COUNTERS, base_column, gain_column};
use crate::store::Error;
use crate::store::clickhouse::{client, cluster};
use crate::store::records::subjects::{self, AccountRecord, VideoRecord};

const TIMEOUT: Duration = Duration::from_secs(300);
/// No delivery number is this high.
const IMPOSSIBLE_VERSION: u64 = 1 << 62;
/// More deliveries than relays can number while the next number is raised.
const DELIVERY_MARGIN: i64 = 1_000;

/// One day of one subject in the rollup.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct StoredDay {
    pub subject_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    pub platform: String,
    /// In the order of `Counters::NAMES`, followers last.
    pub gains: Vec<Option<i64>>,
    pub bases: Vec<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
}

/// A snapshot of a video, or of a profile: then `video_id` is 0 and the only counter is followers.
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

/// The ids of all subjects of an organization in either store, ascending.
pub async fn list_subjects(pg: &PgPool, client: &Client, organization: Uuid) -> Result<Vec<i64>, Error> {
    let sql = "
        SELECT DISTINCT subject_id FROM
        (
            SELECT DISTINCT subject_id FROM video_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_daily WHERE org_id = {org:UUID}
        )";
    let in_clickhouse: Vec<u64> =
        client::fetch_all(client, sql, TIMEOUT, |query| query.param("org", organization)).await?;
    let mut ids: BTreeSet<_> = in_clickhouse.into_iter().map(u64::cast_signed).collect();
    ids.extend(subjects::list(pg, organization).await?);
    Ok(ids.into_iter().collect())
}

/// Streams the videos of subjects, ordered by internal id.
pub fn stream_videos(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<VideoRecord>, Error> {
    let sql = "
        SELECT video_id, id, subject_id, toString(platform) AS platform, posted_at, is_tracked FROM videos FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)} ORDER BY video_id";
    stream(client, sql, organization, subjects)
}

/// Streams the accounts among subjects, ordered by subject.
pub fn stream_accounts(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<AccountRecord>, Error> {
    let sql = "
        SELECT subject_id, id, toString(platform) AS platform, username, creator_id, is_active FROM accounts FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)} ORDER BY subject_id";
    stream(client, sql, organization, subjects)
}

/// Streams the rollup of subjects, ordered by subject and day.
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
    stream(client, &SELECT, organization, subjects)
}

/// Streams profile snapshots, ordered by subject and day.
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
    stream(client, sql, organization, subjects)
}

/// Streams video snapshots, ordered by subject, video and day.
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
    stream(client, &SELECT, organization, subjects)
}

/// The first day with an observation of each subject or one of its videos.
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
    let starts: Vec<Start> = client::fetch_all(client, sql, TIMEOUT, |query| {
        query.param("org", organization).param("subjects", subjects)
    })
    .await?;
    Ok(starts.into_iter().map(|Start { subject_id, date }| (subject_id, date)).collect())
}

/// The next row of a stream.
pub async fn next_row<T: RowOwned + RowRead>(rows: &mut RowCursor<T>) -> Result<Option<T>, Error> {
    client::next_row(rows, TIMEOUT).await
}

/// Raises the next delivery number above every version in an organization's rollup, including rows that no delivery wrote.
pub async fn outrank_stored_versions(pg: &PgPool, client: &Client, organization: Uuid) -> Result<(), Error> {
    let sql = "SELECT max(version) FROM account_daily WHERE org_id = {org:UUID}";
    let fetch_highest = || client::fetch_one(client, sql, TIMEOUT, |query| query.param("org", organization));
    let mut highest: u64 = fetch_highest().await?;
    if highest >= IMPOSSIBLE_VERSION {
        // No delivery wrote these rows, and none could replace them.
        let sql = "ALTER TABLE account_daily DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}";
        let delete = AssertSqlSafe(cluster::on_every_shard(client, sql)?);
        client::execute(client, delete, TIMEOUT, |query| {
            let query = query.with_setting("mutations_sync", "2");
            query.param("org", organization).param("first", IMPOSSIBLE_VERSION)
        })
        .await?;
        highest = fetch_highest().await?;
    }
    sqlx::query("select setval('deliveries', $1::bigint + $2) from deliveries where last_value < $1")
        .bind(highest.cast_signed())
        .bind(DELIVERY_MARGIN)
        .execute(pg)
        .await?;
    Ok(())
}

/// Streams the rows of a query over some subjects of an organization.
fn stream<T: RowOwned + RowRead>(
    client: &Client,
    sql: &'static str,
    organization: Uuid,
    subjects: &[i64],
) -> Result<RowCursor<T>, Error> {
    client::stream(client, sql, TIMEOUT, |query| query.param("org", organization).param("subjects", subjects))
}
