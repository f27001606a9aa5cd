//! One index on disk: what a document is, how its folder is opened or made, and how it is written.
//!
//! It knows no SQL and ranks nothing; what it finds is in [`super::candidates`], and which index a process uses in
//! [`super::folder`]. A commit records the place in the change sequence that it corresponds to, so that a killed process
//! goes on exactly there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::{BytesOptions, FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::candidates::Searcher;
use super::changes::{Document, ENTITIES, IndexPosition};
use super::grams::Grams;
use crate::store::Error;
use crate::store::write::Entity;

/// Names the way in which texts become terms: a new name whenever that changes, so that older indexes are rebuilt.
const TOKENIZER: &str = "grams_2";
/// Memory in which new documents are gathered before they are written.
const WRITER_MEMORY: usize = 48 << 20;
/// A segment is rewritten once this share of it is deleted.
const DELETED_SHARE: f32 = 0.3;

impl From<TantivyError> for Error {
    fn from(error: TantivyError) -> Self {
        Error::Search(error.to_string())
    }
}

#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// What the document is, to replace it by: see [`key`].
    key: Field,
    /// Whose it is and in which section: see [`scope`].
    pub(super) scope: Field,
    id_high: Field,
    id_low: Field,
    /// The terms of the folded text. The text itself is in Postgres alone, which verifies by it.
    pub(super) text: Field,
}

/// The columns that a document's id is read from.
pub(super) const ID: [&str; 2] = ["id_high", "id_low"];

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    let fields = Fields {
        key: schema.add_bytes_field("key", BytesOptions::default().set_indexed()),
        scope: schema.add_bytes_field("scope", BytesOptions::default().set_indexed()),
        id_high: schema.add_u64_field(ID[0], FAST),
        id_low: schema.add_u64_field(ID[1], FAST),
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(text)),
    };
    (schema.build(), fields)
}

const fn tag(entity: Entity) -> u8 {
    match entity {
        Entity::Account => b'a',
        Entity::Creator => b'c',
        Entity::Video => b'v',
    }
}

fn tagged(entity: Entity, id: Uuid) -> [u8; 17] {
    let mut bytes = [tag(entity); 17];
    bytes[1..].copy_from_slice(id.as_bytes());
    bytes
}

fn key(entity: Entity, id: Uuid) -> [u8; 17] {
    tagged(entity, id)
}

pub(super) fn scope(entity: Entity, organization: Uuid) -> [u8; 17] {
    tagged(entity, organization)
}

pub(super) struct Index {
    path: PathBuf,
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    /// Absent after a failed write: what was not committed is gone with it.
    writer: Mutex<Option<IndexWriter>>,
    position: RwLock<Option<IndexPosition>>,
    /// Nobody else takes the folder while somebody may still write here; who found it written to would take it for damaged.
    _lock: Arc<File>,
}

impl Index {
    /// Makes an empty index in a folder of its own.
    pub(super) fn create(path: &Path, lock: Arc<File>) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::Search(format!("{}: {error}", path.display())))?;
        let directory = MmapDirectory::open(path).map_err(TantivyError::from)?;
        let index = tantivy::Index::create(directory, schema().0, IndexSettings::default())?;
        Ok(Index::over(path, lock, index)?)
    }

    /// Opens the index that a folder holds; or says why it cannot be used.
    pub(super) fn open(path: &Path, lock: Arc<File>) -> Result<Self, String> {
        let index = tantivy::Index::open_in_dir(path).map_err(|error| error.to_string())?;
        if index.schema() != schema().0 {
            return Err("it is of another version".to_owned());
        }
        let damaged = index.validate_checksum().map_err(|error| error.to_string())?;
        if let Some(file) = damaged.iter().next() {
            return Err(format!("{} is damaged", file.display()));
        }
        Index::over(path, lock, index).map_err(|error| error.to_string())
    }

    /// The position of an index that may belong to another process, once it is complete; or why it cannot be used.
    pub(super) fn read_position(path: &Path) -> Result<Option<IndexPosition>, String> {
        let index = tantivy::Index::open_in_dir(path).map_err(|error| error.to_string())?;
        if index.schema() != schema().0 {
            return Err("it is of another version".to_owned());
        }
        let metas = index.load_metas().map_err(|error| error.to_string())?;
        Ok(metas.payload.as_deref().and_then(IndexPosition::decode))
    }

    fn over(path: &Path, lock: Arc<File>, index: tantivy::Index) -> tantivy::Result<Self> {
        index.tokenizers().register(TOKENIZER, Grams);
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

    /// Ends the writing, with whatever goes on in the background.
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

    pub(super) fn replace(&self, named: Vec<(Entity, Uuid)>, documents: Vec<Document>) -> Result<(), Error> {
        self.write(|writer| {
            for (entity, id) in named {
                writer.delete_term(Term::from_field_bytes(self.fields.key, &key(entity, id)));
            }
            self.add_all(writer, documents)
        })?;
        Ok(())
    }

    /// Removes all that organizations had.
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

    /// Writes the segments anew that still hold documents which were replaced or removed, one after the other, and says
    /// how many such documents there were. Searches and writes go on meanwhile. One that cannot be written anew keeps no
    /// other one from it, and is told in the end.
    pub(super) fn purge_deleted(&self) -> Result<u64, Error> {
        let (mut gone, mut failed) = (0, Vec::new());
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
                _ => gone += u64::from(segment.num_deleted_docs()),
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
        // One that is no more was written anew by a merge that had begun before.
        let left = self.index.searchable_segment_ids()?;
        match failed.into_iter().find(|(segment, _)| left.contains(segment)) {
            Some((segment, error)) => Err(Error::Search(format!(
                "segment {} cannot be written anew: {error}",
                segment.uuid_string()
            ))),
            None => Ok(gone),
        }
    }

    /// How many documents the files hold that were replaced or removed.
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

    /// Runs a piece of writing. One that fails loses the writer, and with it everything since the last commit.
    fn write(&self, work: impl FnOnce(&mut IndexWriter) -> tantivy::Result<()>) -> tantivy::Result<()> {
        // A poisoned slot is an empty one: the writer is out of it while it works.
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => self.new_writer()?,
        };
        work(&mut writer)?;
        *slot = Some(writer);
        Ok(())
    }

    fn new_writer(&self) -> tantivy::Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(WRITER_MEMORY)
            .build();
        let writer = self.index.writer_with_options(options)?;
        let mut merging = LogMergePolicy::default();
        merging.set_del_docs_ratio_before_merge(DELETED_SHARE);
        writer.set_merge_policy(Box::new(merging));
        // A writer numbers its operations from the number of the last commit on, and a merge of what was committed takes
        // a deletion with that very number for a part of it, in some segments and not in others: a document that is
        // replaced first of all could stay beside its successor. So that number goes to a deletion of nothing.
        writer.delete_term(Term::from_field_bytes(self.fields.key, &[]));
        Ok(writer)
    }
}
