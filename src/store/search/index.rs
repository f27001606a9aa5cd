//! The index on disk: what a document is, how the folder is opened or made anew, and which documents contain a text.
//!
//! It knows no SQL and ranks nothing. One process writes and reads a folder; a commit records the place in the
//! change sequence that it corresponds to, so that a killed process goes on exactly there.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::{
    BytesOptions, FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::{
    DocAddress, DocId, DocSet, IndexReader, IndexWriter, ReloadPolicy, SegmentReader, TERMINATED,
    TantivyDocument, TantivyError, Term,
};
use uuid::Uuid;

use super::changes::{Document, Position};
use super::grams::{self, Grams};
use crate::store::Error;
use crate::store::write::Entity;

/// Names the way in which texts become terms: a new name whenever that changes, so that older indexes are rebuilt.
const TOKENIZER: &str = "grams_1";
/// Memory in which new documents are gathered before they are written.
const WRITER_MEMORY: usize = 48 << 20;
/// A segment is rewritten once this share of it is deleted.
const DELETED_SHARE: f32 = 0.3;
/// The rarest terms of a long query find nearly as few candidates as all of them.
const TERMS_PER_QUERY: usize = 8;

impl From<TantivyError> for Error {
    fn from(error: TantivyError) -> Self {
        Error::Search(error.to_string())
    }
}

#[derive(Clone, Copy)]
struct Fields {
    /// What the document is, to replace it by: see [`key`].
    key: Field,
    /// Whose it is and in which section: see [`scope`].
    scope: Field,
    id_high: Field,
    id_low: Field,
    /// The folded text, cut into terms, and as it is.
    text: Field,
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    let fields = Fields {
        key: schema.add_bytes_field("key", BytesOptions::default().set_indexed()),
        scope: schema.add_bytes_field("scope", BytesOptions::default().set_indexed()),
        id_high: schema.add_u64_field("id_high", FAST),
        id_low: schema.add_u64_field("id_low", FAST),
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(text).set_stored()),
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

fn scope(entity: Entity, organization: Uuid) -> [u8; 17] {
    tagged(entity, organization)
}

pub(super) struct Index {
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    /// Absent after a failed write: what was not committed is gone with it.
    writer: Mutex<Option<IndexWriter>>,
    position: RwLock<Option<Position>>,
}

impl Index {
    /// Opens the folder; empties it first when what it holds cannot be used.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::Search(format!("the folder {} cannot be used, name another: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let directory = MmapDirectory::open(folder).map_err(|error| failed(&error))?;
        let lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(|_| {
            Error::Search(format!(
                "the folder {} is in use by another process: give each process one of its own",
                folder.display()
            ))
        })?;
        let index = match existing(&directory) {
            Ok(Some(index)) => index,
            Ok(None) => create(directory)?,
            Err(reason) => {
                tracing::warn!(folder = %folder.display(), reason, "the search index cannot be used and is rebuilt");
                empty(folder).map_err(|error| failed(&error))?;
                create(MmapDirectory::open(folder).map_err(|error| failed(&error))?)?
            }
        };
        drop(lock);
        let index = Index {
            reader: reader(&index)?,
            position: RwLock::new(index.load_metas()?.payload.as_deref().and_then(Position::decode)),
            fields: schema().1,
            writer: Mutex::new(None),
            index,
        };
        // The writer holds the folder from here on.
        index.write(|_| Ok(()))?;
        Ok(index)
    }

