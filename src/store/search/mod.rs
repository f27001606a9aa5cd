//! Search over usernames, creator names and captions: candidates from an index on disk, truth from Postgres.
//!
//! The index of a process only says which records may match; Postgres then decides by their present text, ranks and
//! fills them, so that a renamed, deleted or foreign record is never shown wrongly, however far the index is behind.
//! How the index is kept current is `worker::indexer`'s matter.

pub mod changes;
mod grams;
mod index;
mod sections;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;
use tokio::sync::watch;
use uuid::Uuid;

use super::Error;
use super::write::Entity;
use crate::model::text::folded;
use changes::{Document, Position};
use index::Index;

pub use sections::{AccountHit, CreatorHit, VideoHit};

/// The most matches per section.
const CAP: usize = 25;
/// The most videos for a query of one or two characters.
const SHORT_QUERY_VIDEO_CAP: usize = 10;

/// What a search found, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sections {
    /// Accounts, by their usernames.
    pub accounts: Vec<AccountHit>,
    /// Creators, by their names.
    pub creators: Vec<CreatorHit>,
    /// Videos of either kind, by their captions.
    pub videos: Vec<VideoHit>,
    #[serde(skip)]
    pub effective_caps: EffectiveCaps,
}

/// The number of matches per section that was actually applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectiveCaps {
    /// Accounts at most.
    #[schemars(example = 10)]
    pub accounts: usize,
    /// Creators at most.
    #[schemars(example = 10)]
    pub creators: usize,
    /// Videos at most; fewer when the query is shorter than three characters.
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
    index: Arc<Index>,
    progress: Arc<watch::Sender<Progress>>,
}

impl SearchIndex {
    /// Opens the index in a folder, which belongs to this process alone; makes it when it is missing, and anew when
    /// it is damaged or of another format. Reads the whole index once, so it is not to be called on an async thread.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let index = Arc::new(Index::open(folder)?);
        Ok(SearchIndex { index, progress: Arc::new(watch::channel(Progress::default()).0) })
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
        let query = folded(query.trim());
        let caps = EffectiveCaps::new(&query, limit);
        let mut found = Sections { accounts: vec![], creators: vec![], videos: vec![], effective_caps: caps };
        // Postgres stores no NUL, so nothing contains one.
        if query.is_empty() || query.contains('\0') {
            return Ok(found);
        }
        let (index, needle) = (self.index.clone(), query.clone());
        let [accounts, creators, videos] = blocking(move || {
            let searcher = index.searcher();
            Ok([
                searcher.containing(organization, Entity::Account, &needle)?,
                searcher.containing(organization, Entity::Creator, &needle)?,
                searcher.containing(organization, Entity::Video, &needle)?,
            ])
        })
        .await?;
        found.accounts = sections::accounts(pg, organization, &accounts, &query, caps.accounts).await?;
        found.creators = sections::creators(pg, organization, &creators, &query, caps.creators).await?;
        found.videos = sections::videos(pg, organization, &videos, &query, caps.videos).await?;
        Ok(found)
    }

    /// The number below which every transaction's changes can be found; 0 until the index is complete.
    pub fn applied_txid(&self) -> i64 {
        self.progress.borrow().applied
    }

    /// Waits until the changes of a transaction, and of all before it, can be found.
    pub async fn wait_applied(&self, txid: i64) {
        // The sender lives in self, so that waiting for it cannot fail.
        let _ = self.progress.subscribe().wait_for(|progress| progress.applied > txid).await;
    }

    /// How long ago the index last held everything that was committed; `None` while it is first built.
    pub fn behind(&self) -> Option<Duration> {
        self.progress.borrow().caught_up.map(|at| at.elapsed())
    }

    /// The number of records that can be found, of all organizations.
    pub fn documents(&self) -> u64 {
        self.index.searcher().documents()
    }

    /// The place in the change sequence that the index on disk has; `None` when it was never complete.
    pub fn position(&self) -> Option<Position> {
        self.index.position()
    }

    /// Starts to make the index anew. What it held can be found until the next commit.
    pub async fn clear(&self) -> Result<(), Error> {
        self.progress.send_modify(|progress| progress.applied = 0);
        let index = self.index.clone();
        blocking(move || index.clear()).await
    }

    /// Adds documents that the index does not hold, to be found after the next commit.
    pub async fn add(&self, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.index.clone();
        blocking(move || index.add(documents)).await
    }

    /// Replaces the named documents by what is left of them, to be found after the next commit.
    pub async fn replace(&self, named: Vec<(Entity, Uuid)>, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.index.clone();
        blocking(move || index.replace(named, documents)).await
    }

    /// Makes everything so far durable and findable, together with the position that it corresponds to; without
    /// one the index counts as incomplete.
    pub async fn commit(&self, position: Option<Position>) -> Result<(), Error> {
        let index = self.index.clone();
        let applied = position.as_ref().map(|position| position.txid);
        blocking(move || index.commit(position)).await?;
        if let Some(applied) = applied {
            self.progress.send_modify(|progress| progress.applied = progress.applied.max(applied));
        }
        Ok(())
    }

    /// Notes that nothing is left to apply of the transactions below a number.
    pub fn reached(&self, txid: i64) {
        let caught_up = Some(Instant::now());
        self.progress
            .send_modify(|progress| *progress = Progress { applied: progress.applied.max(txid), caught_up });
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
