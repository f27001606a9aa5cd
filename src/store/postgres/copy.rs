//! Rows in Postgres' binary COPY format, which loads many rows much faster than inserts.

use crate::model::field::FieldValue;
use crate::store::{Error, Write};

/// Signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
const NULL_LENGTH: [u8; 4] = (-1_i32).to_be_bytes();
/// Postgres counts timestamps and dates from 2000-01-01.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i32 = 10_957;
const JSONB_VERSION: u8 = 1;
/// The type `text`.
const TEXT_OID: i32 = 25;

/// Rows of a table, encoded one after the other.
pub(in crate::store) struct CopyRows {
    columns: Vec<&'static str>,
    bytes: Vec<u8>,
}

impl CopyRows {
    pub(in crate::store) fn new() -> Self {
        CopyRows { columns: Vec::new(), bytes: HEADER.to_vec() }
    }

    /// Adds a row. All rows have the columns of the first one.
    pub(in crate::store) fn add<'a>(
        &mut self,
        columns: impl Iterator<Item = (&'static str, FieldValue<'a>)>,
    ) {
        let start = self.bytes.len();
        let is_first = self.columns.is_empty();
        let mut count: i16 = 0;
        self.bytes.extend_from_slice(&count.to_be_bytes());
        for (column, value) in columns {
            if is_first {
                self.columns.push(column);
            }
            debug_assert_eq!(self.columns.get(count as usize), Some(&column));
            count += 1;
            self.put(value);
        }
        self.bytes[start..start + 2].copy_from_slice(&count.to_be_bytes());
    }

    /// Appends the length and the bytes of a value.
    fn put(&mut self, value: FieldValue<'_>) {
        let start = self.bytes.len();
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(&NULL_LENGTH);
        match value {
            FieldValue::Null => return,
            FieldValue::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            FieldValue::Integer(number) => bytes.extend_from_slice(&number.to_be_bytes()),
            FieldValue::Decimal(number) => bytes.extend_from_slice(&number.to_be_bytes()),
            FieldValue::Boolean(flag) => bytes.push(u8::from(flag)),
            FieldValue::Time(time) => {
                bytes.extend_from_slice(&(time.timestamp_micros() - EPOCH_MICROS).to_be_bytes());
            }
            FieldValue::Date(day) => {
                bytes.extend_from_slice(&(day.to_epoch_days() - EPOCH_DAYS).to_be_bytes())
            }
            FieldValue::Uuid(id) => bytes.extend_from_slice(id.as_bytes()),
            FieldValue::Json(json) => {
                bytes.push(JSONB_VERSION);
                bytes.extend_from_slice(json.to_string().as_bytes());
            }
            FieldValue::Texts(texts) => put_texts(bytes, texts),
        }
        let length = (bytes.len() - start - NULL_LENGTH.len()) as i32;
        bytes[start..start + NULL_LENGTH.len()].copy_from_slice(&length.to_be_bytes());
    }

    /// Copies the rows to a table. A row that exists already is a write conflict.
    pub(in crate::store) async fn copy_into(mut self, write: &mut Write, table: &str) -> Result<(), Error> {
        let statement = format!("copy {table} ({}) from stdin (format binary)", self.columns.join(", "));
        self.bytes.extend_from_slice(&TRAILER);
        write.transaction().copy(&statement, &self.bytes).await.map_err(Error::of_unique_write)
    }
}

/// Appends an array of texts without nulls. An empty one has no dimension.
fn put_texts(bytes: &mut Vec<u8>, texts: &[String]) {
    let (dimensions, has_nulls, first_index) = (i32::from(!texts.is_empty()), 0_i32, 1_i32);
    for number in [dimensions, has_nulls, TEXT_OID] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    if !texts.is_empty() {
        bytes.extend_from_slice(&(texts.len() as i32).to_be_bytes());
        bytes.extend_from_slice(&first_index.to_be_bytes());
    }
    for text in texts {
        bytes.extend_from_slice(&(text.len() as i32).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}
