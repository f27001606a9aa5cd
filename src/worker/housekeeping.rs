//! Removes what is kept for a time only and no request looks at any more: answers under idempotency keys, and
//! windows of the rate limit; and adds up changes that were only noted. Each statement takes a bounded number of rows,
//! so that none holds locks for long.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::store::analytics::overview;
use crate::store::{Error, idempotency, rate_limits};

/// How often there is a look for what can go.
const EVERY: Duration = Duration::from_secs(60);
/// Rows that one statement takes.
const BATCH: u64 = 5_000;

/// Cleans up regularly until told to stop. Several processes may do so at once.
pub async fn run(pg: PgPool, stop: CancellationToken) {
    let mut turn = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = turn.tick() => {}
        }
        if let Err(error) = clean(&pg, &stop).await {
            tracing::warn!(%error, "cannot remove what is kept no longer; trying again in a minute");
        }
    }
}

async fn clean(pg: &PgPool, stop: &CancellationToken) -> Result<(), Error> {
    while !stop.is_cancelled() && idempotency::remove_expired(pg, BATCH as i64).await? == BATCH {}
    while !stop.is_cancelled() && rate_limits::remove_ended(pg, BATCH as i64).await? == BATCH {}
    while !stop.is_cancelled() && overview::add_up_post_days(pg, BATCH as i64).await? == BATCH {}
    Ok(())
}
