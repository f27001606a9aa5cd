//! A video or post in the form in which the API shows it, whichever way it came to be tracked.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::account::Metadata;
use super::platform::Platform;
use super::tracking::Tracking;

/// A video with its latest counters and the account that it was found on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Video {
    pub id: Uuid,
    pub r#type: VideoType,
    /// The key of the batch metrics of discovered videos; one sequence over both platforms.
    pub internal_id: i64,
    pub platform: Platform,
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub url: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    /// Seconds.
    pub duration: Option<f64>,
    pub cover_image_url: Option<String>,
    pub cover_image_url_original: Option<String>,
    pub video_url: Option<String>,
    pub video_url_original: Option<String>,
    /// When it was posted.
    pub create_time: Option<DateTime<Utc>>,
    /// When it was added to be tracked on its own, or else found.
    pub added_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Whether it was added on its own, and not only found on an account.
    pub is_tracked: bool,
    pub is_active: bool,
    pub is_unavailable: bool,
    pub scrape_interval_hours: i32,
    #[sqlx(json)]
    pub metadata: Metadata,
    pub account_id: Option<Uuid>,
    pub account_username: Option<String>,
    pub account_name: Option<String>,
    pub platform_account_id: Option<String>,
    pub creator_id: Option<Uuid>,
    pub creator_name: Option<String>,
    pub first_scrape_time: Option<DateTime<Utc>>,
    pub last_scrape_time: Option<DateTime<Utc>>,
    pub view_count: i64,
    pub like_count: i64,
    pub comment_count: i64,
    pub share_count: i64,
    pub saved_count: Option<i64>,
    pub play_count: i64,
    pub ig_play_count: Option<i64>,
    pub fb_play_count: Option<i64>,
    pub fb_like_count: Option<i64>,
    /// What the platform said beyond these.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub platform_data: Value,
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
