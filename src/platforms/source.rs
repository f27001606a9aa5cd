//! The trait that every source of platform data implements, and its results.
//!
//! A source uses one wire format of one service. Fields that it does not report are `None`. A [`SourceError`] classifies
//! failures by what to do next.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use futures_util::future::BoxFuture;

use crate::model::cost::Paging;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::VideoIds;
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;

/// An account as the platform reports it; `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The platform's id of the account, which a rename does not change.
    pub platform_id: Option<String>,
    pub username: String,
    pub fields: AccountFields,
    pub counters: ProfileCounters,
}

/// A post as the platform reports it; `None` is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    pub external_id: String,
    pub shortcode: Option<String>,
    pub fields: VideoFields,
    pub counters: Counters,
}

impl Post {
    pub fn ids(&self, platform: Platform) -> VideoIds {
        VideoIds::new(platform, Some(&self.external_id), self.shortcode.as_deref())
    }
}

/// An account's profile and its posts, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedAccount {
    pub profile: Profile,
    pub posts: Vec<Post>,
}

/// Identifies an account: by the platform's id if it is known and the source supports that, else by username.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountKey {
    pub username: String,
    pub platform_id: Option<String>,
}

/// Identifies a post: a source uses the field that it supports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PostKey {
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub username: Option<String>,
}

/// How far back an account's posts are read: until either limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    pub max_posts: usize,
    pub not_before: NaiveDate,
}

impl Depth {
    /// Returns the time of the oldest post that is read.
    pub fn oldest(self) -> DateTime<Utc> {
        self.not_before.and_time(NaiveTime::MIN).and_utc()
    }
}

/// A source's description, and the operations that it supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceInfo {
    /// The name in configuration and metrics.
    pub name: &'static str,
    pub platform: Platform,
    /// Finds an account by the platform's id, even after a rename.
    pub account_by_id: bool,
    pub post_by_id: bool,
    pub post_by_shortcode: bool,
    /// How many requests an account's posts take.
    pub paging: Paging,
    /// How many requests are allowed in a UTC day, if there is a limit.
    pub daily_limit: Option<u32>,
}

impl SourceInfo {
    pub fn reads_posts(&self) -> bool {
        self.post_by_id || self.post_by_shortcode
    }

    /// Whether the source can read a post by one of its known keys.
    pub fn can_read(&self, post: &PostKey) -> bool {
        (self.post_by_id && post.external_id.is_some())
            || (self.post_by_shortcode && post.shortcode.is_some())
    }
}

/// Why a source returned no data, by what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The account or post does not exist or is private; platforms do not distinguish these.
    #[error("not found, or private: {0}")]
    NotFound(String),
    #[error("rate limited until {until}")]
    RateLimited { until: DateTime<Utc> },
    /// A credential is missing, expired, revoked or lacks a permission. Retrying does not help until it is replaced.
    #[error("credentials rejected: {0}")]
    Credentials(String),
    #[error("temporary failure: {0}")]
    Transient(String),
    /// The response does not have the format that the service documents.
    #[error("malformed response: {0}")]
    Malformed(String),
    #[error("this source does not support the request")]
    Unsupported,
    /// The request was not made, because refreshes have used up their share of the day's budget. Scheduled reads go on.
    #[error("refreshes have used up their share of the source's daily budget")]
    RefreshShareUsed,
    /// The request was not made because it could not be counted against the daily budget. This is no failure of the
    /// source, the account or the post.
    #[error("requests cannot be counted: {0}")]
    BudgetUnavailable(String),
}

impl SourceError {
    /// Returns the label value in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            SourceError::NotFound(_) => "not_found",
            SourceError::RateLimited { .. } => "rate_limited",
            SourceError::Credentials(_) => "credentials",
            SourceError::Transient(_) => "transient",
            SourceError::Malformed(_) => "malformed",
            SourceError::Unsupported => "unsupported",
            SourceError::RefreshShareUsed => "refresh_share_used",
            SourceError::BudgetUnavailable(_) => "uncounted",
        }
    }
}

/// A running read of a source.
pub type Fetch<'a, T> = BoxFuture<'a, Result<T, SourceError>>;

/// A source of data of one platform. `now` is the service's clock.
pub trait Source: Send + Sync {
    fn info(&self) -> SourceInfo;

    /// Returns the end of the latest cooldown, which may be over.
    fn paused_until(&self) -> Option<DateTime<Utc>>;

    /// Reads a profile and the newest posts, down to `depth`.
    fn fetch_account<'a>(
        &'a self,
        account: &'a AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Fetch<'a, FetchedAccount>;

    fn fetch_post<'a>(&'a self, post: &'a PostKey, now: DateTime<Utc>) -> Fetch<'a, Post>;
}
