//! The platforms that the configured sources can read.

use serde::Serialize;

use super::identifier::VideoIds;
use super::platform::Platform;

/// The platforms that a source is configured for, by the kind of read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadablePlatforms {
    pub accounts: Vec<Platform>,
    /// Single posts by the platform's id.
    pub posts_by_id: Vec<Platform>,
    /// Single posts by shortcode.
    pub posts_by_shortcode: Vec<Platform>,
}

/// The identifier by which a source must be able to look a target up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum FoundBy {
    /// An account.
    Username,
    /// A video by the platform's id.
    Id,
    /// A video by its shortcode.
    Shortcode,
    /// A video by either.
    IdOrShortcode,
}

impl FoundBy {
    pub fn is_account(self) -> bool {
        self == FoundBy::Username
    }

    /// Whether a source that reads accounts, and single posts by these keys, can read the target.
    const fn is_supported(self, accounts: bool, by_id: bool, by_shortcode: bool) -> bool {
        match self {
            FoundBy::Username => accounts,
            FoundBy::Id => by_id,
            FoundBy::Shortcode => by_shortcode,
            FoundBy::IdOrShortcode => by_id || by_shortcode,
        }
    }
}

/// A source that the program has, whether it is configured, and what it reads besides accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSource {
    pub platform: Platform,
    pub name: &'static str,
    pub is_configured: bool,
    pub post_by_id: bool,
    pub post_by_shortcode: bool,
    /// Requests per UTC day, if there is a limit.
    pub daily_limit: Option<u32>,
}

impl KnownSource {
    pub const fn unconfigured(platform: Platform, name: &'static str) -> Self {
        KnownSource {
            platform,
            name,
            is_configured: false,
            post_by_id: false,
            post_by_shortcode: false,
            daily_limit: None,
        }
    }

    /// Whether it can read what is found this way.
    pub fn can_read(&self, platform: Platform, found_by: FoundBy) -> bool {
        self.is_configured
            && self.platform == platform
            && found_by.is_supported(true, self.post_by_id, self.post_by_shortcode)
    }
}

impl ReadablePlatforms {
    /// Supports every kind of read on these platforms.
    pub fn new(platforms: impl IntoIterator<Item = Platform>) -> Self {
        let all: Vec<_> = platforms.into_iter().collect();
        ReadablePlatforms { accounts: all.clone(), posts_by_id: all.clone(), posts_by_shortcode: all }
    }

    /// Whether a source can read a single video by one of these ids.
    pub fn supports_video(&self, platform: Platform, ids: &VideoIds) -> bool {
        ids.external_id().is_some() && self.posts_by_id.contains(&platform)
            || ids.shortcode().is_some() && self.posts_by_shortcode.contains(&platform)
    }

    /// Whether a source can read what is found this way.
    pub fn supports_target(&self, platform: Platform, found_by: FoundBy) -> bool {
        let has = |platforms: &[Platform]| platforms.contains(&platform);
        found_by.is_supported(has(&self.accounts), has(&self.posts_by_id), has(&self.posts_by_shortcode))
    }
}
