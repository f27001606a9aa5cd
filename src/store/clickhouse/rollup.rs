//! Statements of `tidemark rebuild` and `tidemark verify` over the rollups, their snapshots and the dimensions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, Row};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::counters::{Counters, ROLLUP_COUNTERS, VIDEO_ROLLUP_COUNTERS, base_column, gain_column};
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::outbox;
use crate::store::records::subjects::{self, AccountRecord, VideoRecord};

const TIMEOUT: Duration = Duration::from_secs(300);
/// Delivery numbers, which are the versions of rows, stay below this.
const FIRST_INVALID_VERSION: u64 = 1 << 62;
/// More deliveries than relays number while the sequence is advanced.
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

/// One day of one video in the rollup.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct StoredVideoDay {
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    pub platform: String,
    /// In the order of [`VIDEO_ROLLUP_COUNTERS`], 0 if unknown.
    pub gains: Vec<i64>,
}

/// The views of one video at the ages in [`STORED_AGES`](crate::model::ages::STORED_AGES).
#[derive(Debug, Clone, Row, Deserialize)]
pub struct StoredVideoAges {
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    pub id: Uuid,
    pub platform: String,
    pub media_type: Option<String>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub posted_at: DateTime<Utc>,
    pub views: Vec<Option<i64>>,
    /// Ages whose views are interpolated.
    pub interpolated: Vec<u8>,
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

/// A video of a subject with snapshots, a record, or both.
#[derive(Debug, Clone)]
pub struct StoredVideo {
    pub subject_id: i64,
    pub video_id: i64,
    /// That of its record.
    pub id: Option<Uuid>,
    /// Its id on the platform, if it has a record with one.
    pub external_id: Option<String>,
}

/// The ids of all subjects of an organization in either store, ascending.
pub async fn list_subjects(pg: &PgPool, client: &Client, organization: Uuid) -> Result<Vec<i64>, Error> {
    let sql = "
        SELECT DISTINCT subject_id FROM
        (
            SELECT DISTINCT subject_id FROM video_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_snapshots WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM account_daily WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM video_daily WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM video_ages WHERE org_id = {org:UUID}
            UNION ALL SELECT subject_id FROM accounts FINAL WHERE org_id = {org:UUID}
            UNION ALL SELECT DISTINCT subject_id FROM videos FINAL WHERE org_id = {org:UUID}
        )";
    let in_clickhouse: Vec<u64> =
        client::fetch_all(client, sql, TIMEOUT, |query| query.param("org", organization)).await?;
    let mut ids: BTreeSet<_> = in_clickhouse.into_iter().map(u64::cast_signed).collect();
    ids.extend(subjects::list(pg, organization).await?);
    Ok(ids.into_iter().collect())
}

/// Reads the rows of some subjects of an organization.
pub struct SubjectReader<'a> {
    pub client: &'a Client,
    pub organization: Uuid,
    pub subjects: Vec<i64>,
}

