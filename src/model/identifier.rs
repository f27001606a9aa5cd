//! The platforms' own names of things: usernames, shortcodes, video ids and the URLs that hold them.
//!
//! Everything here is decided from the text alone; short links that only the platform can resolve are
//! recognised, not followed.

use std::ops::RangeInclusive;

use url::Url;

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
    #[error("the URL names no profile of {0}")]
    Url(Platform),
}

impl Username {
    /// Reads a username, with or without a leading `@`, or a profile URL.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, BadUsername> {
        let text = text.trim_ascii();
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
    let url = read_url(text).ok_or_else(wrong)?;
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

/// Reads a web address, with or without its scheme; one with a port or credentials is none of a platform's.
fn read_url(text: &str) -> Option<Url> {
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("https://{text}")) };
    url.ok().filter(is_plain)
}

/// Whether an address of the web has neither a port of its own nor credentials.
fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
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

/// What a platform calls a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VideoName {
    /// The platform's id.
    ExternalId(String),
    /// What stands for the id in Instagram's URLs.
    Shortcode(String),
}

impl VideoName {
    pub fn external_id(&self) -> Option<&str> {
        match self {
            VideoName::ExternalId(id) => Some(id),
            VideoName::Shortcode(_) => None,
        }
    }

    pub fn shortcode(&self) -> Option<&str> {
        match self {
            VideoName::Shortcode(code) => Some(code),
            VideoName::ExternalId(_) => None,
        }
    }
}

/// A video as a text names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVideo {
    pub name: VideoName,
    /// Whose it is, where a TikTok URL says so.
    pub username: Option<String>,
}

/// What a text that is to name a video turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VideoIdentifier {
    Video(NamedVideo),
    /// Only the platform knows which video it leads to.
    ShortLink(ShortLink),
}

/// A short link of TikTok, in the form in which the platform is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortLink(Url);

impl ShortLink {
    pub const fn url(&self) -> &Url {
        &self.0
    }
}

/// Why a text names no video of a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadVideoIdentifier {
    #[error("must be the shortcode, the id or the URL of an Instagram post")]
    Instagram,
    #[error("must be the id or the URL of a TikTok video")]
    Tiktok,
    #[error("is a URL of {0}, which is not the platform that the request names")]
    OtherPlatform(Platform),
    #[error("is a URL that names no video of {0}")]
    Url(Platform),
}

/// Digits from which a bare number is Instagram's id of a post: a shortcode has at most 11 characters.
const INSTAGRAM_ID_DIGITS: usize = 12;

