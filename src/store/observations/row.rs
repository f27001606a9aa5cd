//! Rows of `accounts` and `videos` as observations write them: columns by name, type and value.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::model::field::{Field, FieldType, FieldValue};

/// Defines a row: its own columns, counters and observed fields, and the time of the scrape, which is not a column.
macro_rules! observed_row {
    ($name:ident { $($column:ident: $type:ty,)* } $counters:ident $fields:ident) => {
        pub(super) struct $name {
            $(pub(super) $column: $type,)*
            pub(super) counters: $counters,
            pub(super) fields: $fields,
            pub(super) scraped_at: Option<DateTime<Utc>>,
        }

        impl $name {
            /// Returns the columns with their values.
            pub(super) fn columns(&self) -> impl Iterator<Item = (&'static str, FieldValue<'_>)> {
                let counters = self.counters.to_array().map(|count| count.map_or(FieldValue::Null, FieldValue::Integer));
                let own = [$((stringify!($column), self.$column.to_field())),*];
                let fields = self.fields.values().map(row::to_column);
                own.into_iter().chain($counters::NAMES.into_iter().zip(counters)).chain(fields)
            }

            /// Returns the names and SQL types of the JSON form, for `jsonb_to_recordset`.
            pub(super) fn column_definitions() -> String {
                let own = [$((stringify!($column), <$type as ToField>::TYPE)),*];
                row::column_definitions(&own, &$counters::NAMES, $fields::LIST)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.columns().chain([("scraped_at", self.scraped_at.to_field())]))
            }
        }
    };
}
pub(super) use observed_row;

/// Returns the column of a field, with the value that Postgres stores: some columns have no null.
pub(super) fn to_column<'a>(
    (field, value): (&'static Field, FieldValue<'a>),
) -> (&'static str, FieldValue<'a>) {
    static EMPTY_OBJECT: LazyLock<Value> = LazyLock::new(|| json!({}));
    let value = match (value, field.field_type) {
        (FieldValue::Null, FieldType::Boolean) => FieldValue::Boolean(false),
        (FieldValue::Null, FieldType::Json) => FieldValue::Json(&EMPTY_OBJECT),
        (value, _) => value,
    };
    (field.column, value)
}

/// Formats each column of counters and observed fields with `format`, separated by commas.
pub(super) fn format_columns(
    counters: &[&'static str],
    fields: &[Field],
    format: impl Fn(&'static str) -> String,
) -> String {
    let columns = counters.iter().copied().chain(fields.iter().map(|field| field.column));
    columns.map(format).collect::<Vec<_>>().join(", ")
}

pub(super) fn column_definitions(own: &[(&str, FieldType)], counters: &[&str], fields: &[Field]) -> String {
    let counters = counters.iter().map(|name| (*name, FieldType::Integer));
    let fields = fields.iter().map(|field| (field.column, field.field_type));
    let columns = own.iter().copied().chain(counters).chain(fields).chain([("scraped_at", FieldType::Time)]);
    columns
        .map(|(name, column_type)| format!("{name} {}", sql_type(column_type)))
        .collect::<Vec<_>>()
        .join(", ")
}

const fn sql_type(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Text => "text",
        FieldType::Integer => "bigint",
        FieldType::Decimal => "double precision",
        FieldType::Boolean => "boolean",
        FieldType::Time => "timestamptz",
        FieldType::Date => "date",
        FieldType::Uuid => "uuid",
        FieldType::Json => "jsonb",
        FieldType::Texts => "text[]",
    }
}
