//! Usernames of the platforms, and the profile URLs that contain them.

use super::invisible::trim_invisible;
use super::link::{Link, LinkTarget, is_reserved};
use crate::model::platform::Platform;

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
    /// Parses a username, with or without a leading `@`, or a profile URL, which is trimmed.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, InvalidUsername> {
        let text = trim_invisible(text);
        if !text.contains('/') {
            return Self::parse_name(platform, text.strip_prefix('@').unwrap_or(text));
        }
        match Link::parse(text) {
            Ok(Link { platform: same, target: LinkTarget::Profile(name) }) if same == platform => Ok(name),
            _ => Err(InvalidUsername::Url(platform)),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(platform: Platform, text: &str) -> Option<String> {
        Username::parse(platform, text).ok().map(Username::into_string)
    }

    #[test]
    fn username_is_normalized() {
        for text in [
            "Some.One_1",
            "@some.one_1",
            " https://www.instagram.com/Some.One_1/?igsh=x ",
            "instagram.com/some.one_1",
            "\u{200B}@some.one_1\u{A0}",
            "\u{FEFF}instagram.com/some.one_1/reels/\u{2069}",
        ] {
            assert_eq!(parse(Platform::Instagram, text).as_deref(), Some("some.one_1"), "{text}");
        }
        assert_eq!(parse(Platform::Tiktok, "https://m.tiktok.com/@Ab").as_deref(), Some("ab"));
    }

    #[test]
    fn invalid_username_is_rejected() {
        for text in [
            "",
            "@",
            "é",
            "a b",
            ".",
            "@..",
            "https://www.tiktok.com/@ab",
            "https://www.instagram.com/p/abc",
            "https://www.instagram.com/explore/",
            "instagram.com/share/abcdef",
            "reels",
            "@Direct",
            &"a".repeat(31),
        ] {
            assert_eq!(parse(Platform::Instagram, text), None, "{text}");
        }
        for text in [
            "a",
            "..",
            "https://www.tiktok.com/@..",
            "https://www.tiktok.com/ab",
            "https://evil.com/@ab",
            &"a".repeat(25),
        ] {
            assert_eq!(parse(Platform::Tiktok, text), None, "{text}");
        }
    }
}
