//! Keeps the rollups in memory up to date, so that requests rarely wait for it.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::timeout;
use crate::store::analytics::HistoryReader;

/// How often the versions of the organizations in memory are read, unless that takes longer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const RETRY_DELAY: Duration = Duration::from_secs(1);
const PING_INTERVAL: Duration = Duration::from_millis(250);

/// Follows until it is stopped. While it fails, requests read what they lack.
pub async fn run(pg: PgPool, history: HistoryReader, stop: CancellationToken) {
    let history = history.with_log_comment("rollup cache");
    tokio::join!(check_clickhouse(&history, &stop), follow(&pg, &history, &stop));
}

async fn check_clickhouse(history: &HistoryReader, stop: &CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(PING_INTERVAL)).await.is_some() {
        history.check_clickhouse().await;
    }
}

async fn follow(pg: &PgPool, history: &HistoryReader, stop: &CancellationToken) {
    let mut pause = POLL_INTERVAL;
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        let started = Instant::now();
        pause = match timeout::short(history.follow(pg)).await {
            Ok(()) => POLL_INTERVAL.max(started.elapsed()),
            Err(error) => {
                tracing::debug!(%error, "cannot update the rollups in memory");
                RETRY_DELAY
            }
        };
    }
}
