//! One Tantivy index on disk: opened or created in its folder, written and committed.
//!
//! A commit records its position in the change sequence, from which a killed process resumes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::candidates::Searcher;
use super::changes::{Document, ENTITIES, IndexPosition};
use super::fields::{Fields, TOKENIZER, key, schema, scope};
use super::grams::GramTokenizer;
use crate::store::Error;
use crate::store::write::Entity;

/// Buffer of new documents.
const WRITER_MEMORY_BYTES: usize = 48 << 20;
/// A segment is merged once this share of its documents is deleted.
const MAX_DELETED_RATIO: f32 = 0.3;
const WRONG_VERSION: &str = "it has the format of another version";

impl From<TantivyError> for Error {
    fn from(error: TantivyError) -> Self {
        Error::Search(error.to_string())
    }
}

pub(super) struct Index {
    path: PathBuf,
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    /// None after a failed write, which loses uncommitted changes.
    writer: Mutex<Option<IndexWriter>>,
    position: RwLock<Option<IndexPosition>>,
    /// No other process may open the folder while this one may write: it would find the index damaged.
    _lock: Arc<File>,
}

impl Index {
    /// Creates an empty index in a folder of its own.
    pub(super) fn create(path: &Path, lock: Arc<File>) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::Search(format!("{}: {error}", path.display())))?;
        let directory = MmapDirectory::open(path).map_err(TantivyError::from)?;
        let index = tantivy::Index::create(directory, schema().0, IndexSettings::default())?;
        Ok(Index::new(path, lock, index)?)
    }

    /// Opens the index in a folder; fails with the reason why it is unusable.
    pub(super) fn open(path: &Path, lock: Arc<File>) -> Result<Self, String> {
        let index = tantivy::Index::open_in_dir(path).map_err(|error| error.to_string())?;
        if index.schema() != schema().0 {
            return Err(WRONG_VERSION.to_owned());
        }
        let damaged = index.validate_checksum().map_err(|error| error.to_string())?;
        if let Some(file) = damaged.iter().next() {
            return Err(format!("{} is damaged", file.display()));
        }
        Index::new(path, lock, index).map_err(|error| error.to_string())
    }

    /// Reads the position of an index that another process may use; None while it is incomplete.
    pub(super) fn read_position(path: &Path) -> Result<Option<IndexPosition>, String> {
        let index = tantivy::Index::open_in_dir(path).map_err(|error| error.to_string())?;
        if index.schema() != schema().0 {
            return Err(WRONG_VERSION.to_owned());
        }
        let metas = index.load_metas().map_err(|error| error.to_string())?;
        Ok(metas.payload.as_deref().and_then(IndexPosition::decode))
    }

    fn new(path: &Path, lock: Arc<File>, index: tantivy::Index) -> tantivy::Result<Self> {
        index.tokenizers().register(TOKENIZER, GramTokenizer);
        let index = Index {
            path: path.to_owned(),
            reader: index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?,
            position: RwLock::new(index.load_metas()?.payload.as_deref().and_then(IndexPosition::decode)),
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

    pub(super) fn position(&self) -> Option<IndexPosition> {
        self.position.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn searcher(&self) -> Searcher {
        Searcher::new(self.reader.searcher(), self.fields)
    }

    /// Closes the writer and waits for merges in the background.
    pub(super) fn close(&self) -> Result<(), Error> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        writer.map_or(Ok(()), IndexWriter::wait_merging_threads)?;
        Ok(())
    }

    pub(super) fn clear(&self) -> Result<(), Error> {
        self.write(|writer| {
            writer.rollback()?;
            writer.delete_all_documents()?;
            Ok(())
        })?;
        Ok(())
    }

    pub(super) fn add(&self, documents: Vec<Document>) -> Result<(), Error> {
        self.write(|writer| self.add_all(writer, documents))?;
        Ok(())
    }

    pub(super) fn replace(
        &self,
        records: Vec<(Entity, Uuid)>,
        documents: Vec<Document>,
    ) -> Result<(), Error> {
        self.write(|writer| {
            for (entity, id) in records {
                writer.delete_term(Term::from_field_bytes(self.fields.key, &key(entity, id)));
            }
            self.add_all(writer, documents)
        })?;
        Ok(())
    }

    /// Removes all documents of organizations.
    pub(super) fn remove_organizations(&self, organizations: Vec<Uuid>) -> Result<(), Error> {
        self.write(|writer| {
            for organization in organizations {
                for entity in ENTITIES {
                    writer
                        .delete_term(Term::from_field_bytes(self.fields.scope, &scope(entity, organization)));
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Rewrites the segments that contain deleted documents, one by one, and returns the number of these documents.
    /// Searches and writes continue. If a segment fails, the others are rewritten before the error is returned.
    pub(super) fn purge_deleted(&self) -> Result<u64, Error> {
        let (mut purged, mut failed) = (0, Vec::new());
        for segment in self.index.searchable_segment_metas().map_err(Error::from)? {
            if !segment.has_deletes() {
                continue;
            }
            let mut merge = None;
            self.write(|writer| {
                merge = Some(writer.merge(&[segment.id()]));
                Ok(())
            })?;
            match merge.map(|merge| merge.wait()) {
                Some(Err(error)) => failed.push((segment.id(), error)),
                _ => purged += u64::from(segment.num_deleted_docs()),
            }
        }
        self.reader.reload()?;
        let mut collected = None;
        self.write(|writer| {
            collected = Some(writer.garbage_collect_files());
            Ok(())
        })?;
        if let Some(collected) = collected {
            collected.wait()?;
        }
        // A segment that no longer exists was rewritten by a merge that had started before.
        let remaining = self.index.searchable_segment_ids()?;
        match failed.into_iter().find(|(segment, _)| remaining.contains(segment)) {
            Some((segment, error)) => {
                Err(Error::Search(format!("segment {} cannot be rewritten: {error}", segment.uuid_string())))
            }
            None => Ok(purged),
        }
    }

    /// The number of deleted documents that the files still contain.
    pub(super) fn deleted_count(&self) -> Result<u64, Error> {
        let segments = self.index.searchable_segment_metas().map_err(Error::from)?;
        Ok(segments.iter().map(|segment| u64::from(segment.num_deleted_docs())).sum())
    }

    pub(super) fn commit(&self, position: Option<IndexPosition>) -> Result<(), Error> {
        self.write(|writer| {
            let mut commit = writer.prepare_commit()?;
            if let Some(position) = &position {
                commit.set_payload(&position.encode());
            }
            commit.commit()?;
            Ok(())
        })?;
        self.reader.reload()?;
        *self.position.write().unwrap_or_else(PoisonError::into_inner) = position;
        Ok(())
    }

    fn add_all(&self, writer: &IndexWriter, documents: Vec<Document>) -> tantivy::Result<()> {
        let fields = self.fields;
        for Document { entity, id, organization, text } in documents {
            let (id_high, id_low) = id.as_u64_pair();
            let mut document = TantivyDocument::default();
            document.add_bytes(fields.key, &key(entity, id));
            document.add_bytes(fields.scope, &scope(entity, organization));
            document.add_u64(fields.id_high, id_high);
            document.add_u64(fields.id_low, id_low);
            document.add_text(fields.text, text);
            writer.add_document(document)?;
        }
        Ok(())
    }

    /// Changes the index. A failure drops the writer, and with it everything since the last commit.
    fn write(&self, change: impl FnOnce(&mut IndexWriter) -> tantivy::Result<()>) -> tantivy::Result<()> {
        // A poisoned slot is empty, because the writer is taken out of it first.
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => self.new_writer()?,
        };
        change(&mut writer)?;
        *slot = Some(writer);
        Ok(())
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
