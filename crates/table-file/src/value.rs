//! Values as files have them.

use std::borrow::Cow;

/// A value of a cell or of a JSON field.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value<'a> {
    /// Null, or a cell without contents.
    #[default]
    Empty,
    Text(Cow<'a, str>),
    Integer(i64),
    Unsigned(u64),
    Decimal(f64),
    Boolean(bool),
    /// A date with a time in an unknown zone: milliseconds since 1970 as if it were UTC.
    LocalTime(i64),
    /// Why no column can have this value.
    Invalid(&'static str),
}

impl Value<'_> {
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Value::Empty => true,
            Value::Text(text) => text.trim().is_empty(),
            _ => false,
        }
    }

    pub(crate) fn to_text(&self) -> String {
        match self {
            Value::Empty | Value::Invalid(_) => String::new(),
            Value::Text(text) => text.to_string(),
            Value::Integer(number) | Value::LocalTime(number) => number.to_string(),
            Value::Unsigned(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
        }
    }
}

/// The values of a row.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'r> {
    /// A field for each column.
    Fields(&'r csv::ByteRecord),
    /// The values that the row has, by the number of their column.
    Sparse(&'r [(usize, Value<'r>)]),
}
