//! A tracked social account in the form in which the API shows it.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::example;
use super::platform::Platform;
use super::tracking::Tracking;

/// Key/value tags of an account, a creator or a video.
pub type Metadata = std::collections::BTreeMap<String, String>;

/// An account with the sums of its discovered videos' latest counters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Account {
    /// The id of the account in this service.
    pub id: Uuid,
    /// Always `account`.
    #[sqlx(skip)]
    pub r#type: AccountType,
    /// Where the account is.
    pub platform: Platform,
    /// The username on the platform, in lower case, without `@`.
    #[schemars(example = &"salt.and.tide")]
    pub username: String,
    /// The name that the profile shows; null before the first scrape, and where there is none.
    #[schemars(example = &"Salt & Tide")]
    pub name: Option<String>,
    /// What the profile says about itself.
    #[schemars(example = &"Cold water, warm people. Surf school in Ericeira.")]
    pub description: Option<String>,
    /// The profile's picture: our stable copy where one is kept, else the platform's URL.
    #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
    pub profile_pic_url: Option<String>,
    /// The platform's own URL of the profile's picture; such URLs expire.
    #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
    pub profile_pic_url_original: Option<String>,
    /// Whether the platform has verified the account.
    #[schemars(example = true)]
    pub is_verified: bool,
    /// False while tracking is paused.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Whether the platform no longer shows the account under this username.
    #[schemars(example = false)]
    pub is_unavailable: bool,
    /// The link that the profile gives.
    #[schemars(example = &"https://saltandtide.example")]
    pub link_in_bio: Option<String>,
    /// The creator that the account belongs to; null without one.
    pub creator_id: Option<Uuid>,
    /// The name of that creator.
    #[schemars(example = &"Marta Soares")]
    pub creator_name: Option<String>,
    /// A label of your own.
    #[schemars(example = &"surf")]
    pub category: Option<String>,
    /// Tags of your own, text by text.
    #[schemars(example = example::metadata())]
    #[sqlx(json)]
    pub metadata: Metadata,
    /// When tracking was asked for.
    pub added_at: DateTime<Utc>,
    /// When the account was read for the first time; null before.
    pub first_scrape_time: Option<DateTime<Utc>>,
    /// When the account was read for the last time; null before the first.
    pub last_scrape_time: Option<DateTime<Utc>>,
    /// Hours from one scrape to the next.
    #[schemars(example = 24)]
    pub scrape_interval_hours: i32,
    /// Followers, by the last scrape.
    #[schemars(example = 48_210)]
    pub follower_count: i64,
    /// Accounts that it follows, by the last scrape.
    #[schemars(example = 312)]
    pub following_count: i64,
    /// How many posts the platform's profile says there are.
    #[schemars(example = 420)]
    pub profile_post_count: i64,
    /// How many of its posts were discovered.
    #[schemars(example = 365)]
    pub total_post_count: i64,
    /// Views of its discovered posts, together.
    #[schemars(example = 12_843_000)]
    pub view_count: i64,
    /// Likes of its discovered posts, together.
    #[schemars(example = 964_100)]
    pub like_count: i64,
    /// Comments on its discovered posts, together.
    #[schemars(example = 21_350)]
    pub comment_count: i64,
    /// Shares of its discovered posts, together.
    #[schemars(example = 18_700)]
    pub share_count: i64,
    /// Plays of its discovered posts, together; on TikTok the views.
    #[schemars(example = 15_120_000)]
    pub play_count: i64,
    /// How often its discovered posts were saved, together; null when the platform never said.
    #[schemars(example = 30_240)]
    pub saved_count: Option<i64>,
    /// Plays on Facebook of its discovered posts, together; null when the platform never said.
    #[schemars(example = 410_000)]
    pub fb_play_count: Option<i64>,
    /// Plays on Instagram of its discovered posts, together; null when the platform never said.
    #[schemars(example = 14_710_000)]
    pub ig_play_count: Option<i64>,
    /// Likes on Facebook of its discovered posts, together; null when the platform never said.
    #[schemars(example = 8_300)]
    pub fb_like_count: Option<i64>,
    /// How many posts the first scrape reads; null takes the organization's default.
    #[schemars(example = None::<()>)]
    pub max_recent_posts_per_account: Option<i32>,
    /// How many days back the first scrape reads; null takes the organization's default.
    #[schemars(example = None::<()>)]
    pub post_lookback_days: Option<i32>,
    /// How many posts the first scrape reads in effect.
    #[schemars(example = 500)]
    pub effective_max_recent_posts_per_account: i32,
    /// How many days back the first scrape reads in effect.
    #[schemars(example = 365)]
    pub effective_post_lookback_days: i32,
    /// Whether it is being updated, and why not.
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
    /// The account.
    pub account_id: Uuid,
    /// How many of its posts were discovered.
    #[schemars(example = 365)]
    pub account_videos_count: i64,
    /// Posts by the UTC day on which they were posted: oldest day first, the last one is today.
    #[schemars(example = [1, 0, 2, 0, 0, 1, 1])]
    pub posts_per_day_7d: [i64; 7],
}

impl AccountStats {
    /// Returns the days of `posts_per_day_7d`, oldest first.
    pub fn days(today: NaiveDate) -> [NaiveDate; 7] {
        std::array::from_fn(|n| today - chrono::Days::new(6 - n as u64))
    }
}
