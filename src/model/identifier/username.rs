//! Usernames of the platforms.

use crate::model::platform::Platform;

/// Names in Instagram's links that are no usernames.
pub(super) const RESERVED_NAMES: [&str; 9] =
    ["explore", "reels", "reel", "stories", "p", "tv", "share", "accounts", "direct"];

/// A valid username in lower case, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Username(String);

/// Why a text is not a username.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUsername {
    #[error("must be an Instagram username: 1 to 30 letters, digits, dots and underscores")]
    Instagram,
    #[error("must be a TikTok username: 2 to 24 letters, digits, dots and underscores")]
    Tiktok,
    #[error("must not be . or .., which are no usernames")]
    Dots,
    #[error("must not be a name that Instagram reserves, as explore, reels or p")]
    Reserved,
    #[error("is not the URL of a profile on {0}")]
    Url(Platform),
}

impl Username {
    /// Parses a username without `@`.
    pub(super) fn parse_name(platform: Platform, name: &str) -> Result<Self, InvalidUsername> {
        let (min_chars, max_chars, error) = match platform {
            Platform::Instagram => (1, 30, InvalidUsername::Instagram),
            Platform::Tiktok => (2, 24, InvalidUsername::Tiktok),
        };
        // In the path of a URL they would be segments of their own meaning.
        if name == "." || name == ".." {
            return Err(InvalidUsername::Dots);
        }
        let is_valid = (min_chars..=max_chars).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
        if !is_valid {
            return Err(error);
        }
        if platform == Platform::Instagram && is_reserved(name) {
            return Err(InvalidUsername::Reserved);
        }
        Ok(Username(name.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}
