//! The fields of accounts and videos that sources and imports observe, besides the counters.
//!
//! This is their only definition: statements, COPY data, latest values, exports and imports follow from it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row};

use super::counters::{Counters, ProfileCounters};
use super::field::{Field, FieldReader, FieldType, FieldValue, ToField};
use super::file_row::{Columns, FileColumns};
use super::latest::{FieldTime, KnownAt, LatestValue};

/// Defines a struct of observed fields, and one of their latest values.
macro_rules! observed_fields {
    ($fields:ident, $latest:ident, $counters:ident:
     $($(#[$attribute:meta])* $field:ident: $type:ty, $column:literal, $in_files:literal;)*) => {
        /// Observed fields; `None` is unknown.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, sqlx::FromRow)]
        pub struct $fields {
            $(
                #[sqlx(default, rename = $column)]
                $(#[$attribute])*
                pub $field: Option<$type>,
            )*
        }

        impl $fields {
            pub const LIST: &[Field] = &[$(Field {
                name: stringify!($field),
                column: $column,
                field_type: <$type as ToField>::TYPE,
                in_files: $in_files,
            }),*];

            /// Reads the fields that files have.
            pub fn read<R, E>(reader: &mut R) -> Result<Self, E>
            where
                $(R: FieldReader<$type, Error = E>,)*
            {
                let mut fields = Self::LIST.iter();
                Ok($fields {
                    $($field: match fields.next() {
                        Some(field) if field.in_files => FieldReader::<$type>::read(reader, field)?,
                        _ => None,
                    },)*
                })
            }

            pub fn values(&self) -> impl Iterator<Item = (&'static Field, FieldValue<'_>)> {
                Self::LIST.iter().zip([$(self.$field.to_field()),*])
            }
        }

        /// The fields that files have.
        impl FileColumns for $fields {
            fn add_columns(_: &'static str, columns: &mut Columns) {
                let fields = Self::LIST.iter().filter(|field| field.in_files);
                columns.extend(fields.map(|field| (field.name, field.field_type)));
            }

            fn add_values<'a>(&'a self, values: &mut Vec<FieldValue<'a>>) {
                let fields = $fields::values(self).filter(|(field, _)| field.in_files);
                values.extend(fields.map(|(_, value)| value));
            }
        }

        /// The latest value of each field and counter.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $latest {
            pub counters: [LatestValue<i64>; $counters::NAMES.len()],
            $(pub $field: LatestValue<$type>,)*
        }

        impl $latest {
            /// Records one observation.
            pub fn record(&mut self, fields: $fields, counters: $counters, at: DateTime<Utc>) {
                for (latest, counter) in self.counters.iter_mut().zip(counters.to_array()) {
                    latest.record(counter, at);
                }
                $(self.$field.record(fields.$field, at);)*
            }

            /// Merges each value with the other record's.
            pub fn merge(&mut self, other: $latest) {
                for (latest, counter) in self.counters.iter_mut().zip(other.counters) {
                    latest.merge(counter);
                }
                $(self.$field.merge(other.$field);)*
            }

            pub fn fields(&self) -> $fields {
                $fields { $($field: self.$field.get().cloned(),)* }
            }

            pub fn counters(&self) -> $counters {
                $counters::from_array(self.counters.each_ref().map(|latest| latest.get().copied()))
            }

            pub fn observed_at(&self) -> Option<DateTime<Utc>> {
                self.times().filter_map(|time| time.at).max()
            }

            /// Returns the times of the values, compared with the time of the latest observation.
            pub fn known_at(&self, observed_at: Option<DateTime<Utc>>) -> KnownAt {
                KnownAt::new(self.times(), observed_at)
            }

            fn times(&self) -> impl Iterator<Item = FieldTime> {
                let counters = $counters::NAMES.into_iter().zip($counters::NULLABLE).zip(&self.counters);
                let fields = $fields::LIST.iter().zip([$(self.$field.at()),*]);
                let counters = counters
                    .map(|((name, is_nullable), latest)| FieldTime { name, is_nullable, at: latest.at() });
                counters.chain(fields.map(|(field, at)| FieldTime {
                    name: field.name,
                    is_nullable: field.field_type != FieldType::Boolean,
                    at,
                }))
            }

            /// Restores a stored record.
            pub(super) fn restore(
                fields: $fields,
                counters: $counters,
                observed_at: Option<DateTime<Utc>>,
                known_at: Option<&KnownAt>,
            ) -> Self {
                let at = |name| known_at.map_or(observed_at, |known_at| known_at.get(name, observed_at));
                let counters = counters.to_array();
                $latest {
                    counters: std::array::from_fn(|n| LatestValue::new(counters[n], at($counters::NAMES[n]))),
                    $($field: LatestValue::new(fields.$field, at(stringify!($field))),)*
                }
            }
        }

        impl<'r> FromRow<'r, PgRow> for $latest {
            fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
                let (fields, counters) = ($fields::from_row(row)?, $counters::from_row(row)?);
                let known_at: Option<Json<KnownAt>> = row.try_get("known_at")?;
                Ok($latest::restore(fields, counters, row.try_get("observed_at")?, known_at.as_deref()))
            }
        }
    };
}

// Field: type, column in Postgres, whether files of imports and exports have it.
observed_fields! { AccountFields, AccountLatest, ProfileCounters:
    name: String, "name", true;
    description: String, "description", true;
    profile_pic_url: String, "profile_pic_url_original", true;
    link_in_bio: String, "link_in_bio", true;
    is_verified: bool, "is_verified", true;
}

observed_fields! { VideoFields, VideoLatest, Counters:
    #[serde(with = "chrono::serde::ts_microseconds_option")]
    create_time: DateTime<Utc>, "create_time", true;
    description: String, "description", true;
    media_type: String, "media_type", true;
    /// In seconds.
    duration: f64, "duration", true;
    url: String, "url", false;
    cover_image_url: String, "cover_image_url_original", true;
    video_url: String, "video_url_original", false;
    /// Other fields of a source's response, a JSON object.
    #[sqlx(json(nullable))]
    platform_data: Value, "platform_data", false;
}
