//! One Tantivy index on disk: opened or created in its folder, written and committed.
//!
//! A commit records its position in the change sequence, from which a killed process resumes. Asynchronous
//! operations run on blocking threads.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::candidates::Searcher;
use super::changes::{Document, ENTITIES, IndexPosition};
use super::fields::{Fields, TOKENIZER, schema, tagged_id};
use super::grams::GramTokenizer;
use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::write::Entity;

/// Buffer of new documents.
const WRITER_MEMORY_BYTES: usize = 48 << 20;
/// A segment is merged once this share of its documents is deleted.
const MAX_DELETED_RATIO: f32 = 0.3;

impl From<TantivyError> for Error {
    fn from(error: TantivyError) -> Self {
        Error::Search(error.to_string())
    }
}

/// An index in a folder of its own.
pub struct DiskIndex {
    path: PathBuf,
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    /// None after a failed write, which loses uncommitted changes.
    writer: Mutex<Option<IndexWriter>>,
    position: RwLock<Option<IndexPosition>>,
    /// Whether something failed, maybe because files are damaged or gone.
    is_suspect: AtomicBool,
    /// No other process may open the folder while this one may write: it would find the index damaged.
    _lock: Arc<File>,
}

impl DiskIndex {
    /// Creates an empty index.
    pub(super) fn create(path: &Path, lock: Arc<File>) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::Search(format!("{}: {error}", path.display())))?;
        let directory = MmapDirectory::open(path).map_err(TantivyError::from)?;
        let index = tantivy::Index::create(directory, schema().0, IndexSettings::default())?;
        Ok(DiskIndex::new(path, lock, index)?)
    }

    /// Opens an index; fails with the reason why it is unusable.
    pub(super) fn open(path: &Path, lock: Arc<File>) -> Result<Self, String> {
        DiskIndex::new(path, lock, open_intact(path)?).map_err(|error| error.to_string())
    }

    /// Reads the position of an index that another process may use; None while it is incomplete.
    pub(super) fn read_position(path: &Path) -> Result<Option<IndexPosition>, String> {
        committed_position(&open_tantivy(path)?).map_err(|error| error.to_string())
    }

    fn new(path: &Path, lock: Arc<File>, index: tantivy::Index) -> tantivy::Result<Self> {
        index.tokenizers().register(TOKENIZER, GramTokenizer);
        let index = DiskIndex {
            path: path.to_owned(),
            reader: index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?,
            position: RwLock::new(committed_position(&index)?),
            is_suspect: AtomicBool::new(false),
            fields: schema().1,
            writer: Mutex::new(None),
            index,
            _lock: lock,
        };
        index.write(|_| Ok(()))?;
        Ok(index)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its position in the change sequence; None while it is incomplete.
    pub fn position(&self) -> Option<IndexPosition> {
        self.position.read().clone()
    }

    pub(super) fn document_count(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Searches an organization's documents of one kind at the last commit.
    pub(super) fn searcher(&self, organization: Uuid, entity: Entity, query: &str) -> Searcher {
        Searcher {
            searcher: self.reader.searcher(),
            fields: self.fields,
            scope: self.fields.scope_term(entity, organization),
            query: query.to_owned(),
        }
    }

    /// Closes the writer and waits for merges in the background. Blocking.
    pub(super) fn close(&self) -> Result<(), Error> {
        let writer = self.writer.lock().take();
        writer.map_or(Ok(()), IndexWriter::wait_merging_threads)?;
        Ok(())
    }

    /// Records that a search or a write failed.
    pub fn mark_suspect(&self) {
        self.is_suspect.store(true, Ordering::Relaxed);
        notifications::wake(Topic::Writes);
    }

    pub fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Relaxed)
    }

    pub fn clear_suspicion(&self) {
        self.is_suspect.store(false, Ordering::Relaxed);
    }

    /// Checks the files, and returns what is wrong with them.
    pub async fn find_damage(self: &Arc<Self>) -> Result<Option<String>, Error> {
        let index = Arc::clone(self);
        run_blocking(move || {
            // Its merges remove files. It may fail because of the damage.
            let _ = index.close();
            Ok(open_intact(&index.path).err())
        })
        .await
    }

    /// Removes all documents at the next commit.
    pub async fn clear(self: &Arc<Self>) -> Result<(), Error> {
        self.change(|_, writer| {
            writer.rollback()?;
            writer.delete_all_documents()?;
            Ok(())
        })
        .await
    }

    /// Adds new documents at the next commit.
    pub async fn add(self: &Arc<Self>, documents: Vec<Document>) -> Result<(), Error> {
        self.change(|fields, writer| add_documents(fields, writer, documents)).await
    }

    /// Replaces the documents of records at the next commit.
    pub async fn replace(
        self: &Arc<Self>,
        records: Vec<(Entity, Uuid)>,
        documents: Vec<Document>,
    ) -> Result<(), Error> {
        self.change(|fields, writer| {
            for (entity, id) in records {
                writer.delete_term(fields.key_term(entity, id));
            }
            add_documents(fields, writer, documents)
        })
        .await
    }

    /// Removes all documents of organizations at the next commit.
    pub async fn remove_organizations(self: &Arc<Self>, organizations: Vec<Uuid>) -> Result<(), Error> {
        self.change(|fields, writer| {
            for organization in organizations {
                for entity in ENTITIES {
                    writer.delete_term(fields.scope_term(entity, organization));
                }
            }
            Ok(())
        })
        .await
    }

    /// Makes all changes so far durable and searchable, with the position they correspond to; without one the
    /// index is incomplete.
    pub async fn commit(self: &Arc<Self>, position: Option<IndexPosition>) -> Result<(), Error> {
        let index = Arc::clone(self);
        run_blocking(move || {
            index.write(|writer| {
                let mut commit = writer.prepare_commit()?;
                if let Some(position) = &position {
                    commit.set_payload(&serde_json::json!(position).to_string());
                }
                commit.commit()
            })?;
            index.reader.reload()?;
            *index.position.write() = position;
            Ok(())
        })
        .await
    }

    /// The number of deleted documents that the files still contain.
    pub async fn deleted_count(self: &Arc<Self>) -> Result<u64, Error> {
        let index = Arc::clone(self);
        run_blocking(move || {
            let segments = index.index.searchable_segment_metas()?;
            Ok(segments.iter().map(|segment| u64::from(segment.num_deleted_docs())).sum())
        })
        .await
    }

    /// Rewrites the segments that contain deleted documents, one by one, and returns the number of these documents.
    /// Searches and writes continue. If a segment fails, the others are rewritten before the error is returned.
    pub async fn purge_deleted(self: &Arc<Self>) -> Result<u64, Error> {
        let index = Arc::clone(self);
        run_blocking(move || index.rewrite_segments()).await
    }

    fn rewrite_segments(&self) -> Result<u64, Error> {
        let (mut purged, mut failed) = (0, Vec::new());
        for segment in self.index.searchable_segment_metas()? {
            if !segment.has_deletes() {
                continue;
            }
            let merge = self.write(|writer| Ok(writer.merge(&[segment.id()])))?;
            match merge.wait() {
                Err(error) => failed.push((segment.id(), error)),
                Ok(_) => purged += u64::from(segment.num_deleted_docs()),
            }
        }
        self.reader.reload()?;
        self.write(|writer| Ok(writer.garbage_collect_files()))?.wait()?;
        // A segment that no longer exists was rewritten by a merge that had started before.
        let remaining = self.index.searchable_segment_ids()?;
        match failed.into_iter().find(|(segment, _)| remaining.contains(segment)) {
            Some((segment, error)) => {
                Err(Error::Search(format!("segment {} cannot be rewritten: {error}", segment.uuid_string())))
            }
            None => Ok(purged),
        }
    }

    /// Changes the index on a blocking thread.
    async fn change(
        self: &Arc<Self>,
        change: impl FnOnce(Fields, &mut IndexWriter) -> tantivy::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let index = Arc::clone(self);
        run_blocking(move || Ok(index.write(|writer| change(index.fields, writer))?)).await
    }

    /// Changes the index. A failure drops the writer, and with it everything since the last commit.
    fn write<T>(&self, change: impl FnOnce(&mut IndexWriter) -> tantivy::Result<T>) -> tantivy::Result<T> {
        // A panic leaves the slot empty, because the writer is taken out of it first.
        let mut slot = self.writer.lock();
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => self.new_writer()?,
        };
        let result = change(&mut writer)?;
        *slot = Some(writer);
        Ok(result)
    }

    fn new_writer(&self) -> tantivy::Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(WRITER_MEMORY_BYTES)
            .build();
        let writer = self.index.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        policy.set_del_docs_ratio_before_merge(MAX_DELETED_RATIO);
        writer.set_merge_policy(Box::new(policy));
        // A writer numbers its operations from the number of the last commit on, and a merge of committed segments applies
        // a deletion with that very number in some segments and not in others: the first document that is replaced could
        // remain next to its successor. So that number goes to a deletion that matches nothing.
        writer.delete_term(Term::from_field_bytes(self.fields.key, &[]));
        Ok(writer)
    }
}

