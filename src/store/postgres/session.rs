//! Connections that need a Postgres session of their own, which a pooler in transaction mode does not provide.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection, Row};

use crate::store::Error;

/// The rounds of statements after the first. Chance may hide a pooler of a busy server for one round.
const CHECK_ROUNDS: usize = 5;

/// Postgres detects within 30 s that a client's machine is gone, and ends its transaction. Its default is hours.
pub(super) const KEEPALIVE_SETTINGS: &str =
    "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 4";

/// Parses a database URL. Leaves out the startup parameter that PgBouncer rejects.
pub fn parse_url(database_url: &str) -> Result<PgConnectOptions, sqlx::Error> {
    Ok(database_url.parse::<PgConnectOptions>()?.extra_float_digits(None))
}

/// Fails behind a pooler that shares sessions.
pub async fn ensure_unshared(options: &PgConnectOptions) -> Result<(), Error> {
    if are_shared(options).await? { Err(Error::SharedSession) } else { Ok(()) }
}

/// Whether two connections that are used in turn share sessions.
pub async fn are_shared(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let connect = || PgConnection::connect_with(options);
    let (mut first, mut second) = tokio::try_join!(connect(), connect())?;
    let (first_pid, second_pid) = (fetch_pid(&mut first).await?, fetch_pid(&mut second).await?);
    let mut are_shared = first_pid == second_pid;
    for _ in 0..CHECK_ROUNDS {
        // In the opposite order: a pooler may use its sessions in turn.
        are_shared |= fetch_pid(&mut second).await? != second_pid;
        are_shared |= fetch_pid(&mut first).await? != first_pid;
    }
    first.close().await?;
    second.close().await?;
    Ok(are_shared)
}

/// Fetches the process id of the connection's session, without a prepared statement.
async fn fetch_pid(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("select pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}
