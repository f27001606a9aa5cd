//! Fields of records by name, type and value, from which statements, COPY data and files are written.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::platform::Platform;

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    /// The column in Postgres.
    pub column: &'static str,
    pub field_type: FieldType,
    /// Whether files of imports and exports have it.
    pub in_files: bool,
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    Text,
    Integer,
    Decimal,
    Boolean,
    Time,
    Date,
    Uuid,
    Json,
}

/// A value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FieldValue<'a> {
    /// Unknown.
    Null,
    Text(&'a str),
    Integer(i64),
    Decimal(f64),
    Boolean(bool),
    Time(DateTime<Utc>),
    Date(NaiveDate),
    Uuid(Uuid),
    Json(&'a Value),
}

/// Reads the fields of a record by their position, from a file.
pub trait FieldReader {
    type Error;

    fn text(&mut self, field: usize) -> Result<Option<String>, Self::Error>;

    fn decimal(&mut self, field: usize) -> Result<Option<f64>, Self::Error>;

    fn boolean(&mut self, field: usize) -> Result<Option<bool>, Self::Error>;

    fn time(&mut self, field: usize) -> Result<Option<DateTime<Utc>>, Self::Error>;
}

/// A type of observed fields, which a file may contain.
pub trait ReadField: Sized {
    fn read<R: FieldReader>(reader: &mut R, field: usize) -> Result<Option<Self>, R::Error>;
}

macro_rules! read_field {
    ($($type:ty, |$reader:ident, $field:ident| $read:expr;)*) => {
        $(impl ReadField for $type {
            fn read<R: FieldReader>($reader: &mut R, $field: usize) -> Result<Option<Self>, R::Error> {
                $read
            }
        })*
    };
}

read_field! {
    String, |reader, field| reader.text(field);
    f64, |reader, field| reader.decimal(field);
    bool, |reader, field| reader.boolean(field);
    DateTime<Utc>, |reader, field| reader.time(field);
    // Files have no JSON.
    Value, |_reader, _field| Ok(None);
}

/// A Rust type of a field.
pub trait ToField {
    const TYPE: FieldType;

    fn to_field(&self) -> FieldValue<'_>;
}

impl<T: ToField> ToField for Option<T> {
    const TYPE: FieldType = T::TYPE;

    fn to_field(&self) -> FieldValue<'_> {
        self.as_ref().map_or(FieldValue::Null, T::to_field)
    }
}

macro_rules! to_field {
    ($($type:ty: $variant:ident, |$value:ident| $content:expr;)*) => {
        $(impl ToField for $type {
            const TYPE: FieldType = FieldType::$variant;

            fn to_field(&self) -> FieldValue<'_> {
                let $value = self;
                FieldValue::$variant($content)
            }
        })*
    };
}

to_field! {
    &str: Text, |text| text;
    String: Text, |text| text;
    Platform: Text, |platform| platform.as_str();
    i64: Integer, |number| *number;
    f64: Decimal, |number| *number;
    bool: Boolean, |flag| *flag;
    DateTime<Utc>: Time, |time| *time;
    NaiveDate: Date, |day| *day;
    Uuid: Uuid, |id| *id;
    Value: Json, |json| json;
}
