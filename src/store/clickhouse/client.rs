//! Runs statements on ClickHouse: each has a timeout, is recorded by traces and metrics, and has its form for a cluster.

use std::borrow::Cow;
use std::time::Duration;

use clickhouse::error::Error as ClickhouseError;
use clickhouse::query::{Query, RowCursor};
use clickhouse::{Client, Compression, QuerySummary, RowOwned, RowRead, RowWrite};
use futures_util::FutureExt;
use sqlx::SqlSafeStr;
use tracing::Instrument;

use crate::config::ClickhouseArgs;
use crate::model::network::is_loopback;
use crate::store::Error;
use crate::store::clickhouse::cluster;
use crate::telemetry::trace::{self, StatementTelemetry};

/// How much longer than ClickHouse's own time limit the client waits for a response.
const RESPONSE_GRACE: Duration = Duration::from_secs(5);

/// Settings of every query: ClickHouse cancels the query of a disconnected client only if the request is read-only.
const READ_SETTINGS: [(&str, &str); 2] =
    [("readonly", "2"), ("cancel_http_readonly_queries_on_client_close", "1")];

/// ClickHouse aborts a statement after `execution`, the client stops waiting after `response`.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Timeout {
    pub execution: Duration,
    pub response: Duration,
}

impl From<Duration> for Timeout {
    fn from(execution: Duration) -> Self {
        Timeout { execution, response: execution + RESPONSE_GRACE }
    }
}

/// A client of ClickHouse's HTTP interface. Opens no connection yet. Bodies are compressed for the network only.
pub fn connect(args: &ClickhouseArgs) -> Client {
    let client = Client::default()
        .with_url(&args.clickhouse_url)
        .with_user(&args.clickhouse_user)
        .with_password(args.clickhouse_password.reveal())
        .with_database(&args.clickhouse_database);
    let is_local = args.clickhouse_url.parse().is_ok_and(|url| is_loopback(&url));
    let client = if is_local { client.with_compression(Compression::None) } else { client };
    cluster::configure(client, &args.clickhouse_cluster)
}

/// A query that changes nothing and ends when the client disconnects.
pub(in crate::store) fn read(client: &Client, sql: &'static str) -> Query {
    with_read_settings(client.query_raw(sql))
}

/// Runs a statement that returns no rows.
pub(in crate::store) async fn execute(
    client: &Client,
    sql: impl SqlSafeStr,
    timeout: impl Into<Timeout>,
    bind: impl FnOnce(Query) -> Query,
) -> Result<(), Error> {
    let (timeout, sql) = (timeout.into(), sql.into_sql_str());
    let statement = StatementTelemetry::begin(&sql.as_str());
    let sql = cluster::render(client, sql.as_str());
    let query = with_trace_headers(client, &statement).query_raw(&sql);
    finish(statement, timeout, bind(with_execution_limit(query, timeout)).execute()).await
}

