//! The follower that keeps this process's search index current with Postgres.
//!
//! It builds the index where none can go on, then applies change after change for as long as the process lives,
//! whatever happens to Postgres meanwhile. What a document is and how one is found is `store::search`'s matter.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::schedule::Schedule;
use crate::app::{Clock, Databases};
use crate::failpoint;
use crate::store::Error;
use crate::store::search::changes::{self, ChangeBatch, IndexPosition};
use crate::store::search::{DiskIndex, SearchIndex};

/// How often Postgres is asked for changes: a write can be found after this and a commit of the index.
const POLL: Duration = Duration::from_millis(150);
/// Documents after which an index that is built for the first time shows what it has.
const SHOWN_EVERY: usize = 50_000;
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often others are told that this follower lives.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How often files are written anew that still hold what was removed: well below the 24 hours within which it has to be
/// gone.
const REWRITE_EVERY: TimeDelta = TimeDelta::hours(12);
/// How often changes that nobody needs any more are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Keeps the index current until it is stopped. A failure is told once, and so is its end.
pub async fn run(stores: Databases, index: SearchIndex, stop: CancellationToken) {
    let _rewriting = AbortOnDropHandle::new(tokio::spawn(rewrite(index.clone(), stores.clock)));
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
    let _ = tokio::time::timeout(HEARTBEAT, changes::unregister_follower(&follower.pg, follower.id)).await;
}

struct Follower {
    pg: PgPool,
    index: SearchIndex,
    id: Uuid,
    /// When others last heard of this follower.
    announced: Option<Instant>,
    pruned: Option<Instant>,
}

/// An index that is rebuilt next to the one in use.
enum Rebuild {
    Building(AbortOnDropHandle<Result<IndexPosition, Error>>, DiskIndex),
    /// It holds everything up to a position and follows from there until it knows what the other one knows.
    Following(DiskIndex, IndexPosition),
}

impl Follower {
    /// Follows from where the index stands until something fails.
    async fn keep_current(&mut self, failures: &mut u32) -> Result<Infallible, Error> {
        let mut position = self.start().await?;
        let mut news = true;
        let mut rebuild = None;
        loop {
            let batch = advance(&self.pg, &self.index.current(), &position).await?;
            news |= !batch.is_empty();
            position = batch.next;
            self.index.record_progress(position.txid, batch.complete);
            self.announce(&position, batch.complete && news).await?;
            if rebuild.is_none() && batch.generation > position.generation {
                tracing::info!("the search index is rebuilt next to the one in use");
                let next = self.index.create_next().await?;
                rebuild = Some(Rebuild::Building(build(&self.pg, &next, false), next));
            }
            if let Some(current) = rebuild.take() {
                rebuild = self.go_on(current, &mut position).await?;
                news |= rebuild.is_none();
            }
            if batch.complete {
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
            }
        }
    }

    /// Returns the position from which the index has to follow, after it was built where none can go on.
    async fn start(&mut self) -> Result<IndexPosition, Error> {
        let current = self.index.current();
        let (mut task, next) = match current.position() {
            Some(position) if changes::can_resume(&self.pg, &position).await? => return Ok(position),
            // What it has can be found until another one has all: Postgres says what is still so.
            Some(_) => {
                self.index.reset_progress();
                let next = self.index.create_next().await?;
                (build(&self.pg, &next, false), Some(next))
            }
            None => (build(&self.pg, &current, true), None),
        };
        let nothing = IndexPosition { database: String::new(), txid: 0, position: 0, generation: 0 };
        let position = loop {
            match tokio::time::timeout(HEARTBEAT, &mut task).await {
                Ok(done) => break finished(done)?,
                Err(_) => self.announce(&nothing, false).await?,
            }
        };
        if let Some(next) = next {
            self.index.swap(next).await?;
        }
        Ok(position)
    }

