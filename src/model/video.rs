//! A video or post in the form in which the API shows it, whichever way it came to be tracked.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::account::Metadata;
use super::example;
use super::platform::Platform;
use super::tracking::Tracking;

/// A video with its latest counters and the account that it was found on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Video {
    /// The id of the video in this service.
    pub id: Uuid,
    /// `account_video` where it is shown as found on an account, `video` where as tracked on its own.
    pub r#type: VideoType,
    /// The key of the batch metrics of discovered videos; one sequence over both platforms.
    #[schemars(example = 120_417)]
    pub internal_id: i64,
    /// Where the video is.
    pub platform: Platform,
    /// The platform's id; null until a source reveals it.
    #[schemars(example = &"18034177459285610")]
    pub external_id: Option<String>,
    /// What stands for the id in Instagram's URLs; null on TikTok.
    #[schemars(example = &"C9xKp2mNqRs")]
    pub shortcode: Option<String>,
    /// Where people see the video.
    #[schemars(example = &"https://www.instagram.com/p/C9xKp2mNqRs/")]
    pub url: Option<String>,
    /// The caption.
    #[schemars(example = &"First swell of the season. Sound on 🌊")]
    pub description: Option<String>,
    /// The platform's word for what it is.
    #[schemars(example = &"VIDEO")]
    pub media_type: Option<String>,
    /// Seconds.
    #[schemars(example = 31.4)]
    pub duration: Option<f64>,
    /// The cover: our stable copy where one is kept, else the platform's URL.
    #[schemars(example = &"https://cdn.example/covers/C9xKp2mNqRs.jpg")]
    pub cover_image_url: Option<String>,
    /// The platform's own URL of the cover; such URLs expire.
    #[schemars(example = &"https://cdn.example/covers/C9xKp2mNqRs.jpg")]
    pub cover_image_url_original: Option<String>,
    /// The file: our stable copy where one is kept, else the platform's URL.
    #[schemars(example = &"https://cdn.example/videos/C9xKp2mNqRs.mp4")]
    pub video_url: Option<String>,
    /// The platform's own URL of the file; such URLs expire.
    #[schemars(example = &"https://cdn.example/videos/C9xKp2mNqRs.mp4")]
    pub video_url_original: Option<String>,
    /// When it was posted; null until a source says.
    pub create_time: Option<DateTime<Utc>>,
    /// When it was found or added.
    pub added_at: DateTime<Utc>,
    /// When the record was written for the last time.
    pub updated_at: DateTime<Utc>,
    /// Whether it was added on its own, and not only found on an account.
    #[schemars(example = false)]
    pub is_tracked: bool,
    /// False while tracking on its own is paused.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Whether the platform no longer shows it.
    #[schemars(example = false)]
    pub is_unavailable: bool,
    /// Hours from one scrape to the next, where it is tracked on its own.
    #[schemars(example = 24)]
    pub scrape_interval_hours: i32,
    /// Tags of your own, text by text.
    #[schemars(example = example::metadata())]
    #[sqlx(json)]
    pub metadata: Metadata,
    /// The tracked account that it was found on; null without one.
    pub account_id: Option<Uuid>,
    /// The username of who posted it.
    #[schemars(example = &"salt.and.tide")]
    pub account_username: Option<String>,
    /// The name of who posted it.
    #[schemars(example = &"Salt & Tide")]
    pub account_name: Option<String>,
    /// The platform's id of who posted it.
    #[schemars(example = &"17841405309211844")]
    pub platform_account_id: Option<String>,
    /// The creator that the account belongs to; null without one.
    pub creator_id: Option<Uuid>,
    /// The name of that creator.
    #[schemars(example = &"Marta Soares")]
    pub creator_name: Option<String>,
    /// When it was read for the first time; null before.
    pub first_scrape_time: Option<DateTime<Utc>>,
    /// When it was read for the last time; null before the first.
    pub last_scrape_time: Option<DateTime<Utc>>,
    /// Views by the last scrape.
    #[schemars(example = 1_284_300)]
    pub view_count: i64,
    /// Likes by the last scrape.
    #[schemars(example = 96_410)]
    pub like_count: i64,
    /// Comments by the last scrape.
    #[schemars(example = 2_135)]
    pub comment_count: i64,
    /// Shares by the last scrape.
    #[schemars(example = 1_870)]
    pub share_count: i64,
    /// How often it was saved, by the last scrape; null when the platform never said.
    #[schemars(example = 3_024)]
    pub saved_count: Option<i64>,
    /// Plays, by the last scrape; on TikTok the views.
    #[schemars(example = 1_512_000)]
    pub play_count: i64,
    /// Plays on Instagram, by the last scrape; null when the platform never said.
    #[schemars(example = 1_471_000)]
    pub ig_play_count: Option<i64>,
    /// Plays on Facebook, by the last scrape; null when the platform never said.
    #[schemars(example = 41_000)]
    pub fb_play_count: Option<i64>,
    /// Likes on Facebook, by the last scrape; null when the platform never said.
    #[schemars(example = 830)]
    pub fb_like_count: Option<i64>,
    /// What the platform said beyond these.
    #[schemars(example = example::platform_data())]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub platform_data: Value,
    /// Whether it is being updated, and why not.
    #[sqlx(flatten)]
    pub tracking: Tracking,
}

/// As what a list shows a video; one that is both has one id in both lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum VideoType {
    /// Added on its own.
    Video,
    /// Found on a tracked account.
    AccountVideo,
}
