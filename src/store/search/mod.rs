//! Search over usernames, creator names and captions: candidates from a Tantivy index, verified and ranked by Postgres.
//!
//! Postgres decides by the current text, so a renamed, deleted or foreign record is never shown wrongly, however far the
//! index lags. `worker::indexer` updates the index; docs/search.md has the cost of a search.

mod candidates;
pub mod changes;
mod fields;
mod folder;
mod grams;
mod index;
mod ranking;
mod sections;
mod strategy;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use tokio::sync::watch;
use uuid::Uuid;

use crate::failpoint;
use crate::model::text::search_key;
use crate::store::Error;
use changes::IndexPosition;
use folder::IndexFolder;
use index::run_blocking;

pub use folder::read_position;
pub use index::DiskIndex;
pub use sections::{AccountHit, CreatorHit, VideoHit};

const MAX_MATCHES: usize = 25;
/// For a query of one or two characters.
const MAX_SHORT_QUERY_VIDEOS: usize = 10;

/// Search results, best first.
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
        let cap = limit.min(MAX_MATCHES);
        let is_short = query.chars().nth(2).is_none();
        EffectiveCaps {
            accounts: cap,
            creators: cap,
            videos: if is_short { cap.min(MAX_SHORT_QUERY_VIDEOS) } else { cap },
        }
    }
}

/// How far the index follows Postgres.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    applied_txid: i64,
    caught_up: Option<Instant>,
}

/// The search index of this process. Cheap to clone.
#[derive(Clone)]
pub struct SearchIndex {
    folder: Arc<IndexFolder>,
    current: Arc<RwLock<Arc<DiskIndex>>>,
    progress: watch::Sender<Progress>,
}

impl SearchIndex {
    /// Opens the index in a folder and locks the folder; creates it if it is missing, damaged or of another format.
    /// Blocking: verifies the checksums of all files.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (folder, index) = IndexFolder::open(folder)?;
        Ok(SearchIndex {
            folder: Arc::new(folder),
            current: Arc::new(RwLock::new(Arc::new(index))),
            progress: watch::Sender::default(),
        })
    }

    /// Finds the records of an organization whose text contains the trimmed query, both as search keys.
    pub async fn search(
        &self,
        pg: &PgPool,
        organization: Uuid,
        query: &str,
        limit: usize,
    ) -> Result<Sections, Error> {
        let caps = EffectiveCaps::new(query.trim(), limit);
        let query = search_key(query.trim());
        // Postgres cannot store NUL.
        if query.is_empty() || query.contains('\0') {
            return Ok(Sections { accounts: vec![], creators: vec![], videos: vec![], effective_caps: caps });
        }
        let index = self.current();
        let search = ranking::Search { pg, index: &index, organization, query: &query };
        let found = search.find_sections(caps).await;
        if let Err(Error::Search(_)) = &found {
            index.mark_suspect();
        }
        found
    }

    /// The index in use.
    pub fn current(&self) -> Arc<DiskIndex> {
        self.current.read().clone()
    }

    /// Creates an empty index, which replaces the one in use by [`SearchIndex::swap`].
    pub async fn create_next(&self) -> Result<Arc<DiskIndex>, Error> {
        let (folder, current) = (Arc::clone(&self.folder), self.current());
        run_blocking(move || {
            folder.restore()?;
            // Failed attempts may have left others.
            folder.remove_all_but(&current)?;
            Ok(Arc::new(folder.create_next(Some(current.as_ref()))?))
        })
        .await
    }

    /// Replaces a damaged index by an empty one, which has no position.
    pub async fn replace_damaged(&self) -> Result<Arc<DiskIndex>, Error> {
        self.reset_progress();
        let next = self.create_next().await?;
        self.swap(Arc::clone(&next)).await?;
        Ok(next)
    }

    /// Switches to another index and removes the previous one. Running searches finish on that.
    pub async fn swap(&self, next: Arc<DiskIndex>) -> Result<(), Error> {
        let previous = {
            let mut current = self.current.write();
            std::mem::replace(&mut *current, next.clone())
        };
        failpoint::reached("index-swapped");
        let folder = Arc::clone(&self.folder);
        run_blocking(move || {
            previous.close()?;
            folder.remove_all_but(&next)
        })
        .await
    }

    /// All transactions with a lower id are applied; 0 until the index is complete.
    pub fn applied_txid(&self) -> i64 {
        self.progress.borrow().applied_txid
    }

    /// Waits until a transaction and all before it are searchable.
    pub async fn wait_applied(&self, txid: i64) {
        // Cannot fail, because the sender is in self.
        let _ = self.progress.subscribe().wait_for(|progress| progress.applied_txid > txid).await;
    }

    /// The time since the index had everything that was committed; None while it is first built.
    pub fn lag(&self) -> Option<Duration> {
        self.progress.borrow().caught_up.map(|at| at.elapsed())
    }

    /// The number of searchable records of all organizations.
    pub fn document_count(&self) -> u64 {
        self.current().document_count()
    }

    /// The position of the index in the change sequence; None while it is incomplete.
    pub fn position(&self) -> Option<IndexPosition> {
        self.current().position()
    }

    /// Records that all transactions below an id are applied, and whether nothing is pending.
    pub fn record_progress(&self, txid: i64, caught_up: bool) {
        self.progress.send_modify(|progress| {
            progress.applied_txid = progress.applied_txid.max(txid);
            if caught_up {
                progress.caught_up = Some(Instant::now());
            }
        });
    }

    /// Records that the index in use cannot follow Postgres and is rebuilt.
    pub fn reset_progress(&self) {
        self.progress.send_replace(Progress::default());
    }
}
