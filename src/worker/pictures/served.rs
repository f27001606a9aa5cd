//! The loop of an API process that checks whether the media folder is there, and records which copies were served.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::media::MediaReader;
use crate::store::pictures;
use crate::worker::timeout;

/// How long responses show copies of a folder that was lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// In units of [`CHECK_INTERVAL`].
const RECORD_INTERVAL: u32 = 60;
/// Copies that one statement records.
const BATCH_COPIES: usize = 5_000;

/// Runs until it is stopped.
pub async fn run_for_api(pg: PgPool, media: MediaReader, stop: CancellationToken) {
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    let mut ticks: u32 = 0;
    while stop.run_until_cancelled(interval.tick()).await.is_some() {
        media.check_folder().await;
        ticks = ticks.wrapping_add(1);
        if ticks.is_multiple_of(RECORD_INTERVAL) {
            for names in media.take_served().chunks(BATCH_COPIES) {
                if let Err(error) = timeout::short(pictures::record_served(&pg, names)).await {
                    tracing::debug!(%error, "cannot record which pictures were served");
                }
            }
        }
    }
}
