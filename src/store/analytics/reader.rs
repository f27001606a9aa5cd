//! Reads history from ClickHouse for requests: bounded, one organization at a time, and within its retention.

use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};
use sqlx::PgPool;
use uuid::Uuid;

use super::fair_limiter::FairLimiter;
use super::rollup_cache::{ReadVersion, RollupCache, RollupRows};
use super::scope::StatementChunk;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;
use crate::store::clickhouse::client::{self, Timeout};
use crate::store::outbox::data_version;

/// A request has five seconds in all.
const TIMEOUT: Timeout = Timeout { execution: Duration::from_secs(4), response: Duration::from_secs(4) };
/// Far more than the largest query needs, and little enough that a few of them do no harm.
const SETTINGS: [(&str, &str); 5] = [
    ("max_memory_usage", "1000000000"),
    // More cannot be read in the time.
    ("max_rows_to_read", "1000000000"),
    // A row per account, or per post for breakouts.
    ("max_result_rows", "2000000"),
    ("result_overflow_mode", "throw"),
    // Results are small: formatting them in several threads costs more than it saves.
    ("output_format_parallel_formatting", "0"),
];

/// The history of all organizations. Cheap to clone.
#[derive(Clone)]
pub struct HistoryReader {
    client: Client,
    limiter: FairLimiter,
    rollups: RollupCache,
    /// The first day within retention; None = no limit.
    since: Option<NaiveDate>,
}

/// The history of an organization, at least as new as the version that a request has read.
#[derive(Clone)]
pub struct VersionedHistory {
    reader: HistoryReader,
    organization: Uuid,
    version: ReadVersion,
}

impl HistoryReader {
    /// Runs at most `max_concurrency` queries at a time.
    pub fn new(client: &Client, max_concurrency: usize, rollups: RollupCache) -> Self {
        let client =
            SETTINGS.iter().fold(client.clone(), |client, (name, value)| client.with_setting(*name, *value));
        let limiter = FairLimiter::new(max_concurrency);
        HistoryReader { client, limiter, rollups, since: None }
    }

    /// Sets the comment of its queries in ClickHouse's query log.
    pub fn with_log_comment(&self, comment: impl Into<String>) -> Self {
        HistoryReader { client: self.client.clone().with_setting("log_comment", comment), ..self.clone() }
    }

    /// Sets the first day within the organization's retention.
    pub fn with_history_since(self, since: Option<NaiveDate>) -> Self {
        HistoryReader { since, ..self }
    }

    /// The history of an organization as it is now.
    pub async fn current(self, pg: &PgPool, organization: Uuid) -> Result<VersionedHistory, Error> {
        let read_at = Instant::now();
        let versions = data_version::fetch_history_versions(pg, &[organization]).await?;
        let (_, version) = versions.first().ok_or(Error::NotFound("organization"))?;
        Ok(self.at(organization, ReadVersion { version: *version, read_at }))
    }

    /// The history of an organization, at least at a version.
    pub fn at(self, organization: Uuid, version: ReadVersion) -> VersionedHistory {
        VersionedHistory { reader: self, organization, version }
    }

    pub const fn rollups(&self) -> &RollupCache {
        &self.rollups
    }

    /// The numbers of running and of waiting queries.
    pub fn load(&self) -> (usize, usize) {
        self.limiter.load()
    }

    pub fn max_concurrency(&self) -> usize {
        self.limiter.permits()
    }

    /// Fails if ClickHouse does not respond. Needs no permit.
    pub async fn ping(&self) -> Result<(), Error> {
        client::read(&self.client, "SELECT 1").fetch_one::<u8>().await?;
        Ok(())
    }

    /// Runs a query of an organization, its `org`, and calls `each` with its rows, one by one.
    pub(super) async fn for_each<T: RowOwned + RowRead>(
        &self,
        organization: Uuid,
        sql: &'static str,
        each: impl FnMut(T),
    ) -> Result<(), Error> {
        let _permit = self.limiter.acquire(organization).await?;
        let bind = |query: Query| query.param("org", organization);
        client::for_each(&self.client, sql, TIMEOUT.execution, bind, each).await
    }

    /// Runs a query of an organization, its `org`.
    pub(super) async fn fetch_all<T: RowOwned + RowRead>(
        &self,
        organization: Uuid,
        sql: &'static str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Vec<T>, Error> {
        let _permit = self.limiter.acquire(organization).await?;
        let bind = |query: Query| bind(query.param("org", organization));
        client::fetch_all(&self.client, sql, TIMEOUT, bind).await
    }
}

impl VersionedHistory {
    pub const fn organization(&self) -> Uuid {
        self.organization
    }

    /// A day, or the first day within retention if that is later.
    pub(super) fn clip_day(&self, day: NaiveDate) -> NaiveDate {
        self.reader.since.map_or(day, |since| since.max(day))
    }

    /// The days of a window within retention.
    pub(super) fn clip(&self, window: Window) -> Option<Window> {
        let start = self.clip_day(window.start);
        (start <= window.end).then_some(Window { start, ..window })
    }

    pub(super) fn retains(&self, day: NaiveDate) -> bool {
        self.clip_day(day) == day
    }

    /// The time of an observation, unless it is older than retention.
    pub(super) fn clip_observation(&self, latest: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        latest.filter(|at| self.retains(at.date_naive()))
    }

    /// Computes from the rollup in memory, if it is there, and the first and last day of the window that are retained: the
    /// default if there is none.
    pub(super) async fn read_rollup<T: Default>(
        &self,
        window: Window,
        compute: impl FnOnce(&RollupRows, NaiveDate, NaiveDate) -> T,
    ) -> Option<T> {
        let compute = |rows: &RollupRows| match self.clip(window) {
            Some(Window { start, end, .. }) => compute(rows, clamp_day(start), clamp_day(end)),
            None => T::default(),
        };
        self.reader.rollups.read(&self.reader, self.organization, self.version, compute).await
    }

    /// Runs a query of the organization, its `org`.
    pub(super) async fn fetch_all<T: RowOwned + RowRead>(
        &self,
        sql: &'static str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Vec<T>, Error> {
        self.reader.fetch_all(self.organization, sql, bind).await
    }

    /// Runs the chunks of a query over a window, one after the other. Returns nothing for a window before retention.
    pub(super) async fn fetch_chunks<T: RowOwned + RowRead>(
        &self,
        chunks: Vec<StatementChunk<'_>>,
        window: Window,
    ) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        for chunk in chunks {
            rows.extend(self.fetch_chunk(&chunk, window, |query| query).await?);
        }
        Ok(rows)
    }

    /// Runs one chunk of a query with parameters of its own.
    pub(super) async fn fetch_chunk<T: RowOwned + RowRead>(
        &self,
        chunk: &StatementChunk<'_>,
        window: Window,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Vec<T>, Error> {
        let Some(window) = self.clip(window) else { return Ok(Vec::new()) };
        self.fetch_all(chunk.sql, |query| bind(chunk.bind(query, window))).await
    }
}
