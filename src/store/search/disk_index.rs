//! An index on disk for async code: its operations run on blocking threads.

use std::sync::Arc;

use uuid::Uuid;

use super::changes::{Document, IndexPosition};
use super::index::Index;
use crate::store::Error;
use crate::store::write::Entity;

/// An index on disk. Cheap to clone.
#[derive(Clone)]
pub struct DiskIndex(pub(super) Arc<Index>);

impl DiskIndex {
    /// Its position in the change sequence; None while it is incomplete.
    pub fn position(&self) -> Option<IndexPosition> {
        self.0.position()
    }

    /// Removes all documents at the next commit.
    pub async fn clear(&self) -> Result<(), Error> {
        let index = self.0.clone();
        run_blocking(move || index.clear()).await
    }

    /// Adds new documents at the next commit.
    pub async fn add(&self, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.0.clone();
        run_blocking(move || index.add(documents)).await
    }

    /// Replaces the documents of records at the next commit.
    pub async fn replace(&self, records: Vec<(Entity, Uuid)>, documents: Vec<Document>) -> Result<(), Error> {
        let index = self.0.clone();
        run_blocking(move || index.replace(records, documents)).await
    }

    /// Removes all documents of organizations at the next commit.
    pub async fn remove_organizations(&self, organizations: Vec<Uuid>) -> Result<(), Error> {
        let index = self.0.clone();
        run_blocking(move || index.remove_organizations(organizations)).await
    }

    /// Rewrites files that contain deleted documents and returns the number of these. Searches and writes continue.
    pub async fn purge_deleted(&self) -> Result<u64, Error> {
        let index = self.0.clone();
        run_blocking(move || index.purge_deleted()).await
    }

    /// The number of deleted documents that its files still contain.
    pub async fn deleted_count(&self) -> Result<u64, Error> {
        let index = self.0.clone();
        run_blocking(move || index.deleted_count()).await
    }

    /// Makes all changes so far durable and searchable, with the position they correspond to; without one the index is
    /// incomplete.
    pub async fn commit(&self, position: Option<IndexPosition>) -> Result<(), Error> {
        let index = self.0.clone();
        run_blocking(move || index.commit(position)).await
    }
}

/// Runs file access and computation on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(task).await {
        Ok(result) => result,
        Err(error) => Err(Error::Search(format!("task failed: {error}"))),
    }
}
