//! Inserts that are still running in ClickHouse: a relay that was killed, or lost its lock, may have left one.

use std::time::Duration;

use clickhouse::{Client, Row};
use serde::Deserialize;
use tokio::time::Instant;

use crate::store::Error;
use crate::store::clickhouse::client;

const TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// An insert that runs longer is unusual.
pub const SLOW_INSERT: Duration = Duration::from_secs(30);

/// A running insert.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RunningInsert {
    pub query_id: String,
    /// Seconds since it started.
    pub elapsed: f64,
}

/// The insert of this service that has been running longest, on the node that responds.
pub async fn longest_insert(client: &Client) -> Result<Option<RunningInsert>, Error> {
    let sql = "select query_id, elapsed from system.processes
               where current_database = currentDatabase() and user = currentUser() and query_kind = 'Insert'
               order by elapsed desc limit 1";
    Ok(client::fetch_all(client, sql, TIMEOUT, |query| query).await?.pop())
}

/// Waits until no insert is running: its rows could bring back history that the next relay moves or removes. Logs one
/// warning after `warn_after`.
pub async fn wait_for_inserts(client: &Client, warn_after: Duration) -> Result<(), Error> {
    let (started, mut warned) = (Instant::now(), false);
    let sql = include_str!("count_pending_writes.sql");
    loop {
        if client::fetch_one::<u64>(client, sql, TIMEOUT, |query| query).await? == 0 {
            return Ok(());
        }
        if !warned && started.elapsed() >= warn_after {
            let longest = longest_insert(client).await?;
            tracing::warn!(
                query_id = longest.as_ref().map(|longest| &*longest.query_id),
                elapsed = longest.as_ref().map(|longest| longest.elapsed),
                "relay waits for a running insert in ClickHouse: see system.processes, stop it with KILL QUERY if unneeded"
            );
            warned = true;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