/// Opens the index in a folder; fails with the reason if it cannot be read or has another format.
fn open_tantivy(path: &Path) -> Result<tantivy::Index, String> {
    let index = tantivy::Index::open_in_dir(path).map_err(|error| error.to_string())?;
    if index.schema() == schema().0 {
        Ok(index)
    } else {
        Err("it has the format of another version".to_owned())
    }
}

/// Like [`open_tantivy`]; fails also if a file is damaged or gone.
fn open_intact(path: &Path) -> Result<tantivy::Index, String> {
    let index = open_tantivy(path)?;
    let damaged = index.validate_checksum().map_err(|error| error.to_string())?;
    match damaged.iter().next() {
        Some(file) => Err(format!("{} is damaged", file.display())),
        None => Ok(index),
    }
}

fn committed_position(index: &tantivy::Index) -> tantivy::Result<Option<IndexPosition>> {
    Ok(index.load_metas()?.payload.and_then(|position| serde_json::from_str(&position).ok()))
}

fn add_documents(fields: Fields, writer: &IndexWriter, documents: Vec<Document>) -> tantivy::Result<()> {
    for Document { entity, id, organization, text } in documents {
        let (id_high, id_low) = id.as_u64_pair();
        let mut document = TantivyDocument::default();
        document.add_bytes(fields.key, &tagged_id(entity, id));
        document.add_bytes(fields.scope, &tagged_id(entity, organization));
        document.add_u64(fields.id_high, id_high);
        document.add_u64(fields.id_low, id_low);
        document.add_text(fields.text, text);
        writer.add_document(document)?;
    }
    Ok(())
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
