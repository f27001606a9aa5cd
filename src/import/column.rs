//! The columns that a row may have, and a row as a file has it: a value of whatever type the file gives by column.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Declares the columns with their names.
macro_rules! columns {
    ($($column:ident $name:literal),* $(,)?) => {
        /// A column, known by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Column {
            $($column,)*
        }

        impl Column {
            pub const ALL: [Column; [$($name),*].len()] = [$(Column::$column),*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Column::$column => $name,)*
                }
            }
        }
    };
}

columns! {
    Platform "platform",
    Username "username",
    ExternalId "external_id",
    ObservedAt "observed_at",
    CreateTime "create_time",
    Description "description",
    MediaType "media_type",
    Duration "duration",
    ViewCount "view_count",
    LikeCount "like_count",
    CommentCount "comment_count",
    ShareCount "share_count",
    SavedCount "saved_count",
    PlayCount "play_count",
    IgPlayCount "ig_play_count",
    FbPlayCount "fb_play_count",
    FbLikeCount "fb_like_count",
    Name "name",
    IsVerified "is_verified",
    FollowerCount "follower_count",
    FollowingCount "following_count",
    ProfilePostCount "profile_post_count",
    Category "category",
    Creator "creator",
}

impl Column {
    /// The column of a name; one that is none of ours is passed over.
    pub fn named(name: &str) -> Option<Self> {
        Column::ALL.into_iter().find(|column| column.as_str() == name)
    }

    /// The column that a header names, in any case, perhaps behind a byte order mark.
    pub fn of_header(name: &str) -> Option<Self> {
        Column::named(&name.trim_start_matches('\u{feff}').trim().to_ascii_lowercase())
    }
}

/// What a file says in one column of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value<'a> {
    /// Nothing: unknown. An empty text means the same.
    #[default]
    Unknown,
    Text(Cow<'a, str>),
    Whole(i64),
    Large(u64),
    Decimal(f64),
    Flag(bool),
    Time(DateTime<Utc>),
    /// Something that no column can mean, and why.
    Bad(&'static str),
}

impl<'a> Value<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if text.is_empty() { Value::Unknown } else { Value::Text(text) }
    }

    /// The value as text, however the file gives it.
    pub fn into_text(self) -> Result<Option<Cow<'a, str>>, &'static str> {
        Ok(Some(match self {
            Value::Unknown => return Ok(None),
            Value::Bad(reason) => return Err(reason),
            Value::Text(text) => text,
            Value::Whole(number) => number.to_string().into(),
            Value::Large(number) => number.to_string().into(),
            Value::Decimal(number) => number.to_string().into(),
            Value::Flag(flag) => flag.to_string().into(),
            Value::Time(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true).into(),
        }))
    }
}

/// A row as a file has it.
#[derive(Debug, Default)]
pub struct RawRow<'a>([Value<'a>; Column::ALL.len()]);

impl<'a> RawRow<'a> {
    pub fn set(&mut self, column: Column, value: Value<'a>) {
        self.0[column as usize] = value;
    }

    pub const fn get(&self, column: Column) -> &Value<'a> {
        &self.0[column as usize]
    }

    pub fn take(&mut self, column: Column) -> Value<'a> {
        std::mem::take(&mut self.0[column as usize])
    }
}

/// A column by the name of a field of JSON.
struct Field(Option<Column>);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl Visitor<'_> for Names {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                Ok(Field(Column::named(name)))
            }
        }
        deserializer.deserialize_str(Names)
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true, false or null")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Value::text(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Value::text(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Value::Whole(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Value::Large(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Value::Decimal(number))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Value::Unknown)
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawRow<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = RawRow<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a field for each column")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                let mut row = RawRow::default();
                while let Some(Field(column)) = fields.next_key()? {
                    match column {
                        Some(column) => {
                            let value = fields.next_value().map_err(|error| {
                                de::Error::custom(format!("{}: {error}", column.as_str()))
                            })?;
                            row.set(column, value);
                        }
                        None => _ = fields.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(row)
            }
        }
        deserializer.deserialize_map(Rows)
    }
}
