//! Sends a query to the API or as SQL to ClickHouse, and measures the time until the response is complete.

use std::time::{Duration, Instant};

use harness::Connection;
use reqwest::Client;
use serde_json::Value;

use crate::queries::Query;

/// The API and the ClickHouse it reads.
#[derive(Clone)]
pub struct Targets {
    pub http: Client,
    pub api: String,
    /// An API without rollups in memory.
    pub querying_api: String,
    pub key: String,
    pub clickhouse: Connection,
}

/// A ClickHouse response with the statistics that ClickHouse reports.
#[derive(Debug, Clone, Copy)]
pub struct SqlResponse {
    pub took: Duration,
    pub rows: u64,
    pub bytes: u64,
}

impl Targets {
    /// Returns the targets without rollups in memory.
    pub fn without_rollups(&self) -> Self {
        Targets { api: self.querying_api.clone(), ..self.clone() }
    }

    /// A GET of the API, which must return 200, or 304 to an earlier ETag.
    pub async fn api(&self, path: &str, tag: Option<&str>) -> Result<(Duration, Option<String>), String> {
        let mut request = self.http.get(format!("{}{path}", self.api)).bearer_auth(&self.key);
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        let began = Instant::now();
        let response = request.send().await.map_err(|error| error.to_string())?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| error.to_string())?;
        let took = began.elapsed();
        if status != 200 && !(status == 304 && tag.is_some()) {
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&body)));
        }
        let tag = headers.get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        Ok((took, tag))
    }

    /// Follows a list and returns the paths of `count` pages that come after `skipped` others.
    pub async fn pages(&self, first: &str, skipped: usize, count: usize) -> Result<Vec<String>, String> {
        let (mut path, mut pages) = (first.to_owned(), Vec::new());
        for page in 0..skipped + count {
            if page >= skipped {
                pages.push(path.clone());
            }
            let request = self.http.get(format!("{}{path}", self.api)).bearer_auth(&self.key);
            let response = request.send().await.map_err(|error| error.to_string())?;
            let page: Value = response.json().await.map_err(|error| error.to_string())?;
            let Some(cursor) = page["pagination"]["next_cursor"].as_str() else {
                return Err(format!("{path}: no further page: {page}"));
            };
            path = format!("{first}&cursor={cursor}");
        }
        Ok(pages)
    }

    /// The query as SQL, over the interface and in the response format of the service.
    pub async fn sql(&self, query: &Query) -> Result<SqlResponse, String> {
        let connection = &self.clickhouse;
        let mut parameters = vec![
            ("database".to_owned(), connection.clickhouse_database.clone()),
            ("default_format".to_owned(), "RowBinaryWithNamesAndTypes".to_owned()),
            ("max_execution_time".to_owned(), "4".to_owned()),
        ];
        parameters
            .extend(query.parameters.iter().map(|(name, value)| (format!("param_{name}"), value.clone())));
        let request = self
            .http
            .post(&connection.clickhouse_url)
            .query(&parameters)
            .header("x-clickhouse-user", &connection.clickhouse_user)
            .header("x-clickhouse-key", &connection.clickhouse_password)
            .body(query.sql);
        let began = Instant::now();
        let response = request.send().await.map_err(|error| error.to_string())?;
        let status = response.status();
        let summary = response.headers().get("x-clickhouse-summary").cloned();
        let body = response.bytes().await.map_err(|error| error.to_string())?;
        let took = began.elapsed();
        if status != 200 {
            return Err(format!("{}: {status}: {}", query.sql, String::from_utf8_lossy(&body)));
        }
        let summary: Value =
            summary.and_then(|summary| serde_json::from_slice(summary.as_bytes()).ok()).unwrap_or_default();
        let number =
            |name: &str| summary[name].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        Ok(SqlResponse { took, rows: number("read_rows"), bytes: number("read_bytes") })
    }
}

/// Durations in milliseconds.
#[derive(Debug, Default, Clone)]
pub struct Times(Vec<f64>);

impl Times {
    pub fn add(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1_000.0);
    }

    pub fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value at a percentile; 0 is the minimum.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
            .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    }
}
