//! Statements to ClickHouse as traces and metrics see them, each with the bound on its time.

use std::borrow::Cow;
use std::time::Duration;

use clickhouse::Client;
use tracing::Instrument;

use super::Error;
use crate::telemetry::trace::{self, Statement};

/// The client by which ClickHouse tells what it does for a statement as a part of that.
pub(super) fn client<'a>(client: &'a Client, statement: &Statement) -> Cow<'a, Client> {
    let mut client = Cow::Borrowed(client);
    for (name, value) in &trace::headers_of(&statement.span) {
        if let Ok(value) = value.to_str() {
            client = Cow::Owned(client.into_owned().with_header(name.as_str(), value));
        }
    }
    client
}

/// Waits for a statement no longer than it may take.
pub(super) async fn until<T>(
    statement: Statement,
    limit: Duration,
    work: impl Future<Output = clickhouse::error::Result<T>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, work.instrument(statement.span.clone())).await;
    let done = done.unwrap_or(Err(clickhouse::error::Error::TimedOut));
    statement.end(done.as_ref().err().map(kind));
    Ok(done?)
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
