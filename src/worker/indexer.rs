//! The follower that keeps this process's search index current with Postgres.
//!
//! It builds the index where none can go on, then applies change after change for as long as the process lives,
//! whatever happens to Postgres meanwhile. What a document is and how one is found is `store::search`'s matter.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::app::Stores;
use crate::store::Error;
use crate::store::search::{SearchIndex, changes};

/// How often Postgres is asked for changes: a write can be found after this and a commit of the index.
const POLL: Duration = Duration::from_millis(150);
/// Documents after which an index that is built for the first time shows what it has.
const SHOWN_EVERY: usize = 50_000;
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Keeps the index current until it is stopped. A failure is told once, and so is its end.
pub async fn follow(stores: Stores, index: SearchIndex, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        let Some(Err(error)) = stop.run_until_cancelled(keep_current(&stores.pg, &index, &mut failures)).await else {
            return;
        };
        if failures == 0 {
            tracing::warn!(%error, "the search index cannot follow postgres and keeps trying");
        }
        failures += 1;
        let pause = POLL.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Follows from where the index stands until something fails.
async fn keep_current(pg: &PgPool, index: &SearchIndex, failures: &mut u32) -> Result<Infallible, Error> {
    let mut position = match index.position() {
        Some(position) if changes::can_follow(pg, &position).await? => position,
        _ => build(pg, index).await?,
    };
    loop {
        let batch = changes::read(pg, &position).await?;
        if !batch.named.is_empty() {
            let documents = changes::documents(pg, &batch.named).await?;
            index.replace(batch.named, documents).await?;
            index.commit(Some(batch.next.clone())).await?;
        }
        position = batch.next;
        if batch.complete {
            index.reached(position.txid);
            if *failures > 0 {
                tracing::info!(failures, "the search index follows postgres again");
                *failures = 0;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Builds the index from what Postgres holds and returns the position from which it has to follow.
///
/// An index that was complete before stays as it is until the new one is; one that was not grows in sight.
async fn build(pg: &PgPool, index: &SearchIndex) -> Result<changes::Position, Error> {
    let began = Instant::now();
    let in_sight = index.position().is_none();
    let start = changes::start(pg).await?;
    index.clear().await?;
    let (mut documents, mut shown) = (0, 0);
    for entity in changes::ENTITIES {
        let mut after = Uuid::nil();
        loop {
            let page = changes::page(pg, entity, after).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            documents += page.len();
            index.add(page).await?;
            if in_sight && documents - shown >= SHOWN_EVERY {
                index.commit(None).await?;
                shown = documents;
            }
        }
    }
    index.commit(Some(start.clone())).await?;
    tracing::info!(documents, seconds = began.elapsed().as_secs_f64(), "the search index is built");
    Ok(start)
}
