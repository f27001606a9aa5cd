//! Pools of Postgres connections: for requests, for the search index, for notifications, and for everything else.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use super::session;
use super::transaction::RECLAIM_TIMEOUT;
use crate::config::PostgresArgs;

/// The database URL does not parse.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid database URL: {0}; set TIDEMARK_DATABASE_URL to postgres://user:password@host:port/database"
)]
pub struct DatabaseUrlError(#[source] sqlx::Error);

/// How long a request may wait for a connection: a little less than its time budget.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(4);
/// Connections that were idle for less are used without a ping.
const MAX_IDLE_WITHOUT_PING: Duration = Duration::from_millis(500);
/// A connection without a response for so long is replaced, as after a failover or in a firewall that forgot it.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Two imports save two batches each, beside the lease and the progress.
const IMPORT_CONNECTIONS: u32 = 6;
/// One builds the index while the other reports its state.
const SEARCH_FOLLOWER_CONNECTIONS: u32 = 2;
/// One listens. Another replaces one that does not respond and is being closed.
const NOTIFICATION_CONNECTIONS: u32 = 2;

/// Postgres cancels the statement of a client that has disconnected.
const COMMON_SETTINGS: &str = "set client_connection_check_interval = '500ms'";
/// Lock waits end shortly before the request times out (`http::deadline::TimeBudget`), so that it can still respond;
/// statements end shortly after.
const REQUEST_SETTINGS: &str = "set lock_timeout = '4s'; set statement_timeout = '5s';
                                set idle_in_transaction_session_timeout = '10s'";
/// Reading thousands of documents, or deleting search changes, takes longer than a request.
const SEARCH_FOLLOWER_SETTINGS: &str = "set statement_timeout = '300s'";

/// Opens a pool without time limits for statements and locks.
pub fn connect(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, args.database_connections, "")
}

/// Opens a pool whose statements end with the request that runs them.
pub fn connect_for_requests(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, args.database_connections, REQUEST_SETTINGS)
}

/// Opens a pool for the search index of an API process.
pub fn connect_for_search_follower(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, SEARCH_FOLLOWER_CONNECTIONS, SEARCH_FOLLOWER_SETTINGS)
}

/// Opens a pool for the imports of an API process.
pub fn connect_for_imports(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, IMPORT_CONNECTIONS, "")
}

/// Opens a pool to listen for notifications.
pub fn connect_for_notifications(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, NOTIFICATION_CONNECTIONS, "")
}

/// Opens all connections of a pool, so that the first requests find them open. Those that cannot be opened now, such as all
/// while Postgres is down, are opened when they are needed.
pub async fn open_connections(pg: &PgPool) {
    let connections = (0..pg.options().get_max_connections()).map(|_| pg.acquire());
    let opened = futures_util::future::join_all(connections).await;
    if let Some(error) = opened.into_iter().find_map(Result::err) {
        tracing::warn!(%error, "cannot open all connections to postgres");
    }
}

/// Builds a pool that closes a returned connection unless it is idle, instead of waiting for what still runs on it.
fn build(args: &PostgresArgs, connections: u32, settings: &str) -> Result<PgPool, DatabaseUrlError> {
    let options = session::parse_url(args.database_url.reveal()).map_err(DatabaseUrlError)?;
    let settings: Arc<str> = format!("{COMMON_SETTINGS}; {}; {settings}", session::KEEPALIVE_SETTINGS).into();
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .acquire_time_level(log::LevelFilter::Debug)
        // Not as startup parameters, which PgBouncer rejects.
        .after_connect(move |connection, _| {
            let settings = sqlx::raw_sql(AssertSqlSafe(settings.clone()));
            Box::pin(async move { settings.execute(connection).await.map(drop) })
        })
        .after_release(|connection, _| {
            Box::pin(async move { Ok(is_responding(connection, RECLAIM_TIMEOUT).await) })
        })
        // Instead of a ping before every use.
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                Ok(metadata.idle_for < MAX_IDLE_WITHOUT_PING || is_responding(connection, PING_TIMEOUT).await)
            })
        });
    Ok(pool.connect_lazy_with(options))
}

async fn is_responding(connection: &mut PgConnection, timeout: Duration) -> bool {
    matches!(tokio::time::timeout(timeout, connection.ping()).await, Ok(Ok(())))
}
