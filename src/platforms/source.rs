//! The one trait that every collector of platform data implements, and what it can answer.
//!
//! A source speaks one wire format to one service. What it learned comes back as plain values in which every
//! counter is optional; why it learned nothing comes back as a [`Refusal`] that says what to do about it.

use chrono::{DateTime, NaiveDate, Utc};
use futures_util::future::BoxFuture;

use crate::model::cost::Paging;
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// What a platform says of an account; `None` where it says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The platform's own id of the account, which a rename does not change.
    pub platform_id: Option<String>,
    pub username: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub profile_pic_url: Option<String>,
    pub link_in_bio: Option<String>,
    pub is_verified: Option<bool>,
    pub follower_count: Option<i64>,
    pub following_count: Option<i64>,
    pub post_count: Option<i64>,
}

/// What a platform says of one post.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    pub external_id: String,
    pub shortcode: Option<String>,
    pub url: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    /// Seconds.
    pub duration: Option<f64>,
    pub cover_image_url: Option<String>,
    pub video_url: Option<String>,
    pub create_time: Option<DateTime<Utc>>,
    pub counters: Counters,
    /// What the platform said beyond these: a JSON object.
    pub platform_data: serde_json::Value,
}

/// An account's profile and its posts, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedAccount {
    pub profile: Profile,
    pub posts: Vec<Post>,
}

/// Which account is meant: by the platform's id where the source can, else by its username.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountKey {
    pub username: String,
    pub platform_id: Option<String>,
}

/// Which post is meant; a source uses the name it understands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PostKey {
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub username: Option<String>,
}

/// How far back an account's posts are read: whichever limit is reached first ends the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    pub max_posts: usize,
    pub not_before: NaiveDate,
}

/// What a source can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Finds an account by the platform's id, and so follows a rename.
    pub account_by_id: bool,
    /// Reads one post by the platform's id.
    pub post_by_id: bool,
    /// Reads one post by its shortcode.
    pub post_by_shortcode: bool,
}

/// What a source's requests buy, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub paging: Paging,
    /// Requests allowed in a UTC day, where that is known.
    pub daily_limit: Option<u32>,
}

/// Why a source learned nothing, in the terms of what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The thing does not exist or is private; platforms do not tell which.
    #[error("not found, or private: {0}")]
    NotFound(String),
    #[error("rate limited until {until}")]
    RateLimited { until: DateTime<Utc> },
    /// A credential is missing, expired, revoked or lacks a permission: nothing will work until it is mended.
    #[error("credentials refused: {0}")]
    Credentials(String),
    #[error("temporary failure: {0}")]
    Transient(String),
    /// The answer is not of the form that the service documents.
    #[error("malformed answer: {0}")]
    Malformed(String),
    #[error("this source cannot do that")]
    Unsupported,
    /// Our own store could not note the request, so that it was not made. It says nothing of the thing or the source.
    #[error("requests cannot be counted: {0}")]
    BudgetUnavailable(String),
}

impl SourceError {
    /// The word by which metrics know it.
    pub fn label(&self) -> &'static str {
        match self {
            SourceError::NotFound(_) => "not_found",
            SourceError::RateLimited { .. } => "rate_limited",
            SourceError::Credentials(_) => "credentials",
            SourceError::Transient(_) => "transient",
            SourceError::Malformed(_) => "malformed",
            SourceError::Unsupported => "unsupported",
            SourceError::BudgetUnavailable(_) => "uncounted",
        }
    }
}

/// A collector for one platform.
pub trait Source: Send + Sync {
    /// The name under which configuration and metrics know the source.
    fn name(&self) -> &'static str;
    fn platform(&self) -> Platform;
    fn capabilities(&self) -> Capabilities;
    fn price(&self) -> Price;
    /// Reads a profile and the newest posts, down to `depth`. `now` is the service's clock.
    fn fetch_account<'a>(
        &'a self,
        account: &'a AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<FetchedAccount, SourceError>>;
    /// Until when the source asks nothing, if it was told to slow down.
    fn paused_until(&self) -> Option<DateTime<Utc>>;
    /// Reads one post.
    fn fetch_post<'a>(
        &'a self,
        post: &'a PostKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Post, SourceError>>;
}
