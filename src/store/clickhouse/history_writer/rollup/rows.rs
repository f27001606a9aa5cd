//! Rows of the snapshots and of the rollups computed from them.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::super::batch::Subject;
use super::days::{AgeViews, Counts, Day, VideoDay, video_counts};
use super::records::Record;
use super::sorted_rows::{Keyed, SubjectKey, VideoDayKey, VideoKey};
use crate::model::ages::{LevelOnDay, STORED_AGES};
use crate::model::counters::{Counters, with_video_counters};
use crate::model::platform::Platform;

macro_rules! snapshot_row {
    ($($counter:ident: $latest:ty, $description:literal, $example:literal;)*) => {
        /// A snapshot of a video.
        #[derive(Row, Deserialize)]
        pub(super) struct SnapshotRow {
            #[serde(with = "clickhouse::serde::uuid")]
            org_id: Uuid,
            subject_id: u64,
            pub video_id: u64,
            #[serde(with = "clickhouse::serde::chrono::date")]
            pub date: NaiveDate,
            #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
            pub observed_at: DateTime<Utc>,
            $($counter: Option<i64>,)*
        }

        impl SnapshotRow {
            pub fn counts(&self) -> Counts {
                video_counts(Counters { $($counter: self.$counter),* })
            }
        }
    };
}
with_video_counters!(snapshot_row);

/// A snapshot of a profile.
#[derive(Row, Deserialize)]
pub(super) struct ProfileRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    subject_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub observed_at: DateTime<Utc>,
    pub follower_count: Option<i64>,
}

/// A day whose snapshot was removed: of a video, or with number 0 of the profile.
#[derive(Row, Deserialize)]
pub(super) struct RemovedDayRow {
    #[serde(with = "clickhouse::serde::uuid")]
    pub org_id: Uuid,
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
}

macro_rules! day_row {
    ($($gain:ident, $base:ident;)*) => {
        /// A day of a subject in the rollup.
        #[derive(Row, Deserialize)]
        pub(super) struct StoredDayRow {
            #[serde(with = "clickhouse::serde::uuid")]
            org_id: Uuid,
            subject_id: u64,
            #[serde(with = "clickhouse::serde::chrono::date")]
            pub date: NaiveDate,
            $($gain: Option<i64>,)*
            pub digest: u64,
        }

        impl StoredDayRow {
            pub const fn subject(&self) -> Subject {
                (self.org_id, self.subject_id.cast_signed())
            }

            pub const fn gains(&self) -> Counts {
                [$(self.$gain),*]
            }
        }

        /// A day of a subject to be written.
        #[derive(Row, Serialize)]
        pub(super) struct DayRow {
            #[serde(with = "clickhouse::serde::uuid")]
            org_id: Uuid,
            #[serde(with = "clickhouse::serde::chrono::date")]
            date: NaiveDate,
            subject_id: u64,
            platform: &'static str,
            $($gain: Option<i64>,)*
            $($base: i64,)*
            #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
            observed_at: DateTime<Utc>,
            digest: u64,
            version: u64,
            is_deleted: u8,
        }

        impl DayRow {
            pub fn new(
                (org_id, subject_id): Subject,
                date: NaiveDate,
                platform: &'static str,
                day: &Day,
                version: u64,
            ) -> Self {
                let ([$($gain),*], [$($base),*]) = (day.gains, day.bases);
                DayRow {
                    org_id,
                    date,
                    subject_id: subject_id.cast_unsigned(),
                    platform,
                    $($gain,)*
                    $($base,)*
                    observed_at: day.observed_at,
                    digest: day.digest(platform),
                    version,
                    is_deleted: 0,
                }
            }
        }
    };
}
// In the order of `ROLLUP_COUNTERS`.
day_row! {
    view_gain, view_base;
    like_gain, like_base;
    comment_gain, comment_base;
    share_gain, share_base;
    saved_gain, saved_base;
    play_gain, play_base;
    ig_play_gain, ig_play_base;
    fb_play_gain, fb_play_base;
    fb_like_gain, fb_like_base;
    follower_gain, follower_base;
}

/// A day of a video in its rollup.
#[derive(Debug, Clone, PartialEq, Eq, Row, Serialize, Deserialize)]
pub(super) struct VideoDayRow {
    #[serde(with = "clickhouse::serde::uuid")]
    pub org_id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub date: NaiveDate,
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(deserialize_with = "platform_name")]
    pub platform: PlatformName,
    pub view_gain: i64,
    pub play_gain: i64,
    pub like_gain: i64,
    pub comment_gain: i64,
    pub share_gain: i64,
    /// `None` until it was reported.
    pub saved_gain: Option<i64>,
    pub version: u64,
    pub is_deleted: u8,
}

