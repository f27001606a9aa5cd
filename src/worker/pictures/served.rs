//! The loop of an API process that checks whether the media folder is there, and records which copies were served or are
//! damaged.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::media::MediaReader;
use crate::store::{Error, pictures};
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
        if let Err(error) = timeout::short(remove_damaged(&pg, &media)).await {
            tracing::debug!(%error, "cannot remove damaged pictures");
        }
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

/// Has damaged copies fetched again, once the secret that tells them is known.
async fn remove_damaged(pg: &PgPool, media: &MediaReader) -> Result<(), Error> {
    if !media.checks_copies() {
        pictures::find_secret(pg).await?.into_iter().for_each(|secret| media.set_secret(secret));
    }
    let damaged = media.take_damaged().await;
    if !damaged.is_empty() {
        tracing::warn!(
            count = damaged.len(),
            "copies of pictures are damaged, the next scrapes fetch them again"
        );
        pictures::remove_damaged(pg, &damaged).await?;
    }
    Ok(())
}
