//! Statements that take a list of keys, in batches.

use std::time::Duration;

use clickhouse::Client;
use serde::Serialize;
use uuid::Uuid;

use crate::store::Error;
use crate::store::clickhouse::client;

/// The timeout of a statement, far longer than any of the relay takes.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(300);
/// Keys are sent in a field of the HTTP request, which is limited to 128 KiB.
const MAX_KEYS_PER_STATEMENT: usize = 300;

/// Organization and subject id.
pub type Subject = (Uuid, i64);

/// Runs a statement for the keys that its parameter `name` lists, with the delivery number as its `version`.
pub(super) async fn execute_in_batches(
    client: &Client,
    sql: &'static str,
    name: &'static str,
    keys: &[impl Serialize],
    delivery: Option<i64>,
) -> Result<(), Error> {
    for batch in keys.chunks(MAX_KEYS_PER_STATEMENT) {
        client::execute(client, sql, STATEMENT_TIMEOUT, |query| {
            let query = query.param(name, batch);
            match delivery {
                Some(delivery) => query.param("version", delivery),
                None => query,
            }
        })
        .await?;
    }
    Ok(())
}
