//! Rows in the binary form of Postgres' COPY, which takes many rows for a fraction of what an insert costs.

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::store::{Error, Write};

/// What begins the form: a signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// Where Postgres counts times from, in microseconds since 1970, and days.
const MICROSECONDS_OF_2000: i64 = 946_684_800_000_000;
const DAYS_OF_2000: i64 = 10_957;

/// A value of a column.
pub(in crate::store) trait Field {
    /// The bytes of the value, `None` for null.
    fn put(&self, bytes: &mut Vec<u8>) -> Option<()>;
}

macro_rules! fields {
    ($($type:ty, |$value:ident| $bytes:expr;)*) => {
        $(impl Field for $type {
            fn put(&self, bytes: &mut Vec<u8>) -> Option<()> {
                let $value = self;
                bytes.extend_from_slice($bytes.as_ref());
                Some(())
            }
        })*
    };
}

fields! {
    i64, |value| value.to_be_bytes();
    f64, |value| value.to_be_bytes();
    bool, |value| [u8::from(*value)];
    &str, |value| value;
    String, |value| value;
    Uuid, |value| value;
    DateTime<Utc>, |value| (value.timestamp_micros() - MICROSECONDS_OF_2000).to_be_bytes();
    NaiveDate, |value| (days(*value) as i32).to_be_bytes();
    Json<'_>, |value| [b"\x01", value.0.as_bytes()].concat();
}

fn days(day: NaiveDate) -> i64 {
    (day - NaiveDate::default()).num_days() - DAYS_OF_2000
}

impl<T: Field> Field for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) -> Option<()> {
        self.as_ref().and_then(|value| value.put(bytes))
    }
}

/// The text of a value of type jsonb.
pub(in crate::store) struct Json<'a>(pub(in crate::store) &'a str);

/// Rows of a table, being gathered.
pub(in crate::store) struct Rows {
    bytes: Vec<u8>,
}

impl Rows {
    pub(in crate::store) fn new() -> Self {
        Rows { bytes: HEADER.to_vec() }
    }

    /// Adds a row with a value for each column of the statement.
    pub(in crate::store) fn add(&mut self, fields: &[&dyn Field]) {
        self.bytes.extend_from_slice(&(fields.len() as i16).to_be_bytes());
        for field in fields {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&NULL);
            if field.put(&mut self.bytes).is_some() {
                let length = (self.bytes.len() - start - NULL.len()) as i32;
                self.bytes[start..start + NULL.len()].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Copies the rows as `copy … from stdin (format binary)` says. Another unit of work that made one of them at the
    /// same time is in the way ([`Error::WriteConflict`]).
    pub(in crate::store) async fn copy(mut self, write: &mut Write, statement: &str) -> Result<(), Error> {
        self.bytes.extend_from_slice(&TRAILER);
        match write.transaction().copy(statement, &self.bytes).await {
            Ok(_) => Ok(()),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(Error::WriteConflict),
            Err(error) => Err(error.into()),
        }
    }
}
