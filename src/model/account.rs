//! A tracked social account in the form in which the API shows it.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::platform::Platform;
use super::tracking::Tracking;

/// Key/value tags of an account, a creator or a video.
pub type Metadata = std::collections::BTreeMap<String, String>;

/// An account with the sums of its discovered videos' latest counters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Account {
    pub id: Uuid,
    #[sqlx(skip)]
    pub r#type: AccountType,
    pub platform: Platform,
    pub username: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub profile_pic_url: Option<String>,
    pub profile_pic_url_original: Option<String>,
    pub is_verified: bool,
    pub is_active: bool,
    pub is_unavailable: bool,
    pub link_in_bio: Option<String>,
    pub creator_id: Option<Uuid>,
    pub creator_name: Option<String>,
    pub category: Option<String>,
    #[sqlx(json)]
    pub metadata: Metadata,
    pub added_at: DateTime<Utc>,
    pub first_scrape_time: Option<DateTime<Utc>>,
    pub last_scrape_time: Option<DateTime<Utc>>,
    pub scrape_interval_hours: i32,
    pub follower_count: i64,
    pub following_count: i64,
    /// How many posts the platform's profile says there are.
    pub profile_post_count: i64,
    /// How many posts were discovered.
    pub total_post_count: i64,
    pub view_count: i64,
    pub like_count: i64,
    pub comment_count: i64,
    pub share_count: i64,
    pub play_count: i64,
    pub saved_count: Option<i64>,
    pub fb_play_count: Option<i64>,
    pub ig_play_count: Option<i64>,
    pub fb_like_count: Option<i64>,
    pub max_recent_posts_per_account: Option<i32>,
    pub post_lookback_days: Option<i32>,
    pub effective_max_recent_posts_per_account: i32,
    pub effective_post_lookback_days: i32,
    #[sqlx(flatten)]
    pub tracking: Tracking,
}

/// The constant `type` of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AccountType {
    #[default]
    Account,
}

/// How much an account posted lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccountStats {
    pub account_id: Uuid,
    pub account_videos_count: i64,
    /// Oldest day first; the last one is today, in UTC.
    pub posts_per_day_7d: [i64; 7],
}

/// The days that [`AccountStats::posts_per_day_7d`] counts, oldest first.
pub fn stats_days(today: NaiveDate) -> [NaiveDate; 7] {
    std::array::from_fn(|n| today - chrono::Days::new(6 - n as u64))
}
