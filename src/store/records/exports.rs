//! Reads an organization's data for an export, a page at a time: records from Postgres, snapshots from ClickHouse.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, Row, RowOwned, RowRead};
use serde::Deserialize;
use sqlx::PgPool;
use sqlx::types::Json;
use uuid::Uuid;

use crate::model::latest::{AccountLatest, AccountValues, KnownAt, VideoLatest, VideoValues};
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::clickhouse::client;

const SNAPSHOTS_TIMEOUT: Duration = Duration::from_secs(120);

/// An account with its latest values.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ExportedAccount {
    pub id: Uuid,
    #[sqlx(rename = "internal_id")]
    pub subject_id: i64,
    pub platform: Platform,
    pub username: String,
    pub added_at: DateTime<Utc>,
    pub total_post_count: i64,
    pub category: Option<String>,
    pub creator: Option<String>,
    /// Whether another account of the organization now has the username.
    pub username_is_reused: bool,
    name: Option<String>,
    description: Option<String>,
    is_verified: bool,
    follower_count: i64,
    following_count: i64,
    profile_post_count: i64,
    observed_at: Option<DateTime<Utc>>,
    known_at: Option<Json<KnownAt>>,
}

impl ExportedAccount {
    pub fn latest(&self) -> AccountLatest {
        AccountLatest::restore(
            &self.known_at.as_ref().map(|known_at| known_at.0.clone()).unwrap_or_default(),
            self.observed_at,
            AccountValues {
                name: self.name.clone(),
                description: self.description.clone(),
                is_verified: Some(self.is_verified),
                follower_count: Some(self.follower_count),
                following_count: Some(self.following_count),
                profile_post_count: Some(self.profile_post_count),
                ..AccountValues::default()
            },
        )
    }
}

/// A video with its latest values.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ExportedVideo {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    pub platform: Platform,
    pub external_id: Option<String>,
    pub account_id: Option<Uuid>,
    pub is_tracked: bool,
    pub added_at: DateTime<Utc>,
    pub tracked_at: Option<DateTime<Utc>>,
    pub observed_at: Option<DateTime<Utc>>,
    pub create_time: Option<DateTime<Utc>>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub duration: Option<f64>,
    view_count: i64,
    like_count: i64,
    comment_count: i64,
    share_count: i64,
    saved_count: Option<i64>,
    play_count: i64,
    ig_play_count: Option<i64>,
    fb_play_count: Option<i64>,
    fb_like_count: Option<i64>,
    known_at: Option<Json<KnownAt>>,
}

impl ExportedVideo {
    pub fn latest(&self) -> VideoLatest {
        VideoLatest::restore(
            &self.known_at.as_ref().map(|known_at| known_at.0.clone()).unwrap_or_default(),
            self.observed_at,
            VideoValues {
                view_count: Some(self.view_count),
                like_count: Some(self.like_count),
                comment_count: Some(self.comment_count),
                share_count: Some(self.share_count),
                saved_count: self.saved_count,
                play_count: Some(self.play_count),
                ig_play_count: self.ig_play_count,
                fb_play_count: self.fb_play_count,
                fb_like_count: self.fb_like_count,
                ..VideoValues::default()
            },
        )
    }
}

pub async fn count_videos(pg: &PgPool, organization: Uuid) -> Result<i64, Error> {
    let count = sqlx::query_scalar("select count(*) from videos where organization_id = $1")
        .bind(organization)
        .fetch_one(pg)
        .await?;
    Ok(count)
}

/// Returns the next accounts by username and id.
pub async fn fetch_accounts(
    pg: &PgPool,
    organization: Uuid,
    after: (&str, Uuid),
    limit: i64,
) -> Result<Vec<ExportedAccount>, Error> {
    let accounts = sqlx::query_as(
        "select a.id, a.internal_id, a.platform, a.username, a.added_at, a.total_post_count, a.category,
                c.name as creator, a.name, a.description, a.is_verified, a.follower_count, a.following_count,
                a.profile_post_count, a.observed_at, a.known_at,
                not a.holds_username and exists (
                    select from accounts o where o.organization_id = $1 and o.platform = a.platform
                        and o.username = a.username and o.id <> a.id
                ) as username_is_reused
         from accounts a left join creators c on c.id = a.creator_id
         where a.organization_id = $1 and (a.username, a.id) > ($2, $3)
         order by a.username, a.id limit $4",
    )
    .bind(organization)
    .bind(after.0)
    .bind(after.1)
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(accounts)
}

