//! ClickHouse as requests ask it: every question is about one organization, waits for its turn, has its bounds, carries the
//! name of the request that asked it, and asks for no day of which the organization keeps no history.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::{Client, RowOwned, RowRead};
use serde::Serialize;
use uuid::Uuid;

use super::fair_limiter::FairLimiter;
use crate::model::period::Window;
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::telemetry::trace::StatementTelemetry;

/// How long ClickHouse may take for one answer; a request has five seconds in all.
const LONGEST: Duration = Duration::from_secs(4);
/// What one question may use: far more than the largest needs, and little enough that a few of them do no harm.
const SETTINGS: [(&str, &str); 7] = [
    ("max_execution_time", "4"),
    ("max_memory_usage", "1000000000"),
    // More cannot be read in the time.
    ("max_rows_to_read", "1000000000"),
    // A row per account, or per video and day.
    ("max_result_rows", "2000000"),
    ("result_overflow_mode", "throw"),
    ("cancel_http_readonly_queries_on_client_close", "1"),
    // Answers are short: to share the work of writing them out costs more than it is.
    ("output_format_parallel_formatting", "0"),
];

/// The store of history, for questions that end by themselves. Cheap to clone.
#[derive(Clone)]
pub struct HistoryReader {
    client: Client,
    limiter: FairLimiter,
    /// The first day of which there is any, where that is not all there was.
    since: Option<NaiveDate>,
}

/// A value that a question takes along.
type Param = Arc<dyn Fn(clickhouse::query::Query) -> clickhouse::query::Query + Send + Sync>;

/// One question. The statement for it is made when its turn has come: ClickHouse is told then what it belongs to.
#[derive(Clone)]
pub(super) struct Query {
    client: Client,
    sql: String,
    params: Vec<Param>,
    organization: Uuid,
    limiter: FairLimiter,
}

impl HistoryReader {
    /// As many questions as this run at a time.
    pub fn new(client: &Client, places: usize) -> Self {
        let client =
            SETTINGS.iter().fold(client.clone(), |client, (name, value)| client.with_setting(*name, *value));
        HistoryReader { client, limiter: FairLimiter::new(places), since: None }
    }

    /// The same, its questions named in ClickHouse's log of queries.
    pub fn with_log_comment(&self, comment: impl Into<String>) -> Self {
        HistoryReader {
            client: self.client.clone().with_setting("log_comment", comment),
            limiter: self.limiter.clone(),
            since: self.since,
        }
    }

    /// The same for an organization whose history begins on a day, or has no such day.
    pub fn with_history_since(self, since: Option<NaiveDate>) -> Self {
        HistoryReader { since, ..self }
    }

    /// A day, or the first of which history is kept.
    pub(super) fn first_kept(&self, day: NaiveDate) -> NaiveDate {
        self.since.map_or(day, |since| since.max(day))
    }

    /// The days of a window of which history is kept.
    pub(super) fn kept(&self, window: Window) -> Option<Window> {
        let start = self.first_kept(window.start);
        (start <= window.end).then_some(Window { start, ..window })
    }

    /// Whether history is kept of a day.
    pub(super) fn keeps(&self, day: NaiveDate) -> bool {
        self.first_kept(day) == day
    }

    /// The latest of some observations, unless it was before there was any history.
    pub(super) fn observed(&self, latest: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        latest.filter(|at| self.keeps(at.date_naive()))
    }

    /// Questions that run, and those that wait for their turn.
    pub fn load(&self) -> (usize, usize) {
        self.limiter.load()
    }

    /// How many questions run at a time at most.
    pub fn max_concurrency(&self) -> usize {
        self.limiter.permits()
    }

    /// Whether ClickHouse answers. Waits for nobody's turn.
    pub async fn ping(&self) -> Result<(), Error> {
        self.client.query_raw("SELECT 1").fetch_one::<u8>().await?;
        Ok(())
    }

    pub(super) fn ask(&self, organization: Uuid, sql: &str) -> Query {
        let (client, limiter) = (self.client.clone(), self.limiter.clone());
        Query { client, sql: bare(sql), params: Vec::new(), organization, limiter }.param("org", organization)
    }
}

impl Query {
    pub(super) fn param(mut self, name: &'static str, value: impl Serialize + Send + Sync + 'static) -> Self {
        self.params.push(Arc::new(move |query| query.param(name, &value)));
        self
    }

    /// Waits for the turn and reads the answer.
    pub(super) async fn fetch<T: RowOwned + RowRead>(self) -> Result<Vec<T>, Error> {
        let _permit = self.limiter.acquire(self.organization).await?;
        let statement = StatementTelemetry::begin(&self.sql);
        let query = client::with_trace_headers(&self.client, &statement).query_raw(&self.sql);
        let query = self.params.iter().fold(query, |query, bind| bind(query));
        client::finish(statement, LONGEST, query.fetch_all()).await
    }
}

/// A statement without its comments, which every request would have parsed anew.
fn bare(sql: &str) -> String {
    sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n")
}
