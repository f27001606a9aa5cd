//! Keeps this process's search index current with Postgres.
//!
//! It applies changes in batches. An index that cannot resume, because it is of another database or too old, is rebuilt, and
//! so is one with damaged or deleted files, for which it looks when something fails.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::passes::{self, PassTask};
use super::schedule::{PURGE_INTERVAL, Schedule};
use super::timeout;
use crate::app::{Clock, Databases};
use crate::failpoint;
use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::search::changes::{self, ChangeBatch, IndexPosition};
use crate::store::search::{DiskIndex, SearchIndex};

/// The shortest pause between batches: a write is found after at most this and a commit of the index.
const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// The limit where many records change: a pause is as long as the batch before it took, so that commits are few and large.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// After so many documents the first build of an index makes them searchable.
const BUILD_COMMIT_DOCUMENTS: usize = 50_000;
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often at most the indexer registers its position, for which imports and `tidemark reindex` wait.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// How often the files of an index are checked while it is suspect.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// How often changes that all indexers have applied are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);

/// Follows Postgres until it is stopped, and retries after failures.
pub async fn run(databases: Databases, index: SearchIndex, stop: CancellationToken) {
    let (clock, schedule) = (databases.clock, Schedule::new(PURGE_INTERVAL));
    let purge = IndexPurge { index: index.clone(), clock, schedule };
    let _purge = AbortOnDropHandle::new(tokio::spawn(passes::run(purge, stop.clone())));
    let mut indexer = Indexer {
        pg: databases.pg,
        index,
        follower_id: Uuid::now_v7(),
        last_registered: None,
        last_prune: None,
        last_check: None,
    };
    let mut failures = 0;
    while let Some(Err(error)) = stop.run_until_cancelled(indexer.follow(&mut failures)).await {
        if matches!(error, Error::Search(_)) {
            indexer.index.current().mark_suspect();
        }
        if failures == 0 {
            tracing::warn!(%error, "search indexing failed, retrying");
        }
        failures += 1;
        let delay = POLL_INTERVAL.saturating_mul(1 << failures.min(10)).min(MAX_RETRY_DELAY);
        if stop.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            break;
        }
    }
    // Otherwise imports and `tidemark reindex` would wait for this index until its registration expires.
    let unregistered = changes::unregister_follower(&indexer.pg, indexer.follower_id);
    let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, unregistered).await;
}

struct Indexer {
    pg: PgPool,
    index: SearchIndex,
    follower_id: Uuid,
    last_registered: Option<Instant>,
    last_prune: Option<Instant>,
    /// When the files of a suspect index were found intact.
    last_check: Option<Instant>,
}

/// The rebuild of an index, while the current one is searched and updated.
enum IndexRebuild {
    Building(AbortOnDropHandle<Result<IndexPosition, Error>>, Arc<DiskIndex>),
    /// Built, and applying the changes since then until it has those of the current index.
    CatchingUp(Arc<DiskIndex>, IndexPosition),
}

