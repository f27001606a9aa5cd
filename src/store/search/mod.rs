//! Search over usernames, creator names and captions: candidates from an index on disk, truth from Postgres.
//!
//! The index of a process only says which records may match; Postgres then decides by their present text, ranks and
//! fills them, so that a renamed, deleted or foreign record is never shown wrongly, however far the index is behind.
//! How the index is kept current is `worker::indexer`'s matter, what a search costs stands in docs/search.md.

mod candidates;
pub mod changes;
mod folder;
mod grams;
mod index;
mod ranking;
mod sections;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use tokio::sync::watch;
use uuid::Uuid;

use super::Error;
use super::write::Entity;
use crate::failpoint;
use crate::model::text::fold_case;
use changes::{Document, IndexPosition};
use folder::Folder;
use index::Index;

pub use sections::{AccountHit, CreatorHit, VideoHit};

/// The most matches per section.
const CAP: usize = 25;
/// The most videos for a query of one or two characters.
const SHORT_QUERY_VIDEO_CAP: usize = 10;

/// What a search found, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sections {
    /// Accounts whose username matches.
    pub accounts: Vec<AccountHit>,
    /// Creators whose name matches.
    pub creators: Vec<CreatorHit>,
    /// Videos whose caption matches, account-discovered or individually tracked.
    pub videos: Vec<VideoHit>,
    #[serde(skip)]
    pub effective_caps: EffectiveCaps,
}

/// Maximum number of matches per section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectiveCaps {
    /// Maximum number of accounts.
    #[schemars(example = 10)]
    pub accounts: usize,
    /// Maximum number of creators.
    #[schemars(example = 10)]
    pub creators: usize,
    /// Maximum number of videos; lower if the query has fewer than three characters.
    #[schemars(example = 10)]
    pub videos: usize,
}

impl EffectiveCaps {
    fn new(query: &str, limit: usize) -> Self {
        let cap = limit.min(CAP);
        let short = query.chars().nth(2).is_none();
        EffectiveCaps {
            accounts: cap,
            creators: cap,
            videos: if short { cap.min(SHORT_QUERY_VIDEO_CAP) } else { cap },
        }
    }
}

/// How far an index follows Postgres.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    applied: i64,
    caught_up: Option<Instant>,
}

/// The search index of this process. Cheap to clone.
#[derive(Clone)]
pub struct SearchIndex {
    shared: Arc<Shared>,
}

struct Shared {
    folder: Folder,
    current: RwLock<DiskIndex>,
    progress: watch::Sender<Progress>,
}

/// One index on disk, as it is written. Cheap to clone.
#[derive(Clone)]
pub struct DiskIndex(Arc<Index>);

/// The place in the change sequence of the index that a folder holds, or why a process would build another one. The folder
/// stays whose it is. Blocks on files.
pub fn read_position(folder: &Path) -> Result<IndexPosition, String> {
    folder::read_position(folder)
}

