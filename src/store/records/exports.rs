//! Reads an organization's data for an export, a page at a time: records from Postgres, snapshots from ClickHouse.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clickhouse::{Client, Row};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::Field;
use crate::model::observed::{AccountFields, AccountLatest, VideoFields, VideoLatest};
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
    pub total_post_count: i64,
    pub category: Option<String>,
    pub creator: Option<String>,
    pub is_active: bool,
    pub scrape_interval_hours: i32,
    #[sqlx(json)]
    pub metadata: Metadata,
    /// Whether another account of the organization now has the username.
    pub username_is_reused: bool,
    #[sqlx(flatten)]
    pub latest: AccountLatest,
}

/// A video with its latest values.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ExportedVideo {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    pub platform: Platform,
    pub external_id: Option<String>,
    /// Whole, also of a private post.
    pub shortcode: Option<String>,
    pub account_id: Option<Uuid>,
    pub is_tracked: bool,
    pub is_active: bool,
    pub tracked_at: Option<DateTime<Utc>>,
    #[sqlx(flatten)]
    pub latest: VideoLatest,
}

pub async fn count_videos(pg: &PgPool, organization: Uuid) -> Result<i64, Error> {
    Ok(sqlx::query_scalar("select count(*) from videos where organization_id = $1")
        .bind(organization)
        .fetch_one(pg)
        .await?)
}

/// Returns the next accounts by username and id.
pub async fn fetch_accounts(
    pg: &PgPool,
    organization: Uuid,
    after: (&str, Uuid),
    limit: i64,
) -> Result<Vec<ExportedAccount>, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "select a.id, a.internal_id, a.platform, a.username, a.total_post_count, a.category,
                a.is_active, a.scrape_interval_hours, a.metadata, c.name as creator, {}, a.observed_at, a.known_at,
                not a.holds_username and exists (
                    select from accounts o where o.organization_id = $1 and o.platform = a.platform
                        and o.username = a.username and o.id <> a.id
                ) as username_is_reused
             from accounts a left join creators c on c.id = a.creator_id
             where a.organization_id = $1 and (a.username, a.id) > ($2, $3)
             order by a.username, a.id limit $4",
            exported_columns("a", &ProfileCounters::NAMES, AccountFields::LIST)
        )
    });
    Ok(sqlx::query_as(SELECT.as_str())
        .bind(organization)
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .fetch_all(pg)
        .await?)
}

/// Returns the next creators without accounts, by id.
pub async fn fetch_lone_creators(
    pg: &PgPool,
    organization: Uuid,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, String)>, Error> {
    Ok(sqlx::query_as(
        "select c.id, c.name from creators c where c.organization_id = $1 and c.id > $2 and not exists (
            select from accounts a where a.organization_id = $1 and a.creator_id = c.id
         )
         order by c.id limit $3",
    )
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(pg)
    .await?)
}

/// Returns the columns of counters, and of the fields that files have.
fn exported_columns(table: &str, counters: &[&'static str], fields: &[Field]) -> String {
    let fields = fields.iter().filter(|field| field.in_files).map(|field| field.column);
    let columns = counters.iter().copied().chain(fields).map(|name| format!("{table}.{name}"));
    columns.collect::<Vec<_>>().join(", ")
}

fn select_videos(condition_and_order: &str) -> String {
    format!(
        "select v.id, v.internal_id, v.subject_id, v.platform, v.external_id,
                coalesce(v.whole_shortcode, v.shortcode) as shortcode, v.account_id, v.is_tracked,
                v.is_active, v.tracked_at, v.observed_at, v.known_at, {}
         from videos v where {condition_and_order}",
        exported_columns("v", &Counters::NAMES, VideoFields::LIST)
    )
}

/// Returns the internal ids of the videos of accounts, ascending. No index has this order within an account, so they are
/// read at once instead of in pages.
pub async fn fetch_video_ids(pg: &PgPool, organization: Uuid, accounts: &[Uuid]) -> Result<Vec<i64>, Error> {
    Ok(sqlx::query_scalar(
        "select internal_id from videos where organization_id = $1 and account_id = any($2) order by internal_id",
    )
    .bind(organization)
    .bind(accounts)
    .fetch_all(pg)
    .await?)
}

/// Returns those of the given videos that are still on one of the accounts, by internal id.
pub async fn fetch_account_videos(
    pg: &PgPool,
    organization: Uuid,
    accounts: &[Uuid],
    ids: &[i64],
) -> Result<Vec<ExportedVideo>, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        select_videos(
            "organization_id = $1 and account_id = any($2) and internal_id = any($3) order by internal_id",
        )
    });
    Ok(sqlx::query_as(SELECT.as_str()).bind(organization).bind(accounts).bind(ids).fetch_all(pg).await?)
}

/// Returns the next individually tracked videos without an account, by the time when tracking started.
pub async fn fetch_individual_videos(
    pg: &PgPool,
    organization: Uuid,
    after: (DateTime<Utc>, Uuid),
    limit: i64,
) -> Result<Vec<ExportedVideo>, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        select_videos(
            "organization_id = $1 and is_tracked and account_id is null and (tracked_at, id) > ($2, $3)
             order by tracked_at, id limit $4",
        )
    });
    Ok(sqlx::query_as(SELECT.as_str())
        .bind(organization)
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .fetch_all(pg)
        .await?)
}

/// The counters of a video or a profile on a day.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct ExportedSnapshot {
    /// Internal id of the video or the account.
    internal_id: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    counters: Vec<Option<i64>>,
}

impl ExportedSnapshot {
    /// Returns the counters in the order of their names.
    pub fn counters<const N: usize>(&self) -> [Option<i64>; N] {
        std::array::from_fn(|n| self.counters.get(n).copied().flatten())
    }
}

/// Snapshots by internal id, in the order of their days.
pub type Snapshots = HashMap<i64, Vec<ExportedSnapshot>>;

pub async fn fetch_video_snapshots(
    client: &Client,
    organization: Uuid,
    videos: &[ExportedVideo],
) -> Result<Snapshots, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT video_id AS internal_id, observed_at, [{}] AS counters
             FROM video_snapshots FINAL
             WHERE org_id = {{org:UUID}} AND (subject_id, video_id) IN {{ids:Array(Tuple(UInt64, UInt64))}}
             ORDER BY video_id, date",
            Counters::NAMES.join(", ")
        )
    });
    let ids: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
    fetch_snapshots(client, &SELECT, organization, &ids).await
}

pub async fn fetch_account_snapshots(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
) -> Result<Snapshots, Error> {
    static SELECT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT subject_id AS internal_id, observed_at, [{}] AS counters
             FROM account_snapshots FINAL
             WHERE org_id = {{org:UUID}} AND subject_id IN {{ids:Array(UInt64)}}
             ORDER BY subject_id, date",
            ProfileCounters::NAMES.join(", ")
        )
    });
    fetch_snapshots(client, &SELECT, organization, subjects).await
}

async fn fetch_snapshots(
    client: &Client,
    sql: &'static str,
    organization: Uuid,
    ids: &[impl Serialize],
) -> Result<Snapshots, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<ExportedSnapshot> = client::fetch_all(client, sql, SNAPSHOTS_TIMEOUT, |query| {
        query.param("org", organization).param("ids", ids)
    })
    .await?;
    let mut snapshots = Snapshots::new();
    for row in rows {
        snapshots.entry(row.internal_id.cast_signed()).or_default().push(row);
    }
    Ok(snapshots)
}