impl Indexer {
    /// Applies changes until something fails.
    async fn follow(&mut self, failures: &mut u32) -> Result<Infallible, Error> {
        let mut writes = notifications::subscribe(&[Topic::Writes]);
        let mut position = self.start().await?;
        let mut has_progress = true;
        let mut rebuild = None;
        loop {
            let started = Instant::now();
            if self.index.current().is_suspect() {
                return Err(Error::Search("a search or a purge failed".to_owned()));
            }
            let batch = apply_batch(&self.pg, &self.index.current(), &position).await?;
            has_progress |= !batch.is_empty();
            position = batch.next;
            self.index.record_progress(position.txid, batch.is_last);
            self.register(&position, batch.is_last && has_progress).await?;
            if rebuild.is_none() && batch.generation > position.generation {
                tracing::info!("rebuilding the search index");
                let next = self.index.create_next().await?;
                rebuild = Some(IndexRebuild::Building(build(&self.pg, &next, false), next));
            }
            if let Some(current) = rebuild.take() {
                rebuild = self.continue_rebuild(current, &mut position).await?;
                has_progress |= rebuild.is_none();
            }
            if batch.is_last {
                has_progress = false;
                if *failures > 0 {
                    tracing::info!(failures, "search indexing works again");
                    *failures = 0;
                }
                if self.last_prune.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL) {
                    timeout::long(changes::prune(&self.pg)).await?;
                    self.last_prune = Some(Instant::now());
                }
                let pause = started.elapsed().clamp(POLL_INTERVAL, MAX_POLL_INTERVAL);
                writes.wait(pause, rebuild.is_some() || !batch.is_settled).await;
            }
        }
    }

    /// Returns the position of the index, after building one that cannot resume.
    async fn start(&mut self) -> Result<IndexPosition, Error> {
        let mut current = self.index.current();
        if current.is_suspect() {
            // Not again and again, because it reads all files: a full disk makes every write fail.
            let is_due = self.last_check.is_none_or(|at| at.elapsed() >= CHECK_INTERVAL);
            if is_due && let Some(damage) = current.find_damage().await? {
                tracing::warn!(damage, "the search index is damaged, rebuilding it");
                current = self.index.replace_damaged().await?;
            } else if is_due {
                self.last_check = Some(Instant::now());
            }
            current.clear_suspicion();
        }
        let (mut task, next) = match current.position() {
            Some(position) if timeout::long(changes::can_resume(&self.pg, &position)).await? => {
                return Ok(position);
            }
            // The old index is searched until the new one is built. Results are read from Postgres, so they are current.
            Some(_) => {
                self.index.reset_progress();
                let next = self.index.create_next().await?;
                (build(&self.pg, &next, false), Some(next))
            }
            None => (build(&self.pg, &current, true), None),
        };
        let no_position = IndexPosition { database: String::new(), txid: 0, position: 0, generation: 0 };
        let position = loop {
            match tokio::time::timeout(HEARTBEAT_INTERVAL, &mut task).await {
                Ok(joined) => break built_position(joined)?,
                Err(_) => self.register(&no_position, false).await?,
            }
        };
        if let Some(next) = next {
            self.index.swap(next).await?;
        }
        Ok(position)
    }

    /// Continues a rebuild. Swaps the indexes once the new one has all changes of the current one.
    async fn continue_rebuild(
        &self,
        rebuild: IndexRebuild,
        position: &mut IndexPosition,
    ) -> Result<Option<IndexRebuild>, Error> {
        Ok(match rebuild {
            IndexRebuild::Building(task, next) if task.is_finished() => {
                Some(IndexRebuild::CatchingUp(next, built_position(task.await)?))
            }
            IndexRebuild::CatchingUp(next, next_position) => {
                let batch = apply_batch(&self.pg, &next, &next_position).await?;
                if batch.is_last && batch.next.txid >= position.txid {
                    next.commit(Some(batch.next.clone())).await?;
                    *position = batch.next;
                    self.index.swap(next).await?;
                    tracing::info!("the rebuilt search index is in use");
                    None
                } else {
                    Some(IndexRebuild::CatchingUp(next, batch.next))
                }
            }
            building @ IndexRebuild::Building(..) => Some(building),
        })
    }

    /// Publishes the position of this index: at once after progress, otherwise as a heartbeat.
    async fn register(&mut self, position: &IndexPosition, has_progress: bool) -> Result<(), Error> {
        let is_due = self.last_registered.is_none_or(|at| at.elapsed() >= HEARTBEAT_INTERVAL);
        if has_progress || is_due {
            let (txid, generation) = (position.txid, position.generation);
            let registered = changes::register_follower(&self.pg, self.follower_id, txid, generation);
            timeout::short(registered).await?;
            self.last_registered = Some(Instant::now());
        }
        Ok(())
    }
}

/// Rewrites index files that contain deleted documents, whenever that is due.
struct IndexPurge {
    index: SearchIndex,
    clock: Clock,
    schedule: Schedule,
}

impl PassTask for IndexPurge {
    const FAILURE: &'static str = "cannot purge deleted documents from the search index";
    const INTERVAL: Duration = HEARTBEAT_INTERVAL;

    async fn run_pass(&mut self) -> Result<(), Error> {
        let now = self.clock.now().await;
        if self.schedule.is_due(now) {
            let index = self.index.current();
            let documents = index.purge_deleted().await.inspect_err(|_| index.mark_suspect())?;
            if documents > 0 {
                tracing::info!(documents, "deleted documents purged from the search index");
            }
            self.schedule.record_run(now);
        }
        Ok(())
    }
}

/// Applies the next changes to an index.
async fn apply_batch(
    pg: &PgPool,
    index: &Arc<DiskIndex>,
    position: &IndexPosition,
) -> Result<ChangeBatch, Error> {
    let batch = timeout::long(changes::read_batch(pg, position)).await?;
    if !batch.is_empty() {
        let documents = timeout::long(changes::read_documents(pg, &batch.records)).await?;
        index.replace(batch.records.clone(), documents).await?;
        index.remove_organizations(batch.removed_organizations.clone()).await?;
        index.commit(Some(batch.next.clone())).await?;
        failpoint::reached("index-committed");
    }
    Ok(batch)
}

/// Fills an index from Postgres, and returns the position from which it continues. With `commit_partial`, documents are
/// searchable before the index is complete.
fn build(
    pg: &PgPool,
    index: &Arc<DiskIndex>,
    commit_partial: bool,
) -> AbortOnDropHandle<Result<IndexPosition, Error>> {
    let (pg, index) = (pg.clone(), index.clone());
    AbortOnDropHandle::new(tokio::spawn(async move {
        let started = Instant::now();
        let position = timeout::short(changes::current_position(&pg)).await?;
        index.clear().await?;
        let (mut documents, mut committed) = (0, 0);
        for entity in changes::ENTITIES {
            let mut after = Uuid::nil();
            loop {
                let page = timeout::long(changes::read_page(&pg, entity, after)).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                documents += page.len();
                index.add(page).await?;
                failpoint::reached("index-page-added");
                if commit_partial && documents - committed >= BUILD_COMMIT_DOCUMENTS {
                    index.commit(None).await?;
                    committed = documents;
                }
            }
        }
        index.commit(Some(position.clone())).await?;
        failpoint::reached("index-built");
        tracing::info!(documents, seconds = started.elapsed().as_secs_f64(), "search index built");
        Ok(position)
    }))
}

fn built_position(joined: Result<Result<IndexPosition, Error>, JoinError>) -> Result<IndexPosition, Error> {
    joined.unwrap_or_else(|error| Err(Error::Search(format!("the index build was aborted: {error}"))))
}