impl SearchIndex {
    /// Opens the index in a folder, which belongs to this process alone; makes it when it is missing, and anew when
    /// it is damaged or of another format. Reads the whole index once, so it is not to be called on an async thread.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (folder, index) = Folder::open(folder)?;
        let current = RwLock::new(DiskIndex(Arc::new(index)));
        let progress = watch::channel(Progress::default()).0;
        Ok(SearchIndex { shared: Arc::new(Shared { folder, current, progress }) })
    }

    /// Finds the records of an organization whose text contains the query, whatever the case.
    ///
    /// The query counts without the white space around it; an empty one finds nothing.
    pub async fn search(
        &self,
        pg: &PgPool,
        organization: Uuid,
        query: &str,
        limit: usize,
    ) -> Result<Sections, Error> {
        let query = fold_case(query.trim());
        let caps = EffectiveCaps::new(&query, limit);
        // Postgres stores no NUL, so nothing contains one.
        if query.is_empty() || query.contains('\0') {
            return Ok(Sections { accounts: vec![], creators: vec![], videos: vec![], effective_caps: caps });
        }
        let index = self.current().0;
        let search = ranking::Search { pg, index: &index, organization, query: &query };
        let (accounts, creators, videos) = tokio::try_join!(
            search.ranked(caps.accounts),
            search.creators(caps.creators),
            search.ranked(caps.videos),
        )?;
        Ok(Sections { accounts, creators, videos, effective_caps: caps })
    }

    /// The index in use.
    pub fn current(&self) -> DiskIndex {
        self.shared.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes an empty index beside the one in use, which stays in use until [`SearchIndex::swap`].
    pub async fn create_next(&self) -> Result<DiskIndex, Error> {
        let (shared, current) = (self.shared.clone(), self.current());
        blocking(move || {
            // What an attempt that failed has left.
            shared.folder.keep(&current.0)?;
            Ok(DiskIndex(Arc::new(shared.folder.create_next()?)))
        })
        .await
    }

    /// Uses another index from now on and removes the former one. A search that has begun ends on that.
    pub async fn swap(&self, next: DiskIndex) -> Result<(), Error> {
        let former = {
            let mut current = self.shared.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, next.clone())
        };
        failpoint::reached("index-swapped");
        let shared = self.shared.clone();
        blocking(move || {
            former.0.close()?;
            shared.folder.keep(&next.0)
        })
        .await
    }

    /// The number below which every transaction's changes can be found; 0 until the index is complete.
    pub fn applied_txid(&self) -> i64 {
        self.shared.progress.borrow().applied
    }

    /// Waits until the changes of a transaction, and of all before it, can be found.
    pub async fn wait_applied(&self, txid: i64) {
        // The sender lives in self, so that waiting for it cannot fail.
        let _ = self.shared.progress.subscribe().wait_for(|progress| progress.applied > txid).await;
    }

    /// How long ago the index last held everything that was committed; `None` while it is first built.
    pub fn lag(&self) -> Option<Duration> {
        self.shared.progress.borrow().caught_up.map(|at| at.elapsed())
    }

    /// The number of records that can be found, of all organizations.
    pub fn document_count(&self) -> u64 {
        self.current().0.searcher().document_count()
    }

    /// The place in the change sequence that the index on disk has; `None` when it was never complete.
    pub fn position(&self) -> Option<IndexPosition> {
        self.current().position()
    }

    /// Notes that everything can be found of the transactions below a number, and whether nothing else is left.
    pub fn record_progress(&self, txid: i64, caught_up: bool) {
        self.shared.progress.send_modify(|progress| {
            progress.applied = progress.applied.max(txid);
            if caught_up {
                progress.caught_up = Some(Instant::now());
            }
        });
    }

    /// Notes that the index in use cannot follow Postgres and has to be made anew.
    pub fn reset_progress(&self) {
        self.shared.progress.send_replace(Progress::default());
    }
}

impl DiskIndex {
    /// The place in the change sequence that it has on disk; `None` when it was never complete.
    pub fn position(&self) -> Option<IndexPosition> {
        self.0.position()
    }

    /// Empties it. What it held can be found until the next commit.
    pub async fn clear(&self) -> Result<(), Error> {
        let index = self.0.clone();
        blocking(move || index.clear()).await
    }

    /// Adds documents that it does not hold, to be found after the next commit.
    pub async fn add(&self, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.0.clone();
        blocking(move || index.add(documents)).await
    }

    /// Replaces the named documents by what is left of them, to be found after the next commit.
    pub async fn replace(&self, named: Vec<(Entity, Uuid)>, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.0.clone();
        blocking(move || index.replace(named, documents)).await
    }

    /// Removes all that organizations had, no more to be found after the next commit.
    pub async fn remove_organizations(&self, organizations: Vec<Uuid>) -> Result<(), Error> {
        let index = self.0.clone();
        blocking(move || index.remove_organizations(organizations)).await
    }

    /// Writes those of its files anew that still hold documents which were replaced or removed, and says how many those
    /// were. It is searched and written meanwhile.
    pub async fn purge_deleted(&self) -> Result<u64, Error> {
        let index = self.0.clone();
        blocking(move || index.purge_deleted()).await
    }

    /// How many documents its files hold that were replaced or removed.
    pub async fn deleted_count(&self) -> Result<u64, Error> {
        let index = self.0.clone();
        blocking(move || index.deleted_count()).await
    }

    /// Makes everything so far durable and findable, together with the position that it corresponds to; without
    /// one the index counts as incomplete.
    pub async fn commit(&self, position: Option<IndexPosition>) -> Result<(), Error> {
        let index = self.0.clone();
        blocking(move || index.commit(position)).await
    }
}

/// Runs what reads files and computes on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Search(format!("stopped in the middle of its work: {error}"))),
    }
}