    /// Goes on with an index that is made anew. Once it knows all that the one in use knows, it takes its place.
    async fn go_on(&self, rebuild: Rebuild, position: &mut IndexPosition) -> Result<Option<Rebuild>, Error> {
        Ok(match rebuild {
            Rebuild::Building(task, next) if task.is_finished() => {
                Some(Rebuild::Following(next, finished(task.await)?))
            }
            Rebuild::Following(next, from) => {
                let batch = advance(&self.pg, &next, &from).await?;
                if batch.complete && batch.next.txid >= position.txid {
                    next.commit(Some(batch.next.clone())).await?;
                    *position = batch.next;
                    self.index.swap(next).await?;
                    tracing::info!("searches use the search index that was made anew");
                    None
                } else {
                    Some(Rebuild::Following(next, batch.next))
                }
            }
            building @ Rebuild::Building(..) => Some(building),
        })
    }

    /// Tells others how far this follower is: at once when there is news, else once in a while.
    async fn announce(&mut self, position: &IndexPosition, news: bool) -> Result<(), Error> {
        let due = self.announced.is_none_or(|at| at.elapsed() >= HEARTBEAT);
        if news || due {
            changes::register_follower(&self.pg, self.id, position.txid, position.generation).await?;
            self.announced = Some(Instant::now());
        }
        Ok(())
    }
}

/// Writes the files anew that hold what was removed, whenever it is time. The index is followed and searched meanwhile.
async fn rewrite(index: SearchIndex, clock: Clock) {
    let mut schedule = Schedule::new(REWRITE_EVERY);
    let mut failing = false;
    let mut turn = tokio::time::interval(HEARTBEAT);
    loop {
        turn.tick().await;
        let now = clock.now().await;
        if !schedule.is_due(now) {
            continue;
        }
        match index.current().purge_deleted().await {
            Ok(documents) => {
                if documents > 0 {
                    tracing::info!(documents, "the search index is written anew without what was removed");
                }
                failing = false;
                schedule.done(now);
            }
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::warn!(%error, "the search index still holds what was removed; trying on");
            }
            Err(error) => tracing::debug!(%error, "the search index still holds what was removed"),
        }
    }
}

/// Brings an index from a position to the next.
async fn advance(pg: &PgPool, index: &DiskIndex, position: &IndexPosition) -> Result<ChangeBatch, Error> {
    let batch = changes::read_batch(pg, position).await?;
    if !batch.is_empty() {
        let documents = changes::read_documents(pg, &batch.named).await?;
        index.replace(batch.named.clone(), documents).await?;
        index.remove_organizations(batch.gone.clone()).await?;
        index.commit(Some(batch.next.clone())).await?;
        failpoint::reached("index-committed");
    }
    Ok(batch)
}

/// Fills an index with what Postgres holds, in sight or to be shown only as a whole. Its result is the position from
/// which the index has to follow.
fn build(pg: &PgPool, index: &DiskIndex, in_sight: bool) -> AbortOnDropHandle<Result<IndexPosition, Error>> {
    let (pg, index) = (pg.clone(), index.clone());
    AbortOnDropHandle::new(tokio::spawn(async move {
        let began = Instant::now();
        let start = changes::current_position(&pg).await?;
        index.clear().await?;
        let (mut documents, mut shown) = (0, 0);
        for entity in changes::ENTITIES {
            let mut after = Uuid::nil();
            loop {
                let page = changes::read_page(&pg, entity, after).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                documents += page.len();
                index.add(page).await?;
                failpoint::reached("index-page-added");
                if in_sight && documents - shown >= SHOWN_EVERY {
                    index.commit(None).await?;
                    shown = documents;
                }
            }
        }
        index.commit(Some(start.clone())).await?;
        failpoint::reached("index-built");
        tracing::info!(documents, seconds = began.elapsed().as_secs_f64(), "the search index is built");
        Ok(start)
    }))
}

fn finished(
    done: Result<Result<IndexPosition, Error>, tokio::task::JoinError>,
) -> Result<IndexPosition, Error> {
    done.unwrap_or_else(|error| Err(Error::Search(format!("the building stopped: {error}"))))
}