impl SubjectReader<'_> {
    /// The videos of the subjects.
    pub async fn fetch_videos(&self) -> Result<Vec<VideoRecord>, Error> {
        let sql = "
            SELECT video_id, id, subject_id, toString(platform) AS platform, posted_at, media_type, is_tracked, url,
                duration, hashtags, metadata
            FROM videos FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}";
        client::fetch_all(self.client, sql, TIMEOUT, |query| self.bind(query)).await
    }

    /// The videos that the subjects have snapshots or records of.
    pub async fn fetch_stored_videos(&self) -> Result<Vec<StoredVideo>, Error> {
        #[derive(Row, Deserialize)]
        struct StoredRecord {
            subject_id: u64,
            video_id: u64,
            #[serde(with = "clickhouse::serde::uuid")]
            id: Uuid,
            external_id: Option<String>,
        }
        let sql_of_snapshots = "
            SELECT DISTINCT subject_id, video_id FROM video_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}";
        let observed: Vec<(u64, u64)> =
            client::fetch_all(self.client, sql_of_snapshots, TIMEOUT, |query| self.bind(query)).await?;
        let sql = "
            SELECT subject_id, video_id, id, external_id FROM videos FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}";
        let records: Vec<StoredRecord> =
            client::fetch_all(self.client, sql, TIMEOUT, |query| self.bind(query)).await?;
        let records = records.into_iter().map(|record| ((record.subject_id, record.video_id), Some(record)));
        let mut videos: BTreeMap<_, _> = observed.into_iter().map(|key| (key, None)).collect();
        videos.extend(records);
        let video = |((subject, video), record): ((u64, u64), Option<StoredRecord>)| StoredVideo {
            subject_id: subject.cast_signed(),
            video_id: video.cast_signed(),
            id: record.as_ref().map(|found| found.id),
            external_id: record.and_then(|found| found.external_id),
        };
        Ok(videos.into_iter().map(video).collect())
    }

    /// The accounts among the subjects.
    pub async fn fetch_accounts(&self) -> Result<Vec<AccountRecord>, Error> {
        let sql = "
            SELECT subject_id, id, toString(platform) AS platform, username, creator_id, is_active, category,
                is_verified, metadata
            FROM accounts FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}";
        client::fetch_all(self.client, sql, TIMEOUT, |query| self.bind(query)).await
    }

    /// The days of the rollup.
    pub async fn fetch_days(&self) -> Result<Vec<StoredDay>, Error> {
        static SELECT: LazyLock<String> = LazyLock::new(|| {
            format!(
                "SELECT
                    subject_id, date, toString(platform) AS platform, [{}] AS gains, [{}] AS bases, observed_at
                FROM account_daily FINAL
                WHERE org_id = {{org:UUID}} AND subject_id IN {{subjects:Array(UInt64)}}",
                ROLLUP_COUNTERS.map(gain_column).join(", "),
                ROLLUP_COUNTERS.map(base_column).join(", ")
            )
        });
        client::fetch_all(self.client, SELECT.as_str(), TIMEOUT, |query| self.bind(query)).await
    }

    /// Calls `each` with the days of videos in the rollup.
    pub async fn for_each_video_day(&self, each: impl FnMut(StoredVideoDay)) -> Result<(), Error> {
        static SELECT: LazyLock<String> = LazyLock::new(|| {
            format!(
                "SELECT subject_id, video_id, date, toString(platform) AS platform, [{}] AS gains
                FROM video_daily FINAL
                WHERE org_id = {{org:UUID}} AND subject_id IN {{subjects:Array(UInt64)}}",
                VIDEO_ROLLUP_COUNTERS
                    .map(|counter| format!("ifNull({}, 0)", gain_column(counter)))
                    .join(", ")
            )
        });
        client::for_each(self.client, &SELECT, TIMEOUT, |query| self.bind(query), each).await
    }

    /// The views of videos at ages.
    pub async fn fetch_video_ages(&self) -> Result<Vec<StoredVideoAges>, Error> {
        let sql = "
            SELECT
                subject_id, video_id, id, toString(platform) AS platform,
                CAST(media_type, 'Nullable(String)') AS media_type, posted_at,
                [views_1, views_3, views_7, views_14, views_30] AS views, interpolated
            FROM video_ages FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}";
        client::fetch_all(self.client, sql, TIMEOUT, |query| self.bind(query)).await
    }

    /// Calls `each` with the profile snapshots, ordered by subject and day.
    pub async fn for_each_account_snapshot(&self, each: impl FnMut(StoredSnapshot)) -> Result<(), Error> {
        let sql = "
            SELECT subject_id, toUInt64(0) AS video_id, date, observed_at, [follower_count] AS counters
            FROM account_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
            ORDER BY subject_id, date";
        client::for_each(self.client, sql, TIMEOUT, |query| self.bind(query), each).await
    }

    /// Calls `each` with the video snapshots, ordered by subject, video and day.
    pub async fn for_each_video_snapshot(&self, each: impl FnMut(StoredSnapshot)) -> Result<(), Error> {
        static SELECT: LazyLock<String> = LazyLock::new(|| {
            format!(
                "SELECT subject_id, video_id, date, observed_at, [{}] AS counters
                FROM video_snapshots FINAL
                WHERE org_id = {{org:UUID}} AND subject_id IN {{subjects:Array(UInt64)}}
                ORDER BY subject_id, video_id, date",
                Counters::NAMES.join(", ")
            )
        });
        client::for_each(self.client, &SELECT, TIMEOUT, |query| self.bind(query), each).await
    }

    /// The first day with an observation of each subject or one of its videos.
    pub async fn fetch_tracking_starts(&self) -> Result<HashMap<u64, NaiveDate>, Error> {
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
        let starts: Vec<Start> =
            client::fetch_all(self.client, sql, TIMEOUT, |query| self.bind(query)).await?;
        Ok(starts.into_iter().map(|Start { subject_id, date }| (subject_id, date)).collect())
    }

    fn bind(&self, query: Query) -> Query {
        query.param("org", self.organization).param("subjects", &self.subjects)
    }
}

/// Advances the sequence of delivery numbers past every version in an organization's rollups, including rows that no delivery
/// wrote, so that the next delivery replaces them.
pub async fn advance_delivery_number(pg: &PgPool, client: &Client, organization: Uuid) -> Result<(), Error> {
    let mut highest = 0;
    for (max_version, delete_invalid) in [
        (
            "SELECT max(version) FROM account_daily WHERE org_id = {org:UUID}",
            "ALTER TABLE account_daily/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
             DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}",
        ),
        (
            "SELECT max(version) FROM video_daily WHERE org_id = {org:UUID}",
            "ALTER TABLE video_daily/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
             DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}",
        ),
        (
            "SELECT max(version) FROM video_ages WHERE org_id = {org:UUID}",
            "ALTER TABLE video_ages/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
             DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}",
        ),
    ] {
        let fetch_highest =
            || client::fetch_one(client, max_version, TIMEOUT, |query| query.param("org", organization));
        let mut highest_in_table: u64 = fetch_highest().await?;
        if highest_in_table >= FIRST_INVALID_VERSION {
            // No delivery wrote these rows, and none could replace them.
            client::execute(client, delete_invalid, TIMEOUT, |query| {
                let query = query.with_setting("mutations_sync", "2");
                query.param("org", organization).param("first", FIRST_INVALID_VERSION)
            })
            .await?;
            // No tombstone follows.
            outbox::invalidate_responses(pg, Some(organization)).await?;
            highest_in_table = fetch_highest().await?;
        }
        highest = highest.max(highest_in_table);
    }
    sqlx::query("select setval('deliveries', $1::bigint + $2) from deliveries where last_value < $1")
        .bind(highest.cast_signed())
        .bind(DELIVERY_MARGIN)
        .execute(pg)
        .await?;
    Ok(())
}