/// A query of videos with the given condition and order.
macro_rules! select_videos {
    ($condition:literal) => {
        concat!(
            "select id, internal_id, subject_id, platform, external_id, account_id, is_tracked, added_at, tracked_at,
                observed_at, create_time, description, media_type, duration, view_count, like_count, comment_count,
                share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count, known_at
             from videos where ",
            $condition
        )
    };
}

/// Returns the internal ids of the videos of accounts, ascending. No index has this order within an account, so they are
/// read at once instead of in pages.
pub async fn fetch_video_ids(pg: &PgPool, organization: Uuid, accounts: &[Uuid]) -> Result<Vec<i64>, Error> {
    let ids = sqlx::query_scalar(
        "select internal_id from videos where organization_id = $1 and account_id = any($2) order by internal_id",
    )
    .bind(organization)
    .bind(accounts)
    .fetch_all(pg)
    .await?;
    Ok(ids)
}

/// Returns those of the given videos that are still on one of the accounts, by internal id.
pub async fn fetch_account_videos(
    pg: &PgPool,
    organization: Uuid,
    accounts: &[Uuid],
    ids: &[i64],
) -> Result<Vec<ExportedVideo>, Error> {
    let videos = sqlx::query_as(select_videos!(
        "organization_id = $1 and account_id = any($2) and internal_id = any($3) order by internal_id"
    ))
    .bind(organization)
    .bind(accounts)
    .bind(ids)
    .fetch_all(pg)
    .await?;
    Ok(videos)
}

/// Returns the next individually tracked videos without an account, by the time when tracking started.
pub async fn fetch_individual_videos(
    pg: &PgPool,
    organization: Uuid,
    after: (DateTime<Utc>, Uuid),
    limit: i64,
) -> Result<Vec<ExportedVideo>, Error> {
    let videos = sqlx::query_as(select_videos!(
        "organization_id = $1 and is_tracked and account_id is null and (tracked_at, id) > ($2, $3)
         order by tracked_at, id limit $4"
    ))
    .bind(organization)
    .bind(after.0)
    .bind(after.1)
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(videos)
}

/// The counters of a video on a day.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct VideoSnapshotRow {
    video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    /// In the order of the counters' names.
    pub counters: Vec<Option<i64>>,
}

/// The counters of an account on a day.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct AccountSnapshotRow {
    subject_id: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    pub follower_count: Option<i64>,
    pub following_count: Option<i64>,
    pub profile_post_count: Option<i64>,
}

/// Returns the snapshots of videos by internal id, in the order of days.
pub async fn fetch_video_snapshots(
    client: &Client,
    organization: Uuid,
    videos: &[ExportedVideo],
) -> Result<HashMap<i64, Vec<VideoSnapshotRow>>, Error> {
    if videos.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
    let rows: Vec<VideoSnapshotRow> = fetch_snapshots(
        client,
        "SELECT video_id, observed_at,
            [view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count,
             fb_play_count, fb_like_count] AS counters
         FROM video_snapshots FINAL
         WHERE org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
         ORDER BY video_id, date",
        |query| query.param("org", organization).param("videos", keys),
    )
    .await?;
    let mut snapshots: HashMap<i64, Vec<VideoSnapshotRow>> = HashMap::new();
    for row in rows {
        snapshots.entry(row.video_id.cast_signed()).or_default().push(row);
    }
    Ok(snapshots)
}

/// Returns the snapshots of accounts by internal id, in the order of days.
pub async fn fetch_account_snapshots(
    client: &Client,
    organization: Uuid,
    subjects: &HashSet<i64>,
) -> Result<HashMap<i64, Vec<AccountSnapshotRow>>, Error> {
    if subjects.is_empty() {
        return Ok(HashMap::new());
    }
    let subjects: Vec<_> = subjects.iter().collect();
    let rows: Vec<AccountSnapshotRow> = fetch_snapshots(
        client,
        "SELECT subject_id, observed_at, follower_count, following_count, profile_post_count
         FROM account_snapshots FINAL
         WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
         ORDER BY subject_id, date",
        |query| query.param("org", organization).param("subjects", subjects),
    )
    .await?;
    let mut snapshots: HashMap<i64, Vec<AccountSnapshotRow>> = HashMap::new();
    for row in rows {
        snapshots.entry(row.subject_id.cast_signed()).or_default().push(row);
    }
    Ok(snapshots)
}

/// Runs a query that ClickHouse cancels when the export is interrupted.
async fn fetch_snapshots<T: RowOwned + RowRead>(
    client: &Client,
    sql: &'static str,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<T>, Error> {
    client::fetch_all(client, sql, SNAPSHOTS_TIMEOUT, |query| {
        bind(query).with_setting("cancel_http_readonly_queries_on_client_close", "1")
    })
    .await
}
