//! The fields of a document in the index.

use tantivy::schema::{BytesOptions, FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use uuid::Uuid;

use crate::store::write::Entity;

/// Changes whenever texts become other terms, so that indexes of the old kind are rebuilt.
pub(super) const TOKENIZER: &str = "grams_2";
/// The columns of a document's id.
pub(super) const ID_COLUMNS: [&str; 2] = ["id_high", "id_low"];

#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// Identifies the document, see [`key`].
    pub key: Field,
    /// Its organization and section, see [`scope`].
    pub scope: Field,
    pub id_high: Field,
    pub id_low: Field,
    /// The terms of the folded text. The text itself is in Postgres only, which verifies matches.
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

fn tagged(entity: Entity, id: Uuid) -> [u8; 17] {
    let tag = match entity {
        Entity::Account => b'a',
        Entity::Creator => b'c',
        Entity::Video => b'v',
    };
    let mut bytes = [tag; 17];
    bytes[1..].copy_from_slice(id.as_bytes());
    bytes
}

pub(super) fn key(entity: Entity, id: Uuid) -> [u8; 17] {
    tagged(entity, id)
}

pub(super) fn scope(entity: Entity, organization: Uuid) -> [u8; 17] {
    tagged(entity, organization)
}