/// The views of a video at the ages in [`STORED_AGES`].
#[derive(Debug, Clone, PartialEq, Eq, Row, Serialize, Deserialize)]
pub(super) struct AgesRow {
    #[serde(with = "clickhouse::serde::uuid")]
    pub org_id: Uuid,
    pub subject_id: u64,
    pub video_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    pub id: Uuid,
    #[serde(deserialize_with = "platform_name")]
    pub platform: PlatformName,
    pub media_type: Option<String>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub posted_at: DateTime<Utc>,
    pub views_1: Option<i64>,
    pub views_3: Option<i64>,
    pub views_7: Option<i64>,
    pub views_14: Option<i64>,
    pub views_30: Option<i64>,
    pub interpolated: Vec<u8>,
    pub version: u64,
    pub is_deleted: u8,
}

/// The name of a platform; "" is none. By this name, serde does not take it for a text of the response.
type PlatformName = &'static str;

/// Reads the name of a platform without an allocation.
fn platform_name<'de, D: Deserializer<'de>>(row: D) -> Result<PlatformName, D::Error> {
    let name = <&str>::deserialize(row)?;
    Ok(name.parse::<Platform>().map_or("", Platform::as_str))
}

impl DayRow {
    /// A day without observations.
    pub fn removed(subject: Subject, date: NaiveDate, version: u64) -> Self {
        DayRow { is_deleted: 1, ..DayRow::new(subject, date, "", &Day::default(), version) }
    }

    pub const fn digest(&self) -> u64 {
        self.digest
    }
}

impl VideoDayRow {
    pub fn new(
        (org_id, subject_id): Subject,
        video_id: u64,
        platform: &'static str,
        day: &VideoDay,
        version: u64,
    ) -> Self {
        let [views, likes, comments, shares, saves, plays, ..] = day.gains.map(Option::unwrap_or_default);
        let is_without_gain = [views, plays, likes, comments, shares, saves] == [0; 6];
        VideoDayRow {
            org_id,
            date: day.date,
            subject_id: subject_id.cast_unsigned(),
            video_id,
            platform,
            view_gain: views,
            play_gain: plays,
            like_gain: likes,
            comment_gain: comments,
            share_gain: shares,
            saved_gain: day.has_saves.then_some(saves),
            version,
            is_deleted: is_without_gain.into(),
        }
    }
}

impl AgesRow {
    pub fn new(
        (org_id, subject_id): Subject,
        video_id: u64,
        record: Option<&Record>,
        views: Option<AgeViews>,
        version: u64,
    ) -> Self {
        let known = views.unwrap_or_default();
        let [views_1, views_3, views_7, views_14, views_30] = known.map(|level| Some(level?.value));
        let interpolated = STORED_AGES.into_iter().zip(known).filter_map(|(age, level)| {
            let is_interpolated = |found: LevelOnDay| found.is_interpolated;
            level.is_some_and(is_interpolated).then_some(age as u8)
        });
        AgesRow {
            org_id,
            subject_id: subject_id.cast_unsigned(),
            video_id,
            id: record.map(|record| record.id).unwrap_or_default(),
            platform: record.map_or("", |record| record.platform.as_str()),
            media_type: record.and_then(|record| record.media_type.clone()),
            posted_at: record.and_then(|record| record.posted_at).unwrap_or_default(),
            views_1,
            views_3,
            views_7,
            views_14,
            views_30,
            interpolated: interpolated.collect(),
            version,
            is_deleted: views.is_none().into(),
        }
    }
}

/// A row that the recompute compares with the stored one.
pub(super) trait RollupRow: Sized + PartialEq {
    /// The row with another version; `is_deleted` as a tombstone.
    fn with_version(self, version: u64, is_deleted: bool) -> Self;
    fn version(&self) -> u64;
    fn is_deleted(&self) -> bool;

    /// Whether the row has to be written in place of the stored one.
    fn changes(&self, stored: Option<Self>) -> bool {
        match stored {
            Some(stored) => stored.with_version(self.version(), false) != *self,
            None => !self.is_deleted(),
        }
    }
}

macro_rules! rollup_row {
    ($row:ident) => {
        impl RollupRow for $row {
            fn with_version(self, version: u64, is_deleted: bool) -> Self {
                $row { version, is_deleted: is_deleted.into(), ..self }
            }

            fn version(&self) -> u64 {
                self.version
            }

            fn is_deleted(&self) -> bool {
                self.is_deleted == 1
            }
        }
    };
}
rollup_row!(VideoDayRow);
rollup_row!(AgesRow);

macro_rules! keyed {
    ($row:ident by $key:ty: $($column:ident),*) => {
        impl Keyed for $row {
            type Key = $key;

            fn key(&self) -> Self::Key {
                (SubjectKey::from((self.org_id, self.subject_id.cast_signed())), $(self.$column,)*)
            }
        }
    };
}
keyed!(SnapshotRow by VideoKey: video_id);
keyed!(ProfileRow by (SubjectKey,): );
keyed!(VideoDayRow by VideoDayKey: video_id, date);
keyed!(AgesRow by VideoKey: video_id);
