//! Usernames as users write them: by themselves, or in the link of a profile.

use super::invisible::trim_invisible;
use super::link::{Link, LinkTarget};
use super::username::{InvalidUsername, Username};
use crate::model::platform::Platform;

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
