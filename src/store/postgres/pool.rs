//! Pools of Postgres connections for requests, search followers and everything else, each with its timeouts.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgPool};

use super::transaction::RECLAIM_TIMEOUT;
use crate::config::PostgresArgs;

/// The database URL does not parse.
#[derive(Debug, thiserror::Error)]
#[error(
    "the database URL is not usable: {0}; set TIDEMARK_DATABASE_URL to postgres://user:password@host:port/database"
)]
pub struct DatabaseUrlError(#[source] sqlx::Error);

/// A pool of Postgres connections that gives up on a dead server within the time a request may take.
pub fn connect(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, args.database_connections, &[])
}

/// What a request may ask of Postgres: a little less than its time (`http::middleware::request_timeout`) to wait for what others have locked,
/// so that it can still say so, and a little more for a statement. One that is given up ends although it would run on.
const OF_REQUESTS: [(&str, &str); 3] =
    [("lock_timeout", "4s"), ("statement_timeout", "5s"), ("idle_in_transaction_session_timeout", "10s")];

/// A pool for requests: none of them keeps a connection for longer than its own time.
pub fn connect_for_requests(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, args.database_connections, &OF_REQUESTS)
}

/// What of an API process may take longer than a request: thousands of documents at once for its search index, and the
/// removal of changes that no index needs any more.
const OF_FOLLOWER: [(&str, &str); 1] = [("statement_timeout", "300s")];
/// One builds an index while the other says that it does.
const FOLLOWER_CONNECTIONS: u32 = 2;

/// A pool for the follower of an API process's search index, beside that of its requests.
pub fn connect_for_search_follower(args: &PostgresArgs) -> Result<PgPool, DatabaseUrlError> {
    build(args, FOLLOWER_CONNECTIONS, &OF_FOLLOWER)
}

/// What holds for every connection: one that is closed in the middle of a statement takes that along.
const OF_ALL: [(&str, &str); 1] = [("client_connection_check_interval", "500ms")];

/// How long after it was given back a connection is taken without asking whether its server is still there.
const SURELY_THERE: Duration = Duration::from_millis(500);

/// A pool: whatever was begun on a connection, soon after it is given up the connection's place is another's.
fn build(
    args: &PostgresArgs,
    connections: u32,
    settings: &[(&'static str, &'static str)],
) -> Result<PgPool, DatabaseUrlError> {
    let options: PgConnectOptions = args.database_url.reveal().parse().map_err(DatabaseUrlError)?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(4))
        .acquire_time_level(log::LevelFilter::Debug)
        .after_release(|connection, _| {
            Box::pin(async move {
                let free = tokio::time::timeout(RECLAIM_TIMEOUT, connection.ping()).await;
                Ok(matches!(free, Ok(Ok(()))))
            })
        })
        // Instead of asking each one each time.
        .test_before_acquire(false)
        .before_acquire(|connection, told| {
            Box::pin(async move { Ok(told.idle_for < SURELY_THERE || connection.ping().await.is_ok()) })
        });
    Ok(pool.connect_lazy_with(options.options(OF_ALL).options(settings.iter().copied())))
}
