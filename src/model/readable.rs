//! The platforms that the configured sources can read.

use super::identifier::PlatformVideoId;
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

impl ReadablePlatforms {
    /// Supports every kind of read on these platforms.
    pub fn new(platforms: impl IntoIterator<Item = Platform>) -> Self {
        let all: Vec<_> = platforms.into_iter().collect();
        ReadablePlatforms { accounts: all.clone(), posts_by_id: all.clone(), posts_by_shortcode: all }
    }

    /// Whether a source can read a single video by this kind of id.
    pub fn supports_video(&self, platform: Platform, id: &PlatformVideoId) -> bool {
        let platforms = match id {
            PlatformVideoId::ExternalId(_) => &self.posts_by_id,
            PlatformVideoId::Shortcode(_) => &self.posts_by_shortcode,
        };
        platforms.contains(&platform)
    }
}
