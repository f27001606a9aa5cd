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
use crate::failpoint;
use crate::store::Error;
use crate::store::search::{SearchIndex, changes};

/// How often Postgres is asked for changes: a write can be found after this and a commit of the index.
const POLL: Duration = Duration::from_millis(150);
/// Documents after which an index that is built for the first time shows what it has.
const SHOWN_EVERY: usize = 50_000;
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often others are told that this follower lives.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How often changes that nobody needs any more are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Keeps the index current until it is stopped. A failure is told once, and so is its end.
pub async fn follow(stores: Stores, index: SearchIndex, stop: CancellationToken) {
    let mut follower = Follower { pg: stores.pg, index, id: Uuid::now_v7(), announced: None, pruned: None };
    let mut failures = 0;
    while let Some(Err(error)) = stop.run_until_cancelled(follower.keep_current(&mut failures)).await {
        if failures == 0 {
            tracing::warn!(%error, "the search index cannot follow postgres and keeps trying");
        }
        failures += 1;
        let pause = POLL.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            break;
        }
    }
    // Whoever waits for this follower would otherwise find out by its silence.
    let _ = tokio::time::timeout(HEARTBEAT, changes::leave(&follower.pg, follower.id)).await;
}

struct Follower {
    pg: PgPool,
    index: SearchIndex,
    id: Uuid,
    /// When others last heard of this follower.
    announced: Option<Instant>,
    pruned: Option<Instant>,
}

impl Follower {
    /// Follows from where the index stands until something fails.
    async fn keep_current(&mut self, failures: &mut u32) -> Result<Infallible, Error> {
        let mut position = match self.index.position() {
            Some(position) if changes::can_follow(&self.pg, &position).await? => position,
            _ => self.build().await?,
        };
        let mut news = true;
        loop {
            let batch = changes::read(&self.pg, &position).await?;
            if !batch.named.is_empty() {
                let documents = changes::documents(&self.pg, &batch.named).await?;
                self.index.replace(batch.named, documents).await?;
                self.index.commit(Some(batch.next.clone())).await?;
                failpoint::reached("index-committed");
                news = true;
            }
            position = batch.next;
            if batch.complete {
                self.index.reached(position.txid);
                self.announce(position.txid, news).await?;
                news = false;
                if *failures > 0 {
                    tracing::info!(failures, "the search index follows postgres again");
                    *failures = 0;
                }
                if self.pruned.is_none_or(|at| at.elapsed() >= PRUNE_EVERY) {
                    changes::prune(&self.pg).await?;
                    self.pruned = Some(Instant::now());
                }
                tokio::time::sleep(POLL).await;
            } else {
                self.announce(position.txid, false).await?;
            }
        }
    }

    /// Builds the index from what Postgres holds and returns the position from which it has to follow.
    ///
    /// An index that was complete before stays as it is until the new one is; one that was not grows in sight.
    async fn build(&mut self) -> Result<changes::Position, Error> {
        let began = Instant::now();
        let in_sight = self.index.position().is_none();
        let start = changes::start(&self.pg).await?;
        self.index.clear().await?;
        let (mut documents, mut shown) = (0, 0);
        for entity in changes::ENTITIES {
            let mut after = Uuid::nil();
            loop {
                self.announce(0, false).await?;
                let page = changes::page(&self.pg, entity, after).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                documents += page.len();
                self.index.add(page).await?;
                if in_sight && documents - shown >= SHOWN_EVERY {
                    self.index.commit(None).await?;
                    shown = documents;
                }
            }
        }
        self.index.commit(Some(start.clone())).await?;
        tracing::info!(documents, seconds = began.elapsed().as_secs_f64(), "the search index is built");
        Ok(start)
    }

    /// Tells others how far this follower is: at once when there is news, else once in a while.
    async fn announce(&mut self, horizon: i64, news: bool) -> Result<(), Error> {
        let due = self.announced.is_none_or(|at| at.elapsed() >= HEARTBEAT);
        if news || due {
            changes::announce(&self.pg, self.id, horizon).await?;
            self.announced = Some(Instant::now());
        }
        Ok(())
    }
}
