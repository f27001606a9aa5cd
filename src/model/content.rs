//! A video of either kind: discovered on an account, tracked individually, or both.

use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::change::engagement_rate_ppm;
use super::counters::LatestCounters;
use super::picture::PictureUrl;
use super::platform::Platform;
use super::record::record;
use super::video::{Video, VideoType};

/// A video of either kind. Its `added_at` is the earlier one of both kinds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Content {
    #[serde(flatten)]
    pub video: Video,
    /// How the video is tracked: with its account, individually, or both.
    #[schemars(example = vec![ContentKind::Discovered])]
    pub kinds: Vec<ContentKind>,
    /// Latest likes, comments and shares per view, to six decimals; null without views.
    #[schemars(example = 0.078_115)]
    pub engagement_rate: Option<f64>,
}

/// A way in which a video is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// With the account on which it was discovered.
    Discovered,
    /// Individually.
    Tracked,
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl ContentKind {
    pub fn list(is_discovered: bool, is_tracked: bool) -> Vec<Self> {
        let kinds = [(ContentKind::Discovered, is_discovered), (ContentKind::Tracked, is_tracked)];
        kinds.into_iter().filter(|(_, applies)| *applies).map(|(kind, _)| kind).collect()
    }
}

impl From<Video> for Content {
    fn from(video: Video) -> Self {
        let counters = &video.counters;
        let engagement = counters.like_count + counters.comment_count + counters.share_count;
        let millionths = engagement_rate_ppm(engagement, counters.view_count);
        Content {
            kinds: ContentKind::list(video.account_id.is_some(), video.is_tracked),
            engagement_rate: millionths.map(|millionths| millionths as f64 / 1e6),
            video,
        }
    }
}

impl FromRow<'_, PgRow> for Content {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Video::from_row(row).map(Content::from)
    }
}

record! {
    /// The identity of a video in rankings.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromRow)]
    pub struct ContentIdentity {
        /// Video id.
        pub id: Uuid,
        /// Always `content`.
        pub r#type: VideoType,
        #[serde(skip)]
        pub internal_id: i64,
        #[serde(skip)]
        pub subject_id: i64,
        /// Platform of the video.
        pub platform: Platform,
        /// Id on the platform; null until a source reports it.
        #[schemars(example = &"18034177459285610")]
        pub external_id: Option<String>,
        /// URL of the video on the platform.
        #[schemars(example = &"https://www.instagram.com/p/C9xKp2mNqRs/")]
        pub url: Option<String>,
        /// Caption.
        #[schemars(example = &"First swell of the season. Sound on 🌊")]
        pub description: Option<String>,
        /// Hashtags of the caption, in lower case and without `#`, in order of appearance.
        #[schemars(example = vec!["surf", "firstlight"])]
        pub hashtags: Vec<String>,
        /// Media type as reported by the platform.
        #[schemars(example = &"VIDEO")]
        pub media_type: Option<String>,
        /// Duration in seconds.
        #[schemars(example = 31.4)]
        pub duration: Option<f64>,
        /// Cover image: a stable copy if there is one, otherwise the platform's URL.
        #[schemars(example = &"https://cdn.example/covers/C9xKp2mNqRs.jpg")]
        #[schemars(with = "Option<String>")]
        pub cover_image_url: Option<PictureUrl>,
        /// Time at which it was posted; null until a source reports it.
        pub create_time: Option<DateTime<Utc>>,
        /// Tracked account on which the video was discovered; null if none.
        pub account_id: Option<Uuid>,
        /// Username of the account.
        #[schemars(example = &"salt.and.tide")]
        pub account_username: Option<String>,
        /// Creator of the account; null if it has none.
        pub creator_id: Option<Uuid>,
        /// Name of the creator.
        #[schemars(example = &"Marta Soares")]
        pub creator_name: Option<String>,
        /// Views, by the last scrape.
        #[schemars(example = 1_284_000)]
        pub view_count: i64,
    }
}

record! {
    /// A video in a table, beside gains.
    #[derive(Debug, Clone, PartialEq, FromRow)]
    pub struct ContentRow {
        pub id: Uuid,
        pub internal_id: i64,
        pub subject_id: i64,
        pub platform: Platform,
        pub external_id: Option<String>,
        pub url: Option<String>,
        pub description: Option<String>,
        pub media_type: Option<String>,
        pub create_time: Option<DateTime<Utc>>,
        pub account_id: Option<Uuid>,
        pub account_username: Option<String>,
        pub creator_name: Option<String>,
        pub is_tracked: bool,
        #[sqlx(flatten)]
        pub counters: LatestCounters,
    }
}
