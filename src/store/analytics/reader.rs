//! Reads the history of an organization for requests, within its retention: from the rollup in memory, or from ClickHouse.

use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};
use sqlx::PgPool;
use uuid::Uuid;

use super::client::HistoryClient;
use super::rollup_cache::{ReadVersion, RollupCache, RollupRows};
use super::scope::StatementChunk;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;
use crate::store::outbox::data_version;

/// The history of all organizations. Cheap to clone.
#[derive(Clone)]
pub struct HistoryReader {
    client: HistoryClient,
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
        HistoryReader { client: HistoryClient::new(client, max_concurrency), rollups, since: None }
    }

    /// Sets the comment of its queries in ClickHouse's query log.
    pub fn with_log_comment(&self, comment: impl Into<String>) -> Self {
        HistoryReader { client: self.client.with_log_comment(comment), ..self.clone() }
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
    pub const fn at(self, organization: Uuid, version: ReadVersion) -> VersionedHistory {
        VersionedHistory { reader: self, organization, version }
    }

    pub const fn rollups(&self) -> &RollupCache {
        &self.rollups
    }

    /// Brings all rollups in memory up to date.
    pub async fn follow(&self, pg: &PgPool) -> Result<(), Error> {
        self.rollups.follow(pg, &self.client).await
    }

    /// Answers nothing from memory while ClickHouse does not respond.
    pub async fn check_clickhouse(&self) {
        self.rollups.check_clickhouse(&self.client).await;
    }

    /// Fails if ClickHouse does not respond. Needs no permit.
    pub async fn ping(&self) -> Result<(), Error> {
        self.client.ping().await
    }

    /// The numbers of running and of waiting queries.
    pub fn load(&self) -> (usize, usize) {
        self.client.limiter().load()
    }

    pub fn max_concurrency(&self) -> usize {
        self.client.limiter().permits()
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

    /// Computes from the rollup in memory, if it is there.
    pub(super) async fn read_memory<T>(&self, compute: impl FnOnce(&RollupRows) -> T) -> Option<T> {
        let HistoryReader { client, rollups, .. } = &self.reader;
        rollups.read(client, self.organization, self.version, compute).await
    }

    /// Runs a query of the organization, its `org`.
    pub(super) async fn fetch_all<T: RowOwned + RowRead>(
        &self,
        sql: &'static str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Vec<T>, Error> {
        self.reader.client.fetch_all(self.organization, sql, bind).await
    }

    /// Runs the statements of a query over a window, one after the other.
    pub(super) async fn fetch_chunks<T: RowOwned + RowRead>(
        &self,
        chunks: Vec<StatementChunk<'_>>,
        Window { start, end, .. }: Window,
        bind: impl Fn(Query) -> Query,
    ) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        for chunk in chunks {
            let bind = |query: Query| {
                chunk.bind(bind(query)).param("start", clamp_day(start)).param("end", clamp_day(end))
            };
            rows.extend(self.reader.client.fetch_all(self.organization, chunk.sql, bind).await?);
        }
        Ok(rows)
    }
}
