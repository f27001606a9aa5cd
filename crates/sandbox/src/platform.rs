//! Properties that the platforms have in common: names, usernames, URLs and counters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Instagram,
    Tiktok,
}

impl Platform {
    pub const ALL: [Platform; 2] = [Platform::Instagram, Platform::Tiktok];

    pub const fn as_str(self) -> &'static str {
        match self {
            Platform::Instagram => "instagram",
            Platform::Tiktok => "tiktok",
        }
    }

    /// Returns the most characters of a username.
    pub const fn max_username_chars(self) -> usize {
        match self {
            Platform::Instagram => 30,
            Platform::Tiktok => 24,
        }
    }

    /// Returns a username as the platform shows it, if the platform accepts it.
    pub fn parse_username(self, text: &str) -> Option<String> {
        let is_valid = (2..=self.max_username_chars()).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
        is_valid.then(|| text.to_ascii_lowercase())
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

#[derive(Debug, thiserror::Error)]
#[error("the platform must be instagram or tiktok")]
pub struct UnknownPlatform;

/// Returns the URL of a TikTok video.
pub fn tiktok_video_url(username: &str, id: &str) -> String {
    format!("https://www.tiktok.com/@{username}/video/{id}")
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// The counters of a post; `None` is unknown.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $(pub $name: Option<i64>),*
        }

        impl Counters {
            /// Their names in the http source and in files.
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];

            pub const fn to_array(self) -> [Option<i64>; Self::NAMES.len()] {
                [$(self.$name),*]
            }

            pub const fn from_array([$($name),*]: [Option<i64>; Self::NAMES.len()]) -> Self {
                Counters { $($name),* }
            }
        }
    };
}
counters!(
    view_count,
    like_count,
    comment_count,
    share_count,
    saved_count,
    play_count,
    ig_play_count,
    fb_play_count,
    fb_like_count
);
