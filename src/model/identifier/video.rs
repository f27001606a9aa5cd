//! Identifiers of videos: the platforms' ids, Instagram's shortcodes, and URLs.

use std::ops::RangeInclusive;

use url::Url;

use super::url::{is_plain, parse_url, platform_from_host};
use super::username::Username;
use crate::model::platform::Platform;

/// An identifier that a platform assigned to a video.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PlatformVideoId {
    ExternalId(String),
    /// Identifies a post in Instagram's URLs.
    Shortcode(String),
}

impl PlatformVideoId {
    pub fn external_id(&self) -> Option<&str> {
        match self {
            PlatformVideoId::ExternalId(id) => Some(id),
            PlatformVideoId::Shortcode(_) => None,
        }
    }

    pub fn shortcode(&self) -> Option<&str> {
        match self {
            PlatformVideoId::Shortcode(code) => Some(code),
            PlatformVideoId::ExternalId(_) => None,
        }
    }
}

/// A video as a user identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoReference {
    pub id: PlatformVideoId,
    /// The author, if a TikTok URL contains it.
    pub username: Option<String>,
}

/// The parsed text by which a user identifies a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VideoIdentifier {
    Video(VideoReference),
    ShortLink(ShortLink),
}

/// A short link of TikTok in normal form; only TikTok can resolve it to a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortLink(Url);

impl ShortLink {
    pub const fn url(&self) -> &Url {
        &self.0
    }
}

/// Why a text does not identify a video of a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVideoIdentifier {
    #[error("must be the shortcode, the id or the URL of an Instagram post")]
    Instagram,
    #[error("must be the id or the URL of a TikTok video")]
    Tiktok,
    #[error("is a URL of {0}, but the request names another platform")]
    OtherPlatform(Platform),
    #[error("is not the URL of a video on {0}")]
    Url(Platform),
}

/// A number with at least as many digits is an id: public shortcodes have at most 11 characters.
const MIN_INSTAGRAM_ID_DIGITS: usize = 12;

/// Hosts that serve nothing but short links.
const SHORT_LINK_HOSTS: [&str; 2] = ["vm.tiktok.com", "vt.tiktok.com"];

impl VideoIdentifier {
    /// Parses an id, an Instagram shortcode, or a URL as the platforms' pages and apps share it.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, InvalidVideoIdentifier> {
        let text = text.trim_ascii();
        // Ids and shortcodes contain neither dots nor slashes; every URL does.
        if text.contains(['.', '/']) {
            let url = parse_url(text).ok_or(InvalidVideoIdentifier::Url(platform))?;
            return Self::from_url(platform, &url);
        }
        let id = match platform {
            Platform::Instagram if text.len() >= MIN_INSTAGRAM_ID_DIGITS && is_number(text) => {
                external_id(text)
            }
            Platform::Instagram => shortcode(text),
            Platform::Tiktok => external_id(text),
        };
        let error = match platform {
            Platform::Instagram => InvalidVideoIdentifier::Instagram,
            Platform::Tiktok => InvalidVideoIdentifier::Tiktok,
        };
        id.map(|id| VideoIdentifier::Video(VideoReference { id, username: None })).ok_or(error)
    }

    pub fn from_url(platform: Platform, url: &Url) -> Result<Self, InvalidVideoIdentifier> {
        let invalid = || InvalidVideoIdentifier::Url(platform);
        if !is_plain(url) {
            return Err(invalid());
        }
        let host = url.host_str().unwrap_or_default();
        let short_host = SHORT_LINK_HOSTS.contains(&host);
        let url_platform = if short_host { Some(Platform::Tiktok) } else { platform_from_host(host) };
        match url_platform {
            Some(same) if same == platform => {}
            Some(other) => return Err(InvalidVideoIdentifier::OtherPlatform(other)),
            None => return Err(invalid()),
        }
        let segments = url.path_segments().ok_or_else(invalid)?.filter(|segment| !segment.is_empty());
        let segments: Vec<_> = segments.collect();
        let video = |id, username| VideoIdentifier::Video(VideoReference { id, username });
        match (platform, &segments[..]) {
            (Platform::Instagram, [kind, code] | [_, kind, code])
                if ["p", "reel", "reels", "tv"].contains(kind) =>
            {
                shortcode(code).map(|id| video(id, None))
            }
            (Platform::Tiktok, [code]) if short_host => short_link(&format!("https://{host}/"), code),
            (Platform::Tiktok, ["t", code]) if !short_host => short_link("https://www.tiktok.com/t/", code),
            (Platform::Tiktok, [user, "video" | "photo", id]) if !short_host => {
                let user = user.strip_prefix('@').or_else(|| user.strip_prefix("%40")).ok_or_else(invalid)?;
                // The id is enough: TikTok accepts any username, and video_url() writes none if it is unknown.
                let username = Username::parse(platform, user).ok().map(Username::into_string);
                external_id(id).map(|id| video(id, username))
            }
            // TikTok's short links redirect mobile browsers here.
            (Platform::Tiktok, ["v", page]) if !short_host => {
                page.strip_suffix(".html").and_then(external_id).map(|id| video(id, None))
            }
            _ => None,
        }
        .ok_or_else(invalid)
    }
}