/// Runs an insert that reads its rows, and returns their number: none if ClickHouse did not report it.
pub(in crate::store) async fn execute_insert(
    client: &Client,
    sql: &'static str,
    timeout: Duration,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Option<u64>, Error> {
    let statement = StatementTelemetry::begin(&sql);
    let sql = cluster::render(client, sql);
    let query = with_trace_headers(client, &statement).query_raw(&sql);
    // The number is complete if the response begins after the insert.
    let query = with_execution_limit(query, timeout.into()).with_setting("http_wait_end_of_query", "1");
    let written = async {
        let mut cursor = bind(query).fetch_bytes("RowBinary")?;
        while cursor.next().await?.is_some() {}
        Ok(cursor.summary().and_then(QuerySummary::written_rows))
    };
    finish(statement, timeout.into(), written).await
}

/// Runs a query and returns its rows.
pub(in crate::store) async fn fetch_all<T: RowOwned + RowRead>(
    client: &Client,
    sql: impl SqlSafeStr,
    timeout: impl Into<Timeout>,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<T>, Error> {
    let timeout = timeout.into();
    let (statement, query) = prepare_read(client, sql, timeout);
    finish(statement, timeout, bind(query).fetch_all()).await
}

/// Runs a query that returns one row.
pub(in crate::store) async fn fetch_one<T: RowOwned + RowRead>(
    client: &Client,
    sql: impl SqlSafeStr,
    timeout: impl Into<Timeout>,
    bind: impl FnOnce(Query) -> Query,
) -> Result<T, Error> {
    let timeout = timeout.into();
    let (statement, query) = prepare_read(client, sql, timeout);
    finish(statement, timeout, bind(query).fetch_one()).await
}

/// Runs a query and calls `each` with its rows, one by one; fails if the next does not arrive within the timeout.
pub(in crate::store) async fn for_each<T: RowOwned + RowRead>(
    client: &Client,
    sql: &'static str,
    timeout: Duration,
    bind: impl FnOnce(Query) -> Query,
    mut each: impl FnMut(T),
) -> Result<(), Error> {
    let mut rows = Rows::open(client, sql, timeout, bind)?;
    while let Some(row) = rows.next().await? {
        each(row);
    }
    Ok(())
}

/// The rows of a running query, one by one.
pub(in crate::store) struct Rows<T> {
    cursor: RowCursor<T>,
    timeout: Duration,
    /// Until the query has ended.
    statement: Option<StatementTelemetry>,
}

impl<T: RowOwned + RowRead> Rows<T> {
    /// Begins a query.
    pub fn open(
        client: &Client,
        sql: &'static str,
        timeout: Duration,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Self, Error> {
        let (statement, query) = prepare_read(client, sql, timeout.into());
        Ok(Rows { cursor: bind(query).fetch()?, timeout, statement: Some(statement) })
    }

    /// Returns the next row; fails if it does not arrive within the timeout.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        // Most rows have arrived with earlier ones: a timer for each would cost as much as the row.
        let row = match self.cursor.next().now_or_never() {
            Some(row) => row,
            None => {
                let row = tokio::time::timeout(self.timeout, self.cursor.next()).await;
                row.unwrap_or(Err(ClickhouseError::TimedOut))
            }
        };
        if !matches!(row, Ok(Some(_)))
            && let Some(statement) = self.statement.take()
        {
            statement.end(row.as_ref().err().map(metric_label));
        }
        Ok(row?)
    }
}

/// Inserts rows, if there are any.
pub(in crate::store) async fn insert<T: RowOwned + RowWrite>(
    client: &Client,
    table: &str,
    rows: &[T],
    timeout: Duration,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = StatementTelemetry::begin(&format_args!("insert into {table}"));
    let client = with_trace_headers(client, &statement);
    let inserted = async {
        let mut insert = client.insert::<T>(table).await?;
        for row in rows {
            insert.write(row).await?;
        }
        insert.end().await
    };
    finish(statement, Timeout { execution: timeout, response: timeout }, inserted).await
}

fn prepare_read(client: &Client, sql: impl SqlSafeStr, timeout: Timeout) -> (StatementTelemetry, Query) {
    let sql = sql.into_sql_str();
    let statement = StatementTelemetry::begin(&sql.as_str());
    let sql = cluster::render(client, sql.as_str());
    let query = with_read_settings(with_trace_headers(client, &statement).query_raw(&sql));
    (statement, with_execution_limit(query, timeout))
}

fn with_read_settings(query: Query) -> Query {
    READ_SETTINGS.iter().fold(query, |query, (name, value)| query.with_setting(*name, *value))
}

fn with_execution_limit(query: Query, timeout: Timeout) -> Query {
    query.with_setting("max_execution_time", timeout.execution.as_secs().to_string())
}

/// A client whose requests continue the statement's trace in ClickHouse.
fn with_trace_headers<'a>(client: &'a Client, statement: &StatementTelemetry) -> Cow<'a, Client> {
    let mut client = Cow::Borrowed(client);
    for (name, value) in &trace::propagation_headers(&statement.span) {
        if let Ok(value) = value.to_str() {
            client = Cow::Owned(client.into_owned().with_header(name.as_str(), value));
        }
    }
    client
}

async fn finish<T>(
    statement: StatementTelemetry,
    timeout: Timeout,
    response: impl Future<Output = clickhouse::error::Result<T>>,
) -> Result<T, Error> {
    let response = tokio::time::timeout(timeout.response, response.instrument(statement.span.clone())).await;
    let response = response.unwrap_or(Err(ClickhouseError::TimedOut));
    statement.end(response.as_ref().err().map(metric_label));
    Ok(response?)
}

fn metric_label(error: &ClickhouseError) -> &'static str {
    match error {
        ClickhouseError::TimedOut => "timeout",
        ClickhouseError::Network(_) => "network",
        ClickhouseError::BadResponse(_) => "refused",
        _ => "other",
    }
}
