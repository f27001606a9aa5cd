//! Rows in Postgres' binary COPY format, which loads many rows much faster than inserts.

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::store::{Error, Write};

/// Signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// Postgres counts timestamps and dates from 2000-01-01.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i64 = 10_957;

/// A column value.
pub(in crate::store) trait CopyValue {
    /// Appends the value's bytes. Returns `None` for null.
    fn write(&self, bytes: &mut Vec<u8>) -> Option<()>;
}

macro_rules! copy_values {
    ($($type:ty, |$value:ident| $bytes:expr;)*) => {
        $(impl CopyValue for $type {
            fn write(&self, bytes: &mut Vec<u8>) -> Option<()> {
                let $value = self;
                bytes.extend_from_slice($bytes.as_ref());
                Some(())
            }
        })*
    };
}

copy_values! {
    i64, |value| value.to_be_bytes();
    f64, |value| value.to_be_bytes();
    bool, |value| [u8::from(*value)];
    &str, |value| value;
    String, |value| value;
    Uuid, |value| value;
    DateTime<Utc>, |value| (value.timestamp_micros() - EPOCH_MICROS).to_be_bytes();
    NaiveDate, |value| (days(*value) as i32).to_be_bytes();
    Jsonb<'_>, |value| [b"\x01", value.0.as_bytes()].concat();
}

fn days(day: NaiveDate) -> i64 {
    (day - NaiveDate::default()).num_days() - EPOCH_DAYS
}

impl<T: CopyValue> CopyValue for Option<T> {
    fn write(&self, bytes: &mut Vec<u8>) -> Option<()> {
        self.as_ref().and_then(|value| value.write(bytes))
    }
}

/// The text of a `jsonb` value.
pub(in crate::store) struct Jsonb<'a>(pub(in crate::store) &'a str);

/// Rows to copy into a table.
pub(in crate::store) struct CopyRows {
    bytes: Vec<u8>,
}

impl CopyRows {
    pub(in crate::store) fn new() -> Self {
        CopyRows { bytes: HEADER.to_vec() }
    }

    /// Adds a row with a value for each column of the statement.
    pub(in crate::store) fn push(&mut self, values: &[&dyn CopyValue]) {
        self.bytes.extend_from_slice(&(values.len() as i16).to_be_bytes());
        for value in values {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&NULL);
            if value.write(&mut self.bytes).is_some() {
                let length = (self.bytes.len() - start - NULL.len()) as i32;
                self.bytes[start..start + NULL.len()].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Runs a `copy … from stdin (format binary)` statement. A row that exists already is a write conflict.
    pub(in crate::store) async fn copy(mut self, write: &mut Write, statement: &str) -> Result<(), Error> {
        self.bytes.extend_from_slice(&TRAILER);
        match write.transaction().copy(statement, &self.bytes).await {
            Ok(_) => Ok(()),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(Error::WriteConflict),
            Err(error) => Err(error.into()),
        }
    }
}
