//! Fields of records by name, type and value, from which statements, COPY data and files are written.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
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
    Texts,
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
    Texts(&'a [String]),
}

impl<'a> FieldValue<'a> {
    /// Formats the value for a file without types; an unknown one is empty.
    pub fn to_text(self) -> Cow<'a, str> {
        match self {
            FieldValue::Null => "".into(),
            FieldValue::Text(text) => text.into(),
            FieldValue::Integer(number) => number.to_string().into(),
            FieldValue::Decimal(number) => number.to_string().into(),
            FieldValue::Boolean(true) => "true".into(),
            FieldValue::Boolean(false) => "false".into(),
            FieldValue::Time(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true).into(),
            FieldValue::Date(day) => day.to_string().into(),
            FieldValue::Uuid(id) => id.to_string().into(),
            FieldValue::Json(json) => json.to_string().into(),
            FieldValue::Texts(texts) => texts.join(" ").into(),
        }
    }
}

/// Reads the fields of one type from a record of a file.
pub trait FieldReader<T> {
    type Error;

    /// Reads a field; `None` is unknown.
    fn read(&mut self, field: &'static Field) -> Result<Option<T>, Self::Error>;
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
    Vec<String>: Texts, |texts| texts;
}