    pub(super) fn position(&self) -> Option<Position> {
        self.position.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn searcher(&self) -> Searcher {
        Searcher { searcher: self.reader.searcher(), fields: self.fields }
    }

    pub(super) fn clear(&self) -> Result<(), Error> {
        self.write(|writer| {
            writer.rollback()?;
            writer.delete_all_documents()?;
            Ok(())
        })
    }

    pub(super) fn add(&self, documents: Vec<Document>) -> Result<(), Error> {
        self.write(|writer| self.add_all(writer, documents))
    }

    pub(super) fn replace(&self, named: Vec<(Entity, Uuid)>, documents: Vec<Document>) -> Result<(), Error> {
        self.write(|writer| {
            for (entity, id) in named {
                writer.delete_term(Term::from_field_bytes(self.fields.key, &key(entity, id)));
            }
            self.add_all(writer, documents)
        })
    }

    pub(super) fn commit(&self, position: Option<Position>) -> Result<(), Error> {
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
    fn write(&self, work: impl FnOnce(&mut IndexWriter) -> tantivy::Result<()>) -> Result<(), Error> {
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

/// The index that a folder holds, `None` when it holds none, or why it cannot be used.
fn existing(directory: &MmapDirectory) -> Result<Option<tantivy::Index>, String> {
    let read = || -> tantivy::Result<Option<tantivy::Index>> {
        if !tantivy::Index::exists(directory)? {
            return Ok(None);
        }
        let index = tantivy::Index::open(directory.clone())?;
        index.tokenizers().register(TOKENIZER, Grams);
        Ok(Some(index))
    };
    let Some(index) = read().map_err(|error| error.to_string())? else { return Ok(None) };
    if index.schema() != schema().0 {
        return Err("it is of another version".to_owned());
    }
    let damaged = index.validate_checksum().map_err(|error| error.to_string())?;
    if let Some(file) = damaged.iter().next() {
        return Err(format!("{} is damaged", file.display()));
    }
    reader(&index).map_err(|error| error.to_string())?;
    Ok(Some(index))
}

fn reader(index: &tantivy::Index) -> tantivy::Result<IndexReader> {
    index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()
}

fn create(directory: MmapDirectory) -> Result<tantivy::Index, Error> {
    let index = tantivy::Index::open_or_create(directory, schema().0)?;
    index.tokenizers().register(TOKENIZER, Grams);
    Ok(index)
}

/// Removes the files of an index from its folder, and no others.
fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_segment = name
            .split_once('.')
            .is_some_and(|(stem, _)| stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_segment || name == "meta.json" || name == ".managed.json" {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The index as of one commit.
pub(super) struct Searcher {
    searcher: tantivy::Searcher,
    fields: Fields,
}

impl Searcher {
    pub(super) fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Returns the ids of an organization's documents of one kind whose text contains the query, in no order.
    pub(super) fn containing(
        &self,
        organization: Uuid,
        entity: Entity,
        query: &str,
    ) -> Result<Vec<Uuid>, Error> {
        let scope = Term::from_field_bytes(self.fields.scope, &scope(entity, organization));
        let terms: Vec<_> = grams::required(query)
            .into_iter()
            .map(|gram| Term::from_field_text(self.fields.text, gram))
            .collect();
        let mut ids = Vec::new();
        for (ordinal, segment) in (0..).zip(self.searcher.segment_readers()) {
            let candidates = self.candidates(segment, &scope, &terms)?;
            if candidates.is_empty() {
                continue;
            }
            let id_high = segment.fast_fields().u64("id_high")?.first_or_default_col(0);
            let id_low = segment.fast_fields().u64("id_low")?.first_or_default_col(0);
            for doc in candidates {
                if grams::is_term(query) || self.contains(DocAddress::new(ordinal, doc), query)? {
                    ids.push(Uuid::from_u64_pair(id_high.get_val(doc), id_low.get_val(doc)));
                }
            }
        }
        Ok(ids)
    }

    /// Returns the living documents of a segment that have the rarest of the terms, in the scope.
    fn candidates(
        &self,
        segment: &SegmentReader,
        scope: &Term,
        terms: &[Term],
    ) -> tantivy::Result<Vec<DocId>> {
        let texts = segment.inverted_index(self.fields.text)?;
        let mut infos = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(info) = texts.get_term_info(term)? else { return Ok(Vec::new()) };
            infos.push(info);
        }
        infos.sort_by_key(|info| info.doc_freq);
        infos.truncate(TERMS_PER_QUERY);
        let Some(scope) =
            segment.inverted_index(self.fields.scope)?.read_postings(scope, IndexRecordOption::Basic)?
        else {
            return Ok(Vec::new());
        };
        let mut lists = vec![scope];
        for info in &infos {
            lists.push(texts.read_postings_from_terminfo(info, IndexRecordOption::Basic)?);
        }
        lists.sort_by_key(|list| list.size_hint());
        let mut found = Vec::new();
        let Some((shortest, others)) = lists.split_first_mut() else { return Ok(found) };
        let mut doc = shortest.doc();
        'documents: while doc != TERMINATED {
            for list in &mut *others {
                let reached = if list.doc() < doc { list.seek(doc) } else { list.doc() };
                if reached > doc {
                    doc = shortest.seek(reached);
                    continue 'documents;
                }
            }
            if !segment.is_deleted(doc) {
                found.push(doc);
            }
            doc = shortest.advance();
        }
        Ok(found)
    }

    fn contains(&self, address: DocAddress, query: &str) -> tantivy::Result<bool> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let text = document.get_first(self.fields.text);
        Ok(text.and_then(|text| text.as_str()).is_some_and(|text| text.contains(query)))
    }
}
