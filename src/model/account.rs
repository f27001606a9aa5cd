//! A tracked social media account as the API shows it.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::counters::CounterSums;
use super::limits::{MAX_CATEGORY_CHARS, MAX_METADATA_CHARS, MAX_METADATA_FILTERS, MAX_METADATA_KEYS};
use super::picture::PictureUrl;
use super::platform::Platform;
use super::record::record;
use super::tracking::Tracking;

/// Key/value tags of an account, a creator or a video.
pub type Metadata = BTreeMap<String, String>;

/// The schema of tags in a request.
pub fn metadata_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MAX_METADATA_KEYS,
        "propertyNames": {"type": "string", "minLength": 1, "maxLength": MAX_METADATA_CHARS},
        "additionalProperties": {"type": "string", "maxLength": MAX_METADATA_CHARS},
    })
}

/// Your own labels that an account has to have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountLabels {
    /// Filter by the category of the account (exact match).
    #[schemars(length(max = MAX_CATEGORY_CHARS))]
    pub category: Option<String>,
    /// Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this
    /// value.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema", extend("maxProperties" = MAX_METADATA_FILTERS))]
    pub metadata: Metadata,
}

impl AccountLabels {
    pub fn is_empty(&self) -> bool {
        self.category.is_none() && self.metadata.is_empty()
    }
}

/// The example of tags in the API document.
pub(super) fn example_metadata() -> Value {
    json!({"team": "north", "campaign": "spring"})
}

record! {
    /// An account, with the latest counters of its discovered videos summed up.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
    pub struct Account {
        /// Account id.
        pub id: Uuid,
        /// Always `account`.
        #[sqlx(skip)]
        pub r#type: AccountType,
        /// Platform of the account.
        pub platform: Platform,
        /// Username on the platform, in lower case, without `@`.
        #[schemars(example = &"salt.and.tide")]
        pub username: String,
        /// Display name; null before the first scrape, or if there is none.
        #[schemars(example = &"Salt & Tide")]
        pub name: Option<String>,
        /// Profile description.
        #[schemars(example = &"Cold water, warm people. Surf school in Ericeira.")]
        pub description: Option<String>,
        /// Profile picture: a stable copy if there is one, otherwise the platform's URL.
        #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
        #[schemars(with = "Option<String>")]
        pub profile_pic_url: Option<PictureUrl>,
        /// Profile picture at the platform; the URL expires.
        #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
        pub profile_pic_url_original: Option<String>,
        /// Whether the account is verified by the platform.
        #[schemars(example = true)]
        pub is_verified: bool,
        /// Whether tracking is active; `false` if paused.
        #[schemars(example = true)]
        pub is_active: bool,
        /// Whether the platform no longer shows an account of this username.
        #[schemars(example = false)]
        pub is_unavailable: bool,
        /// Link in the profile.
        #[schemars(example = &"https://saltandtide.example")]
        pub link_in_bio: Option<String>,
        /// Creator of the account; null if it has none.
        pub creator_id: Option<Uuid>,
        /// Name of the creator.
        #[schemars(example = &"Marta Soares")]
        pub creator_name: Option<String>,
        /// Your own label.
        #[schemars(example = &"surf")]
        pub category: Option<String>,
        /// Your own tags.
        #[schemars(example = example_metadata())]
        #[sqlx(json)]
        pub metadata: Metadata,
        /// Time at which the account was added.
        pub added_at: DateTime<Utc>,
        /// Time of the first scrape; null before it.
        pub first_scrape_time: Option<DateTime<Utc>>,
        /// Time of the latest scrape; null before the first.
        pub last_scrape_time: Option<DateTime<Utc>>,
        /// Hours between scrapes.
        #[schemars(example = 24)]
        pub scrape_interval_hours: i32,
        /// Followers at the latest scrape.
        #[schemars(example = 48_210)]
        pub follower_count: i64,
        /// Followed accounts at the latest scrape.
        #[schemars(example = 312)]
        pub following_count: i64,
        /// Number of posts according to the profile.
        #[schemars(example = 420)]
        pub profile_post_count: i64,
        /// Number of discovered posts.
        #[schemars(example = 365)]
        pub total_post_count: i64,
        #[serde(flatten)]
        #[sqlx(flatten)]
        pub counters: CounterSums,
        /// Maximum number of posts that the first scrape reads; null for the organization's default.
        #[schemars(example = None::<()>)]
        pub max_recent_posts_per_account: Option<i32>,
        /// Number of days that the first scrape goes back; null for the organization's default.
        #[schemars(example = None::<()>)]
        pub post_lookback_days: Option<i32>,
        /// Maximum number of posts that the first scrape reads, with the default applied.
        #[schemars(example = 500)]
        pub effective_max_recent_posts_per_account: i32,
        /// Number of days that the first scrape goes back, with the default applied.
        #[schemars(example = 365)]
        pub effective_post_lookback_days: i32,
        /// Tracking status.
        #[sqlx(flatten)]
        pub tracking: Tracking,
    }
}

/// An account in a table, with the subject of its history.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct NamedAccount {
    pub id: Uuid,
    pub internal_id: i64,
    pub platform: Platform,
    pub username: String,
    pub creator_name: Option<String>,
}

/// Whether an account is updated.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
#[schemars(inline)]
pub struct AccountTracking {
    /// Whether tracking is active; `false` if paused.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Tracking status.
    #[sqlx(flatten)]
    pub tracking: Tracking,
}

/// The constant `type` of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AccountType {
    #[default]
    Account,
}

/// Recent posting activity of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccountStats {
    /// Account id.
    pub account_id: Uuid,
    /// Number of discovered posts.
    #[schemars(example = 365)]
    pub account_videos_count: i64,
    /// Number of posts per UTC day, oldest day first; the last day is today.
    #[schemars(example = [1, 0, 2, 0, 0, 1, 1])]
    pub posts_per_day_7d: [i64; 7],
}

/// A category and the number of its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountCategory {
    /// Your own label.
    #[schemars(example = &"surf")]
    pub category: String,
    /// Number of accounts with this label.
    #[schemars(example = 12)]
    pub accounts: i64,
}

impl AccountStats {
    /// Returns the days of `posts_per_day_7d`, oldest first.
    pub fn days(today: NaiveDate) -> [NaiveDate; 7] {
        std::array::from_fn(|n| today - chrono::Days::new(6 - n as u64))
    }
}