/// Whether this host resolves short links.
pub fn is_short_link_host(host: &str) -> bool {
    host == "www.tiktok.com" || SHORT_LINK_HOSTS.contains(&host)
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

fn shortcode(text: &str) -> Option<PlatformVideoId> {
    // Shortcodes of private posts are longer than public ones.
    is_code(text, 5..=40).then(|| PlatformVideoId::Shortcode(text.to_owned()))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a platform's id: an unsigned 64-bit number without leading zeros.
fn external_id(text: &str) -> Option<PlatformVideoId> {
    let is_valid = is_number(text) && !text.starts_with('0') && text.parse::<u64>().is_ok();
    is_valid.then(|| PlatformVideoId::ExternalId(text.to_owned()))
}

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
    use super::Platform::{Instagram, Tiktok};
    use super::*;

    fn video(platform: Platform, text: &str) -> Option<(PlatformVideoId, Option<String>)> {
        match VideoIdentifier::parse(platform, text) {
            Ok(VideoIdentifier::Video(video)) => Some((video.id, video.username)),
            _ => None,
        }
    }

    #[test]
    fn every_form_of_an_instagram_post_is_parsed() {
        let code = Some((PlatformVideoId::Shortcode("CfUjwr8vyv2".to_owned()), None));
        for text in [
            "CfUjwr8vyv2",
            " CfUjwr8vyv2 ",
            "https://www.instagram.com/p/CfUjwr8vyv2/",
            "http://instagram.com/reel/CfUjwr8vyv2",
            "m.instagram.com/reels/CfUjwr8vyv2/?igsh=MzRl&utm_source=ig_web_copy_link",
            "HTTPS://WWW.Instagram.COM/tv/CfUjwr8vyv2//#top",
            "instagram.com/some.one_1/reel/CfUjwr8vyv2/?img_index=1",
        ] {
            assert_eq!(video(Instagram, text), code, "{text}");
        }
        let id = Some((PlatformVideoId::ExternalId("17976197140599116".to_owned()), None));
        assert_eq!(video(Instagram, "17976197140599116"), id);
        let digits = Some((PlatformVideoId::Shortcode("12345678901".to_owned()), None));
        assert_eq!(video(Instagram, "12345678901"), digits, "11 digits are a shortcode");
    }

    #[test]
    fn every_form_of_a_tiktok_video_is_parsed() {
        let id = || PlatformVideoId::ExternalId("7301234567890123456".to_owned());
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
            assert_eq!(video(Tiktok, text), expected, "{text}");
        }
    }

    #[test]
    fn short_links_are_normalized() {
        for (text, normalized) in [
            ("https://vm.tiktok.com/ZMabc123/?k=1", "https://vm.tiktok.com/ZMabc123/"),
            ("vt.tiktok.com/ZSabc", "https://vt.tiktok.com/ZSabc/"),
            ("http://m.tiktok.com/t/ZTabc/", "https://www.tiktok.com/t/ZTabc/"),
        ] {
            match VideoIdentifier::parse(Tiktok, text) {
                Ok(VideoIdentifier::ShortLink(link)) => assert_eq!(link.url().as_str(), normalized),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn invalid_identifier_is_rejected_with_the_reason() {
        use InvalidVideoIdentifier as Invalid;
        for (platform, text, error) in [
            (Instagram, "", Invalid::Instagram),
            (Instagram, "abc", Invalid::Instagram),
            (Instagram, "has a space", Invalid::Instagram),
            (Instagram, "99999999999999999999999", Invalid::Instagram),
            (Tiktok, "CfUjwr8vyv2", Invalid::Tiktok),
            (Tiktok, "0730123456789", Invalid::Tiktok),
            (Tiktok, "99999999999999999999", Invalid::Tiktok),
            (Tiktok, "https://www.instagram.com/p/CfUjwr8vyv2", Invalid::OtherPlatform(Instagram)),
            (Instagram, "https://vm.tiktok.com/ZMabc", Invalid::OtherPlatform(Tiktok)),
            (Instagram, "https://www.instagram.com/someone/", Invalid::Url(Instagram)),
            (Instagram, "https://www.instagram.com/p/", Invalid::Url(Instagram)),
            (Instagram, "https://www.instagram.com/reels/audio/12345678", Invalid::Url(Instagram)),
            (Tiktok, "https://www.tiktok.com/@someone", Invalid::Url(Tiktok)),
            (Tiktok, "https://www.tiktok.com/someone/video/7301234567890123456", Invalid::Url(Tiktok)),
            (Tiktok, "https://vm.tiktok.com/", Invalid::Url(Tiktok)),
            (Tiktok, "https://vm.tiktok.com/a%2Fb/", Invalid::Url(Tiktok)),
            (Tiktok, "https://tiktok.com.evil.example/@a1/video/7301234567890123456", Invalid::Url(Tiktok)),
            (Tiktok, "https://www.tiktok.com:8080/t/ZTabc", Invalid::Url(Tiktok)),
            (Tiktok, "https://user@vm.tiktok.com/ZMabc", Invalid::Url(Tiktok)),
            (Tiktok, "ftp://vm.tiktok.com/ZMabc", Invalid::Url(Tiktok)),
            (Tiktok, "http://169.254.169.254/latest", Invalid::Url(Tiktok)),
        ] {
            assert_eq!(VideoIdentifier::parse(platform, text), Err(error), "{text}");
        }
    }
}
