//! Usernames of the platforms, and the profile URLs that contain them.

use super::url::{parse_url, platform_from_host};
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
    #[error("is not the URL of a profile on {0}")]
    Url(Platform),
}

impl Username {
    /// Parses a username, with or without a leading `@`, or a profile URL.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, InvalidUsername> {
        let text = text.trim_ascii();
        let name = if text.contains('/') { username_from_url(platform, text)? } else { text.to_owned() };
        let name = name.strip_prefix('@').unwrap_or(&name);
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
        if is_valid { Ok(Username(name.to_ascii_lowercase())) } else { Err(error) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// Extracts the username from a profile URL, with or without its scheme.
fn username_from_url(platform: Platform, text: &str) -> Result<String, InvalidUsername> {
    let invalid = || InvalidUsername::Url(platform);
    let url = parse_url(text).ok_or_else(invalid)?;
    if platform_from_host(url.host_str().unwrap_or_default()) != Some(platform) {
        return Err(invalid());
    }
    let mut segments = url.path_segments().ok_or_else(invalid)?.filter(|segment| !segment.is_empty());
    match (platform, segments.next(), segments.next()) {
        (Platform::Instagram, Some(name), None) => Ok(name.to_owned()),
        (Platform::Tiktok, Some(name), None) if name.starts_with('@') => Ok(name.to_owned()),
        _ => Err(invalid()),
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
