//! The platforms' own names of things: usernames, shortcodes, video ids and the URLs that hold them.
//!
//! Everything here is decided from the text alone; short links that only the platform can resolve are
//! recognised, not followed.

use super::platform::Platform;

/// A username in the form it is stored: checked by the platform's rules and lower-cased.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Username(String);

/// Why a text is no username of a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUsername {
    #[error("an Instagram username has 1 to 30 letters, digits, dots and underscores")]
    Instagram,
    #[error("a TikTok username has 2 to 24 letters, digits, dots and underscores")]
    Tiktok,
    #[error("the URL is not one of a {0} profile")]
    Url(Platform),
}

impl Username {
    /// Reads a username, with or without a leading `@`, or a profile URL.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, BadUsername> {
        let text = text.trim();
        let name = if text.contains('/') { profile_name(platform, text)? } else { text.to_owned() };
        let name = name.strip_prefix('@').unwrap_or(&name);
        let (shortest, longest, error) = match platform {
            Platform::Instagram => (1, 30, BadUsername::Instagram),
            Platform::Tiktok => (2, 24, BadUsername::Tiktok),
        };
        let fits = (shortest..=longest).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
        if fits { Ok(Username(name.to_ascii_lowercase())) } else { Err(error) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// Takes the username out of a profile URL, with or without its scheme.
fn profile_name(platform: Platform, text: &str) -> Result<String, BadUsername> {
    let wrong = || BadUsername::Url(platform);
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let url = url::Url::parse(&url).map_err(|_| wrong())?;
    if host_platform(url.host_str().unwrap_or_default()) != Some(platform) {
        return Err(wrong());
    }
    let mut segments = url.path_segments().ok_or_else(wrong)?.filter(|segment| !segment.is_empty());
    match (platform, segments.next(), segments.next()) {
        (Platform::Instagram, Some(name), None) => Ok(name.to_owned()),
        (Platform::Tiktok, Some(name), None) if name.starts_with('@') => Ok(name.to_owned()),
        _ => Err(wrong()),
    }
}

/// Says whose web host this is, `www.` and `m.` included; short-link hosts are not among them.
pub fn host_platform(host: &str) -> Option<Platform> {
    let host = host.to_ascii_lowercase();
    let bare = host.strip_prefix("www.").or_else(|| host.strip_prefix("m.")).unwrap_or(&host);
    match bare {
        "instagram.com" => Some(Platform::Instagram),
        "tiktok.com" => Some(Platform::Tiktok),
        _ => None,
    }
}

/// The public URL of a video.
pub fn video_url(
    platform: Platform,
    username: Option<&str>,
    shortcode: Option<&str>,
    external_id: Option<&str>,
) -> Option<String> {
    match platform {
        Platform::Instagram => shortcode.map(|code| format!("https://www.instagram.com/p/{code}/")),
        Platform::Tiktok => {
            let (user, id) = (username.unwrap_or_default(), external_id?);
            Some(format!("https://www.tiktok.com/@{user}/video/{id}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(platform: Platform, text: &str) -> Option<String> {
        Username::parse(platform, text).ok().map(Username::into_string)
    }

    #[test]
    fn usernames_are_normalised() {
        for text in [
            "Some.One_1",
            "@some.one_1",
            " https://www.instagram.com/Some.One_1/?igsh=x ",
            "instagram.com/some.one_1",
        ] {
            assert_eq!(name(Platform::Instagram, text).as_deref(), Some("some.one_1"), "{text}");
        }
        assert_eq!(name(Platform::Tiktok, "https://m.tiktok.com/@Ab").as_deref(), Some("ab"));
    }

    #[test]
    fn what_is_no_username_is_refused() {
        for text in [
            "",
            "@",
            "é",
            "a b",
            "https://www.tiktok.com/@ab",
            "https://www.instagram.com/p/abc",
            &"a".repeat(31),
        ] {
            assert_eq!(name(Platform::Instagram, text), None, "{text}");
        }
        for text in ["a", "https://www.tiktok.com/ab", "https://evil.com/@ab", &"a".repeat(25)] {
            assert_eq!(name(Platform::Tiktok, text), None, "{text}");
        }
    }
}