impl VideoIdentifier {
    /// Reads an id, an Instagram shortcode, or a URL in one of the forms that the platforms' pages and apps give.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, BadVideoIdentifier> {
        let text = text.trim_ascii();
        // Neither ids nor shortcodes hold a dot or a slash, and there is no URL without one.
        if text.contains(['.', '/']) {
            let url = read_url(text).ok_or(BadVideoIdentifier::Url(platform))?;
            return Self::of_url(platform, &url);
        }
        let name = match platform {
            Platform::Instagram if text.len() >= INSTAGRAM_ID_DIGITS && is_number(text) => external_id(text),
            Platform::Instagram => shortcode(text),
            Platform::Tiktok => external_id(text),
        };
        let wrong = match platform {
            Platform::Instagram => BadVideoIdentifier::Instagram,
            Platform::Tiktok => BadVideoIdentifier::Tiktok,
        };
        name.map(|name| VideoIdentifier::Video(NamedVideo { name, username: None })).ok_or(wrong)
    }

    /// Reads a URL.
    pub fn of_url(platform: Platform, url: &Url) -> Result<Self, BadVideoIdentifier> {
        let wrong = || BadVideoIdentifier::Url(platform);
        if !is_plain(url) {
            return Err(wrong());
        }
        let host = url.host_str().unwrap_or_default();
        let short_host = is_short_link_host(host);
        let whose = if short_host { Some(Platform::Tiktok) } else { host_platform(host) };
        match whose {
            Some(whose) if whose == platform => {}
            Some(other) => return Err(BadVideoIdentifier::OtherPlatform(other)),
            None => return Err(wrong()),
        }
        let segments = url.path_segments().ok_or_else(wrong)?.filter(|segment| !segment.is_empty());
        let segments: Vec<_> = segments.collect();
        let named = |name, username| NamedVideo { name, username };
        match (platform, &segments[..]) {
            (Platform::Instagram, [kind, code] | [_, kind, code])
                if ["p", "reel", "reels", "tv"].contains(kind) =>
            {
                shortcode(code).map(|name| VideoIdentifier::Video(named(name, None)))
            }
            (Platform::Tiktok, [code]) if short_host => short_link(&format!("https://{host}/"), code),
            (Platform::Tiktok, ["t", code]) if !short_host => short_link("https://www.tiktok.com/t/", code),
            (Platform::Tiktok, [user, "video" | "photo", id]) if !short_host => {
                let user = user.strip_prefix('@').or_else(|| user.strip_prefix("%40")).ok_or_else(wrong)?;
                // TikTok itself writes URLs without the name, and so does this service where it does not know it.
                // The id alone says which video it is: a name that nobody can have says nothing.
                let username = Username::parse(platform, user).ok().map(Username::into_string);
                external_id(id).map(|name| VideoIdentifier::Video(named(name, username)))
            }
            // Where links lead that TikTok's app gives to a browser of a phone.
            (Platform::Tiktok, ["v", page]) if !short_host => page
                .strip_suffix(".html")
                .and_then(external_id)
                .map(|name| VideoIdentifier::Video(named(name, None))),
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

/// Whether a short link can be asked for at this host.
pub fn answers_short_links(host: &str) -> bool {
    host == "www.tiktok.com" || is_short_link_host(host)
}

fn is_short_link_host(host: &str) -> bool {
    ["vm.tiktok.com", "vt.tiktok.com"].contains(&host)
}

fn short_link(base: &str, code: &str) -> Option<VideoIdentifier> {
    let url =
        Some(code).filter(|code| is_code(code, 1..=64)).map(|code| Url::parse(&format!("{base}{code}/")));
    url?.ok().map(|url| VideoIdentifier::ShortLink(ShortLink(url)))
}

fn is_code(text: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn shortcode(text: &str) -> Option<VideoName> {
    // Those of private posts are longer than those that anybody can see.
    is_code(text, 5..=40).then(|| VideoName::Shortcode(text.to_owned()))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a platform's id: a number of at most 64 bits, in its only spelling.
fn external_id(text: &str) -> Option<VideoName> {
    let sound = is_number(text) && !text.starts_with('0') && text.parse::<u64>().is_ok();
    sound.then(|| VideoName::ExternalId(text.to_owned()))
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

    fn video(platform: Platform, text: &str) -> Option<(VideoName, Option<String>)> {
        match VideoIdentifier::parse(platform, text) {
            Ok(VideoIdentifier::Video(video)) => Some((video.name, video.username)),
            _ => None,
        }
    }

    #[test]
    fn every_form_of_an_instagram_post_is_understood() {
        let code = Some((VideoName::Shortcode("CfUjwr8vyv2".to_owned()), None));
        for text in [
            "CfUjwr8vyv2",
            " CfUjwr8vyv2 ",
            "https://www.instagram.com/p/CfUjwr8vyv2/",
            "http://instagram.com/reel/CfUjwr8vyv2",
            "m.instagram.com/reels/CfUjwr8vyv2/?igsh=MzRl&utm_source=ig_web_copy_link",
            "HTTPS://WWW.Instagram.COM/tv/CfUjwr8vyv2//#top",
            "instagram.com/some.one_1/reel/CfUjwr8vyv2/?img_index=1",
        ] {
            assert_eq!(video(Platform::Instagram, text), code, "{text}");
        }
        let id = Some((VideoName::ExternalId("17976197140599116".to_owned()), None));
        assert_eq!(video(Platform::Instagram, "17976197140599116"), id);
        let digits = Some((VideoName::Shortcode("12345678901".to_owned()), None));
        assert_eq!(video(Platform::Instagram, "12345678901"), digits, "no id is that short");
    }

    #[test]
    fn every_form_of_a_tiktok_video_is_understood() {
        let id = || VideoName::ExternalId("7301234567890123456".to_owned());
        for (text, username) in [
            ("7301234567890123456", None),
            ("https://www.tiktok.com/@Some.One/video/7301234567890123456?is_from_webapp=1", Some("some.one")),
            ("tiktok.com/@some.one/photo/7301234567890123456/", Some("some.one")),
            ("http://m.tiktok.com/%40some.one/video/7301234567890123456", Some("some.one")),
            ("https://www.tiktok.com/@/video/7301234567890123456", None),
            ("https://www.tiktok.com/@x/video/7301234567890123456", None),
            ("https://m.tiktok.com/v/7301234567890123456.html?_r=1", None),
        ] {
            let expected = Some((id(), username.map(str::to_owned)));
            assert_eq!(video(Platform::Tiktok, text), expected, "{text}");
        }
    }

    #[test]
    fn short_links_are_recognised_and_not_followed() {
        for (text, asked) in [
            ("https://vm.tiktok.com/ZMabc123/?k=1", "https://vm.tiktok.com/ZMabc123/"),
            ("vt.tiktok.com/ZSabc", "https://vt.tiktok.com/ZSabc/"),
            ("http://m.tiktok.com/t/ZTabc/", "https://www.tiktok.com/t/ZTabc/"),
        ] {
            match VideoIdentifier::parse(Platform::Tiktok, text) {
                Ok(VideoIdentifier::ShortLink(link)) => assert_eq!(link.url().as_str(), asked),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_names_no_video_is_refused_with_the_reason() {
        use BadVideoIdentifier as Bad;
        for (platform, text, error) in [
            (Platform::Instagram, "", Bad::Instagram),
            (Platform::Instagram, "abc", Bad::Instagram),
            (Platform::Instagram, "has a space", Bad::Instagram),
            (Platform::Instagram, "99999999999999999999999", Bad::Instagram),
            (Platform::Tiktok, "CfUjwr8vyv2", Bad::Tiktok),
            (Platform::Tiktok, "0730123456789", Bad::Tiktok),
            (Platform::Tiktok, "99999999999999999999", Bad::Tiktok),
            (
                Platform::Tiktok,
                "https://www.instagram.com/p/CfUjwr8vyv2",
                Bad::OtherPlatform(Platform::Instagram),
            ),
            (Platform::Instagram, "https://vm.tiktok.com/ZMabc", Bad::OtherPlatform(Platform::Tiktok)),
            (Platform::Instagram, "https://www.instagram.com/someone/", Bad::Url(Platform::Instagram)),
            (Platform::Instagram, "https://www.instagram.com/p/", Bad::Url(Platform::Instagram)),
            (
                Platform::Instagram,
                "https://www.instagram.com/reels/audio/12345678",
                Bad::Url(Platform::Instagram),
            ),
            (Platform::Tiktok, "https://www.tiktok.com/@someone", Bad::Url(Platform::Tiktok)),
            (
                Platform::Tiktok,
                "https://www.tiktok.com/someone/video/7301234567890123456",
                Bad::Url(Platform::Tiktok),
            ),
            (Platform::Tiktok, "https://vm.tiktok.com/", Bad::Url(Platform::Tiktok)),
            (Platform::Tiktok, "https://vm.tiktok.com/a%2Fb/", Bad::Url(Platform::Tiktok)),
            (
                Platform::Tiktok,
                "https://tiktok.com.evil.example/@a1/video/7301234567890123456",
                Bad::Url(Platform::Tiktok),
            ),
            (Platform::Tiktok, "https://www.tiktok.com:8080/t/ZTabc", Bad::Url(Platform::Tiktok)),
            (Platform::Tiktok, "https://user@vm.tiktok.com/ZMabc", Bad::Url(Platform::Tiktok)),
            (Platform::Tiktok, "ftp://vm.tiktok.com/ZMabc", Bad::Url(Platform::Tiktok)),
            (Platform::Tiktok, "http://169.254.169.254/latest", Bad::Url(Platform::Tiktok)),
        ] {
            assert_eq!(VideoIdentifier::parse(platform, text), Err(error), "{text}");
        }
    }
}
