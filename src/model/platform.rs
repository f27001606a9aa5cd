//! The two social platforms that accounts and videos live on.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::identifier::VideoName;

/// A social platform, in the spelling of the API.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Deserialize, sqlx::Type,
)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Platform {
    Instagram,
    Tiktok,
}

impl Platform {
    pub const ALL: [Platform; 2] = [Platform::Instagram, Platform::Tiktok];

    /// Returns the name that the API and the stores use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Platform::Instagram => "instagram",
            Platform::Tiktok => "tiktok",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Platform::ALL.into_iter().find(|platform| platform.as_str() == text).ok_or(UnknownPlatform)
    }
}

/// The error of a platform name that is neither `instagram` nor `tiktok`.
#[derive(Debug, thiserror::Error)]
#[error("the platform must be instagram or tiktok")]
pub struct UnknownPlatform;

/// What the configured sources can read, by platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    pub accounts: Vec<Platform>,
    /// Single posts by the platform's id.
    pub posts_by_id: Vec<Platform>,
    /// Single posts by their shortcode.
    pub posts_by_shortcode: Vec<Platform>,
}

impl Readable {
    /// Everything on these platforms.
    pub fn new(platforms: impl IntoIterator<Item = Platform>) -> Self {
        let all: Vec<_> = platforms.into_iter().collect();
        Readable { accounts: all.clone(), posts_by_id: all.clone(), posts_by_shortcode: all }
    }

    /// Whether some source reads a single video by this name of it.
    pub fn reads_video(&self, platform: Platform, name: &VideoName) -> bool {
        let platforms = match name {
            VideoName::ExternalId(_) => &self.posts_by_id,
            VideoName::Shortcode(_) => &self.posts_by_shortcode,
        };
        platforms.contains(&platform)
    }
}

/// The platforms' names, as the stores compare them.
pub fn names(platforms: &[Platform]) -> Vec<&'static str> {
    platforms.iter().map(|platform| platform.as_str()).collect()
}
