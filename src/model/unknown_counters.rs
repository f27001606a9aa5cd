//! The counters of a video that were never known, although its platform has them: of some, the record shows 0.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row};

use super::counters::Counters;
use super::latest::KnownAt;
use super::observed::{VideoFields, VideoLatest};
use super::platform::Platform;

/// The names of these counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UnknownCounters(Vec<&'static str>);

impl UnknownCounters {
    fn new(platform: Platform, known: Counters) -> Self {
        let is_unknown = |name: &&str| {
            Counters::NAMES
                .iter()
                .zip(known.to_array())
                .any(|(other, count)| other == name && count.is_none())
        };
        UnknownCounters(Counters::names_on(platform).filter(is_unknown).collect())
    }
}

/// Reads the latest counters of a video and when they were observed.
impl<'r> FromRow<'r, PgRow> for UnknownCounters {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        let known_at: Option<Json<KnownAt>> = row.try_get("known_at")?;
        let (stored, observed_at) = (Counters::from_row(row)?, row.try_get("observed_at")?);
        let latest = VideoLatest::restore(VideoFields::default(), stored, observed_at, known_at.as_deref());
        Ok(UnknownCounters::new(row.try_get("platform")?, latest.counters()))
    }
}

impl JsonSchema for UnknownCounters {
    fn schema_name() -> Cow<'static, str> {
        "UnknownCounters".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "string", "enum": Counters::NAMES}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_another_platform_are_not_unknown() {
        let known = Counters { view_count: Some(0), play_count: Some(0), ..Counters::default() };
        let UnknownCounters(on_tiktok) = UnknownCounters::new(Platform::Tiktok, known);
        assert_eq!(on_tiktok, ["like_count", "comment_count", "share_count", "saved_count"]);
        let UnknownCounters(on_instagram) = UnknownCounters::new(Platform::Instagram, known);
        assert_eq!(on_instagram[4..], ["ig_play_count", "fb_play_count", "fb_like_count"]);
    }
}
