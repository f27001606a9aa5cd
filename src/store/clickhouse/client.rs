//! Statements to ClickHouse as traces and metrics see them, each with the bound on its time. Their texts are the program's:
//! whoever makes one at run time vouches for it (`AssertSqlSafe`), as to Postgres.

use std::borrow::Cow;
use std::time::Duration;

use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};
use sqlx::SqlSafeStr;
use tracing::Instrument;

use crate::config::ClickhouseArgs;
use crate::store::Error;
use crate::store::clickhouse::cluster;
use crate::telemetry::trace::{self, StatementTelemetry};

/// How much longer than ClickHouse may take for it an answer may take to arrive.
const GRACE: Duration = Duration::from_secs(5);

/// A client of ClickHouse's HTTP interface. Opens no connection yet.
pub fn connect(args: &ClickhouseArgs) -> Client {
    let client = Client::default()
        .with_url(&args.clickhouse_url)
        .with_user(&args.clickhouse_user)
        .with_password(args.clickhouse_password.reveal())
        .with_database(&args.clickhouse_database);
    cluster::configure(client, &args.clickhouse_cluster)
}

/// The client by which ClickHouse tells what it does for a statement as a part of that.
pub(in crate::store) fn with_trace_headers<'a>(
    client: &'a Client,
    statement: &StatementTelemetry,
) -> Cow<'a, Client> {
    let mut client = Cow::Borrowed(client);
    for (name, value) in &trace::propagation_headers(&statement.span) {
        if let Ok(value) = value.to_str() {
            client = Cow::Owned(client.into_owned().with_header(name.as_str(), value));
        }
    }
    client
}

/// Waits for a statement no longer than it may take.
pub(in crate::store) async fn finish<T>(
    statement: StatementTelemetry,
    limit: Duration,
    work: impl Future<Output = clickhouse::error::Result<T>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, work.instrument(statement.span.clone())).await;
    let done = done.unwrap_or(Err(clickhouse::error::Error::TimedOut));
    statement.end(done.as_ref().err().map(kind));
    Ok(done?)
}

/// A statement on its way, which ClickHouse ends by itself when it takes longer than it may.
fn begun(on: &Client, sql: impl SqlSafeStr, limit: Duration) -> (StatementTelemetry, Query) {
    let sql = sql.into_sql_str();
    let statement = StatementTelemetry::begin(&sql.as_str());
    let query = with_trace_headers(on, &statement).query_raw(sql.as_str());
    (statement, query.with_setting("max_execution_time", limit.as_secs().to_string()))
}

/// Has ClickHouse do something within a time.
pub(in crate::store) async fn execute(
    client: &Client,
    sql: impl SqlSafeStr,
    limit: Duration,
    bind: impl FnOnce(Query) -> Query,
) -> Result<(), Error> {
    let (statement, query) = begun(client, sql, limit);
    finish(statement, limit + GRACE, bind(query).execute()).await
}

/// The rows that a question is answered with within a time.
pub(in crate::store) async fn fetch_all<T: RowOwned + RowRead>(
    client: &Client,
    sql: impl SqlSafeStr,
    limit: Duration,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<T>, Error> {
    let (statement, query) = begun(client, sql, limit);
    finish(statement, limit + GRACE, bind(query).fetch_all()).await
}

/// The one row that a question is answered with within a time.
pub(in crate::store) async fn fetch_one<T: RowOwned + RowRead>(
    client: &Client,
    sql: impl SqlSafeStr,
    limit: Duration,
    bind: impl FnOnce(Query) -> Query,
) -> Result<T, Error> {
    let (statement, query) = begun(client, sql, limit);
    finish(statement, limit + GRACE, bind(query).fetch_one()).await
}

/// The kinds of failures that metrics tell apart.
fn kind(error: &clickhouse::error::Error) -> &'static str {
    match error {
        clickhouse::error::Error::TimedOut => "timeout",
        clickhouse::error::Error::Network(_) => "network",
        clickhouse::error::Error::BadResponse(_) => "refused",
        _ => "other",
    }
}
