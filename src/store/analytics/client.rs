//! Runs queries of analytics: bounded, and each with a permit of its organization.

use std::time::Duration;

use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};
use uuid::Uuid;

use crate::store::Error;
use crate::store::clickhouse::client::{self, Timeout};
use crate::store::fair_limiter::FairLimiter;
use crate::telemetry::labels::ANALYTICS_POOL;

/// A request has five seconds in all.
const TIMEOUT: Timeout = Timeout { execution: Duration::from_secs(4), response: Duration::from_secs(4) };
/// Far more than the largest query needs, and little enough that a few of them do no harm.
const SETTINGS: [(&str, &str); 5] = [
    ("max_memory_usage", "1000000000"),
    // More cannot be read in the time.
    ("max_rows_to_read", "1000000000"),
    // A row per account, or per post for breakouts and for rankings of all: some 50 bytes each.
    ("max_result_rows", "5000000"),
    ("result_overflow_mode", "throw"),
    // Results are small: formatting them in several threads costs more than it saves.
    ("output_format_parallel_formatting", "0"),
];

/// Cheap to clone.
#[derive(Clone)]
pub struct HistoryClient {
    client: Client,
    limiter: FairLimiter,
}

impl HistoryClient {
    /// Runs at most `max_concurrency` queries at a time.
    pub fn new(client: &Client, max_concurrency: usize) -> Self {
        let client =
            SETTINGS.iter().fold(client.clone(), |client, (name, value)| client.with_setting(*name, *value));
        HistoryClient { client, limiter: FairLimiter::new(max_concurrency, ANALYTICS_POOL) }
    }

    /// Sets the comment of its queries in ClickHouse's query log.
    pub fn with_log_comment(&self, comment: impl Into<String>) -> Self {
        let client = self.client.clone().with_setting("log_comment", comment);
        HistoryClient { client, limiter: self.limiter.clone() }
    }

    pub const fn limiter(&self) -> &FairLimiter {
        &self.limiter
    }

    /// Fails if ClickHouse does not respond. Needs no permit.
    pub async fn ping(&self) -> Result<(), Error> {
        client::read(&self.client, "SELECT 1").fetch_one::<u8>().await?;
        Ok(())
    }

    /// Runs a query of an organization, its `org`, and calls `each` with its rows, one by one. Fails if there are too many.
    pub async fn for_each<T: RowOwned + RowRead>(
        &self,
        organization: Uuid,
        sql: &'static str,
        max_rows: u64,
        each: impl FnMut(T),
    ) -> Result<(), Error> {
        let _permit = self.limiter.acquire(organization).await?;
        let bind = |query: Query| {
            query.param("org", organization).with_setting("max_result_rows", max_rows.to_string())
        };
        client::for_each(&self.client, sql, TIMEOUT.execution, bind, each).await
    }

    /// Runs a query of an organization, its `org`.
    pub async fn fetch_all<T: RowOwned + RowRead>(
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
