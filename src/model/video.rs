//! A video or post as the API shows it, discovered on an account or tracked individually.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::account::{Metadata, example_metadata};
use super::counters::LatestCounters;
use super::picture::PictureUrl;
use super::platform::Platform;
use super::record::record;
use super::tracking::Tracking;
use super::unknown_counters::UnknownCounters;

record! {
    /// A video, with its latest counters and the account on which it was discovered.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
    pub struct Video {
        /// Video id.
        pub id: Uuid,
        /// `account_video` under `/account-videos`, `video` under `/videos`, `content` under `/content`.
        pub r#type: VideoType,
        /// Id for `/account-videos/metrics`, unique over both platforms.
        #[schemars(example = 120_417)]
        pub internal_id: i64,
        /// Platform of the video.
        pub platform: Platform,
        /// Id on the platform; null until it is known. On Instagram the Graph id, else the pk.
        #[schemars(example = &"18034177459285610")]
        pub external_id: Option<String>,
        /// Shortcode in Instagram URLs; null on TikTok.
        #[schemars(example = &"C9xKp2mNqRs")]
        pub shortcode: Option<String>,
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
        /// Cover image at the platform; the URL expires.
        #[schemars(example = &"https://cdn.example/covers/C9xKp2mNqRs.jpg")]
        pub cover_image_url_original: Option<String>,
        /// Video file: a stable copy if there is one, otherwise the platform's URL.
        #[schemars(example = &"https://cdn.example/videos/C9xKp2mNqRs.mp4")]
        pub video_url: Option<String>,
        /// Video file at the platform; the URL expires.
        #[schemars(example = &"https://cdn.example/videos/C9xKp2mNqRs.mp4")]
        pub video_url_original: Option<String>,
        /// Time at which it was posted; null until a source reports it.
        pub create_time: Option<DateTime<Utc>>,
        /// Time at which the video was discovered or added; under `/content` the earlier one if both.
        pub added_at: DateTime<Utc>,
        /// Time of the latest change of the record.
        pub updated_at: DateTime<Utc>,
        /// Whether the video is tracked individually.
        #[schemars(example = false)]
        pub is_tracked: bool,
        /// Whether individual tracking is active; `false` if paused.
        #[schemars(example = true)]
        pub is_active: bool,
        /// Whether the platform no longer shows the video.
        #[schemars(example = false)]
        pub is_unavailable: bool,
        /// Hours between scrapes, if tracked individually.
        #[schemars(example = 24)]
        pub scrape_interval_hours: i32,
        /// Your own tags.
        #[schemars(example = example_metadata())]
        #[sqlx(json)]
        pub metadata: Metadata,
        /// Tracked account on which the video was discovered; null if none.
        pub account_id: Option<Uuid>,
        /// Username of the account that posted it.
        #[schemars(example = &"salt.and.tide")]
        pub account_username: Option<String>,
        /// Display name of the account that posted it.
        #[schemars(example = &"Salt & Tide")]
        pub account_name: Option<String>,
        /// Id on the platform of the account that posted it.
        #[schemars(example = &"17841405309211844")]
        pub platform_account_id: Option<String>,
        /// Creator of the account; null if it has none.
        pub creator_id: Option<Uuid>,
        /// Name of the creator.
        #[schemars(example = &"Marta Soares")]
        pub creator_name: Option<String>,
        /// Time of the first scrape; null before it.
        pub first_scrape_time: Option<DateTime<Utc>>,
        /// Time of the latest scrape; null before the first.
        pub last_scrape_time: Option<DateTime<Utc>>,
        #[serde(flatten)]
        #[sqlx(flatten)]
        pub counters: LatestCounters,
        /// Counters that the platform has and that were never known, for example hidden likes: their value is 0 or null.
        #[sqlx(flatten)]
        #[schemars(example = ["share_count", "saved_count"])]
        pub unknown_counters: UnknownCounters,
        /// Other data that the platform reported.
        #[schemars(example = json!({"media_product_type": "REELS"}))]
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub platform_data: Value,
        /// Tracking status.
        #[sqlx(flatten)]
        pub tracking: Tracking,
    }
}

/// How a list shows a video, which has the same id in all lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum VideoType {
    /// Individually tracked.
    Video,
    /// Discovered on a tracked account.
    AccountVideo,
    /// Tracked in either way.
    Content,
}
