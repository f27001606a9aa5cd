//! Reads of history: gains and levels over windows, each a `.sql` file that any ClickHouse client can run.
//!
//! What is deleted in Postgres is left out here before ClickHouse has heard of it. Creators do not exist in these
//! statements: their numbers follow the links as they are now, which the caller reads from Postgres.

pub mod creators;
pub mod overview;
pub mod videos;

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, Row, RowOwned, RowRead};
use serde::Deserialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::model::period::Window;
use crate::model::platform::Platform;

/// How long ClickHouse may take for one answer; a request has five seconds in all.
const LONGEST: Duration = Duration::from_secs(4);

/// Whose history is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub organization: Uuid,
    pub platform: Option<Platform>,
    /// Only these subjects; all of the organization by default.
    pub subjects: Option<&'a [i64]>,
    /// Deleted here, possibly not yet there.
    pub removed: &'a [i64],
}

/// Subjects of tracking that every total has to leave out.
pub async fn removed_subjects(pg: &PgPool, organization: Uuid) -> Result<Vec<i64>, Error> {
    let removed = sqlx::query_scalar(
        "select subject_id from removed_subjects where organization_id = $1 and delivery is null",
    )
    .bind(organization)
    .fetch_all(pg)
    .await?;
    Ok(removed)
}

/// Gains of one subject over a window.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct SubjectTotals {
    pub subject_id: u64,
    pub views: i64,
    pub plays: i64,
    pub likes: i64,
    pub comments: i64,
    pub shares: i64,
    pub followers: i64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl SubjectTotals {
    pub const fn engagement(&self) -> i64 {
        self.likes + self.comments + self.shares
    }
}

/// Gains per subject; those that were not observed in the window are absent.
pub async fn subject_totals(
    client: &Client,
    scope: Scope<'_>,
    window: Window,
) -> Result<Vec<SubjectTotals>, Error> {
    fetch(scoped(client, include_str!("subject_totals.sql"), scope, window)).await
}

/// Gains of one day.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct DayTotals {
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    pub views: i64,
    pub plays: i64,
    pub likes: i64,
    pub comments: i64,
    pub shares: i64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl DayTotals {
    pub const fn engagement(&self) -> i64 {
        self.likes + self.comments + self.shares
    }
}

/// Gains per day, ascending; days without an observation are absent.
pub async fn daily(client: &Client, scope: Scope<'_>, window: Window) -> Result<Vec<DayTotals>, Error> {
    fetch(scoped(client, include_str!("daily.sql"), scope, window)).await
}

/// Followers at the end of a window and on its eve, unknown before their first observation, and the latest
/// observation by the end of the window.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct Levels {
    pub followers: Option<i64>,
    pub previous_followers: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros::option")]
    pub as_of: Option<DateTime<Utc>>,
}

pub async fn levels(client: &Client, scope: Scope<'_>, window: Window) -> Result<Levels, Error> {
    fetch_one(scoped(client, include_str!("levels.sql"), scope, window)).await
}

/// The latest observation that an answer rests on: the latest of its window, or one before it.
pub async fn as_of(
    client: &Client,
    scope: Scope<'_>,
    window: Window,
    latest: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, Error> {
    match latest {
        Some(latest) => Ok(Some(latest)),
        None => Ok(levels(client, scope, window).await?.as_of),
    }
}

/// A bounded query over a scope and a window.
fn scoped(client: &Client, sql: &'static str, scope: Scope<'_>, window: Window) -> Query {
    bounded(client, sql)
        .param("org", scope.organization)
        .param("start", stored_day(window.start))
        .param("end", stored_day(window.end))
        .param("whole_org", scope.subjects.is_none())
        .param("subjects", scope.subjects.unwrap_or_default())
        .param("deleted", scope.removed)
        .param("platform", scope.platform.map_or("", Platform::as_str))
}

/// The nearest day that ClickHouse's `Date` and its differences can hold; nothing was observed beyond either end.
fn stored_day(day: NaiveDate) -> NaiveDate {
    let (first, last) = (NaiveDate::from_ymd_opt(1975, 1, 1), NaiveDate::from_ymd_opt(2145, 1, 1));
    let day = first.map_or(day, |first| day.max(first));
    last.map_or(day, |last| day.min(last))
}

/// A query that ends by itself, here and in ClickHouse.
fn bounded(client: &Client, sql: &'static str) -> Query {
    client
        .query_raw(sql)
        .with_setting("max_execution_time", LONGEST.as_secs().to_string())
        .with_setting("cancel_http_readonly_queries_on_client_close", "1")
}

async fn fetch_one<T: RowOwned + RowRead>(query: Query) -> Result<T, Error> {
    let rows = fetch(query).await?;
    rows.into_iter().next().ok_or(Error::Clickhouse(clickhouse::error::Error::RowNotFound))
}

async fn fetch<T: RowOwned + RowRead>(query: Query) -> Result<Vec<T>, Error> {
    match tokio::time::timeout(LONGEST, query.fetch_all()).await {
        Ok(rows) => Ok(rows?),
        Err(_) => Err(Error::Clickhouse(clickhouse::error::Error::TimedOut)),
    }
}
