//! The fields of a document in the index.

use tantivy::Term;
use tantivy::schema::{BytesOptions, FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use uuid::Uuid;

use crate::store::write::Entity;

/// Changes whenever texts become other terms, so that indexes of the old kind are rebuilt.
pub(super) const TOKENIZER: &str = "grams_3";
/// The columns of a document's id.
pub(super) const ID_COLUMNS: [&str; 2] = ["id_high", "id_low"];

#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// Kind and id of the record, see [`tagged_id`].
    pub key: Field,
    /// Kind and organization of the record.
    pub scope: Field,
    pub id_high: Field,
    pub id_low: Field,
    /// The terms of the search key. The text itself is in Postgres only, which verifies matches.
    pub text: Field,
}

pub(super) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    let fields = Fields {
        key: schema.add_bytes_field("key", BytesOptions::default().set_indexed()),
        scope: schema.add_bytes_field("scope", BytesOptions::default().set_indexed()),
        id_high: schema.add_u64_field(ID_COLUMNS[0], FAST),
        id_low: schema.add_u64_field(ID_COLUMNS[1], FAST),
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(text)),
    };
    (schema.build(), fields)
}

impl Fields {
    /// The term of the document of a record.
    pub(super) fn key_term(self, entity: Entity, id: Uuid) -> Term {
        Term::from_field_bytes(self.key, &tagged_id(entity, id))
    }

    /// The term of an organization's documents of one kind.
    pub(super) fn scope_term(self, entity: Entity, organization: Uuid) -> Term {
        Term::from_field_bytes(self.scope, &tagged_id(entity, organization))
    }
}

/// An id after a byte for the kind of record.
pub(super) fn tagged_id(entity: Entity, id: Uuid) -> [u8; 17] {
    let tag = match entity {
        Entity::Account => b'a',
        Entity::Creator => b'c',
        Entity::Video => b'v',
    };
    let mut bytes = [tag; 17];
    bytes[1..].copy_from_slice(id.as_bytes());
    bytes
}
