//! The links of posts and profiles, as the platforms' sites and apps share them.

use url::Url;

use super::shortcode::{SHORTCODE_CHARS, is_shortcode};
use super::username::{InvalidUsername, Username, is_reserved};
use super::video_ids::VideoIds;
use crate::model::platform::Platform;

/// A link to a platform's site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub platform: Platform,
    pub target: LinkTarget,
}

/// A video as a user identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoReference {
    pub ids: VideoIds,
    /// The author, if a link contains it.
    pub username: Option<String>,
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    Video(VideoReference),
    Profile(Username),
    /// Only the platform knows.
    ShortLink(ShortLink),
}

/// A short link in normal form; only the platform can resolve it to a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortLink {
    platform: Platform,
    url: Url,
}

impl ShortLink {
    pub const fn platform(&self) -> Platform {
        self.platform
    }

    pub const fn url(&self) -> &Url {
        &self.url
    }
}

/// Why a text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLink {
    #[error("is not a link to instagram.com or tiktok.com")]
    OtherSite,
    #[error("is not the link of a post or a profile on {0}")]
    OtherPage(Platform),
    #[error("{0}")]
    Username(InvalidUsername),
}

/// Hosts that serve nothing but short links.
const SHORT_LINK_HOSTS: [&str; 2] = ["vm.tiktok.com", "vt.tiktok.com"];
const LITE_HOST: &str = "lite.tiktok.com";
const INSTAGRAM_HOSTS: [&str; 2] = ["instagram.com", "instagr.am"];

/// Whether this host resolves short links.
pub fn is_short_link_host(host: &str) -> bool {
    SHORT_LINK_HOSTS.contains(&host) || [LITE_HOST, "www.tiktok.com", "www.instagram.com"].contains(&host)
}

impl Link {
    /// Parses a trimmed link with any scheme or none. Short links, which are requested, are those of HTTP.
    pub fn parse(text: &str) -> Result<Self, InvalidLink> {
        let (scheme, rest) = match text.split_once("//") {
            Some((scheme, rest)) if scheme.is_empty() || is_scheme(scheme) => (scheme, rest),
            _ => ("", text),
        };
        let url = Url::parse(&format!("https://{rest}")).map_err(|_| InvalidLink::OtherSite)?;
        let is_http = ["", "http:", "https:"].contains(&scheme.to_ascii_lowercase().as_str());
        match Self::from_url(&url)? {
            Link { platform, target: LinkTarget::ShortLink(_) } if !is_http => {
                Err(InvalidLink::OtherPage(platform))
            }
            link => Ok(link),
        }
    }

    /// Reads an HTTP URL; one with a port or credentials is not a platform's.
    pub fn from_url(url: &Url) -> Result<Self, InvalidLink> {
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.port().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host_str().filter(|_| is_plain).ok_or(InvalidLink::OtherSite)?;
        let segments: Vec<_> =
            url.path_segments().into_iter().flatten().filter(|segment| !segment.is_empty()).collect();
        let bare = host.strip_prefix("www.").or_else(|| host.strip_prefix("m.")).unwrap_or(host);
        let (platform, target) = match bare {
            _ if INSTAGRAM_HOSTS.contains(&bare) => (Platform::Instagram, instagram_target(&segments)?),
            "tiktok.com" => (Platform::Tiktok, tiktok_target(&segments)?),
            "tiktokv.com" => (Platform::Tiktok, shared_tiktok_video(&segments)),
            LITE_HOST => (Platform::Tiktok, lite_tiktok_link(&segments)),
            _ if SHORT_LINK_HOSTS.contains(&host) => (Platform::Tiktok, short_tiktok_link(host, &segments)),
            _ => return Err(InvalidLink::OtherSite),
        };
        target.map(|target| Link { platform, target }).ok_or(InvalidLink::OtherPage(platform))
    }
}

fn is_scheme(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

fn instagram_target(segments: &[&str]) -> Result<Option<LinkTarget>, InvalidLink> {
    Ok(match segments {
        ["share", "reel" | "p", code] | ["share", code] => short_instagram_link(segments, code),
        ["reels" | "reel", "audio", ..] => None,
        [kind, code, ..] if is_post_kind(kind) => instagram_post(None, code),
        [name, kind, code, ..] if is_post_kind(kind) && !is_reserved(name) => {
            instagram_post(Some(name), code)
        }
        ["_u", name] | [name] | [name, "reels" | "tagged"] => Some(profile(Platform::Instagram, name)?),
        _ => None,
    })
}

fn is_post_kind(segment: &str) -> bool {
    ["p", "reel", "reels", "tv"].contains(&segment)
}

fn instagram_post(username: Option<&str>, code: &str) -> Option<LinkTarget> {
    let ids = is_shortcode(code, SHORTCODE_CHARS).then(|| VideoIds::from_shortcode(code.to_owned()))?;
    Some(LinkTarget::Video(VideoReference { ids, username: known_username(Platform::Instagram, username) }))
}

fn tiktok_target(segments: &[&str]) -> Result<Option<LinkTarget>, InvalidLink> {
    Ok(match segments {
        ["t", code] => short_link(Platform::Tiktok, "https://www.tiktok.com/t/", code),
        ["share", ..] => shared_tiktok_video(segments),
        [user, "video" | "photo", id] => match user_segment(user) {
            Some(user) => tiktok_video(Some(user), id),
            None => None,
        },
        ["embed", id] | ["embed", "v2", id] | ["player", "v1", id] => tiktok_video(None, id),
        // Short links redirect mobile browsers here.
        ["v", page] => page.strip_suffix(".html").and_then(|id| tiktok_video(None, id)),
        [user] | [user, "live"] => match user_segment(user) {
            Some(user) => Some(profile(Platform::Tiktok, user)?),
            None => None,
        },
        _ => None,
    })
}

fn user_segment(segment: &str) -> Option<&str> {
    segment.strip_prefix('@').or_else(|| segment.strip_prefix("%40"))
}

fn shared_tiktok_video(segments: &[&str]) -> Option<LinkTarget> {
    if let ["share", "video", id] = segments { tiktok_video(None, id) } else { None }
}

fn tiktok_video(username: Option<&str>, id: &str) -> Option<LinkTarget> {
    let username = known_username(Platform::Tiktok, username);
    Some(LinkTarget::Video(VideoReference { ids: VideoIds::parse(Platform::Tiktok, id)?, username }))
}

/// Returns the username if it is one: the id alone names the post.
fn known_username(platform: Platform, name: Option<&str>) -> Option<String> {
    Username::parse_name(platform, name?).ok().map(Username::into_string)
}

fn profile(platform: Platform, name: &str) -> Result<LinkTarget, InvalidLink> {
    Username::parse_name(platform, name).map(LinkTarget::Profile).map_err(InvalidLink::Username)
}

fn short_instagram_link(segments: &[&str], code: &str) -> Option<LinkTarget> {
    let folder = segments[..segments.len() - 1].join("/");
    let is_page = segments.len() == 2 && is_post_kind(code);
    short_link(Platform::Instagram, &format!("https://www.instagram.com/{folder}/"), code)
        .filter(|_| !is_page)
}

fn short_tiktok_link(host: &str, segments: &[&str]) -> Option<LinkTarget> {
    let [code] = segments else { return None };
    short_link(Platform::Tiktok, &format!("https://{host}/"), code)
}

fn lite_tiktok_link(segments: &[&str]) -> Option<LinkTarget> {
    let ["t", code] = segments else { return None };
    short_link(Platform::Tiktok, "https://lite.tiktok.com/t/", code)
}

fn short_link(platform: Platform, base: &str, code: &str) -> Option<LinkTarget> {
    if !is_shortcode(code, 1..=64) {
        return None;
    }
    let url = Url::parse(&format!("{base}{code}/")).ok()?;
    Some(LinkTarget::ShortLink(ShortLink { platform, url }))
}

#[cfg(test)]
mod tests {
    use super::super::username::RESERVED_NAMES;
    use super::Platform::{Instagram, Tiktok};
    use super::*;

    fn video(text: &str) -> Option<(Platform, String, Option<String>)> {
        match Link::parse(text) {
            Ok(Link { platform, target: LinkTarget::Video(video) }) => {
                Some((platform, video.ids.key().to_owned(), video.username))
            }
            _ => None,
        }
    }

    #[test]
    fn every_link_of_an_instagram_post_is_understood() {
        for (text, username) in [
            ("https://www.instagram.com/p/CfUjwr8vyv2/", None),
            ("http://instagram.com/reel/CfUjwr8vyv2", None),
            ("m.instagram.com/reels/CfUjwr8vyv2/?igsh=MzRl&utm_source=ig_web_copy_link", None),
            ("HTTPS://WWW.Instagram.COM/tv/CfUjwr8vyv2//#top", None),
            ("//instagram.com/p/CfUjwr8vyv2", None),
            ("ftp://instagram.com/p/CfUjwr8vyv2", None),
            ("instagram.com/p/CfUjwr8vyv2/embed", None),
            ("instagram.com/reel/CfUjwr8vyv2/embed/captioned/", None),
            ("https://www.instagram.com/p/CfUjwr8vyv2/c/17900000000000000/", None),
            ("instagr.am/p/CfUjwr8vyv2", None),
            ("https://www.instagr.am/p/CfUjwr8vyv2/", None),
            ("instagram.com/some.one_1/reel/CfUjwr8vyv2/?img_index=1", Some("some.one_1")),
            ("instagram.com/Some.One_1/p/CfUjwr8vyv2/embed", Some("some.one_1")),
        ] {
            let expected = Some((Instagram, "CfUjwr8vyv2".to_owned(), username.map(str::to_owned)));
            assert_eq!(video(text), expected, "{text}");
        }
        let private = "B-fKL9qpeabUqFW2xiLWLQiIg_TxuOIQ_OQPTM0";
        let Ok(Link { target: LinkTarget::Video(video), .. }) =
            Link::parse(&format!("instagram.com/p/{private}"))
        else {
            panic!()
        };
        assert_eq!((video.ids.shortcode(), video.ids.key()), (Some(private), "B-fKL9qpeab"));
    }

    #[test]
    fn every_link_of_a_tiktok_video_is_understood() {
        for (text, username) in [
            ("https://www.tiktok.com/@Some.One/video/7301234567890123456?is_from_webapp=1", Some("some.one")),
            ("tiktok.com/@some.one/photo/7301234567890123456/", Some("some.one")),
            ("http://m.tiktok.com/%40some.one/video/7301234567890123456#top", Some("some.one")),
            ("https://www.tiktok.com/@/video/7301234567890123456", None),
            ("https://www.tiktok.com/@x/video/7301234567890123456", None),
            ("https://m.tiktok.com/v/7301234567890123456.html?_r=1", None),
            ("tiktok.com/embed/7301234567890123456", None),
            ("https://www.tiktok.com/embed/v2/7301234567890123456?lang=en", None),
            ("https://www.tiktok.com/player/v1/7301234567890123456", None),
            ("tiktok.com/share/video/7301234567890123456", None),
            ("https://m.tiktokv.com/share/video/7301234567890123456/", None),
            ("https://WWW.TikTokV.com/share/video/7301234567890123456/", None),
        ] {
            let expected = Some((Tiktok, "7301234567890123456".to_owned(), username.map(str::to_owned)));
            assert_eq!(video(text), expected, "{text}");
        }
    }

    #[test]
    fn short_links_are_normalized() {
        for (platform, text, normalized) in [
            (Tiktok, "https://vm.tiktok.com/ZMabc123/?k=1", "https://vm.tiktok.com/ZMabc123/"),
            (Tiktok, "vt.tiktok.com/ZSabc", "https://vt.tiktok.com/ZSabc/"),
            (Tiktok, "http://m.tiktok.com/t/ZTabc/", "https://www.tiktok.com/t/ZTabc/"),
            (Tiktok, "lite.tiktok.com/t/ZTabc", "https://lite.tiktok.com/t/ZTabc/"),
            (
                Instagram,
                "instagram.com/share/reel/_AbC-1?x=1",
                "https://www.instagram.com/share/reel/_AbC-1/",
            ),
            (
                Instagram,
                "https://www.instagram.com/share/p/BAabc12345",
                "https://www.instagram.com/share/p/BAabc12345/",
            ),
            (Instagram, "instagram.com/share/BAabc12345/", "https://www.instagram.com/share/BAabc12345/"),
        ] {
            let Ok(Link { target: LinkTarget::ShortLink(link), .. }) = Link::parse(text) else {
                panic!("{text}")
            };
            assert_eq!((link.platform(), link.url().as_str()), (platform, normalized));
            assert!(is_short_link_host(link.url().host_str().unwrap()), "{text}");
        }
    }

    #[test]
    fn links_of_profiles_are_understood() {
        for (text, platform, name) in [
            ("https://www.instagram.com/Some.One_1/?igsh=x", Instagram, "some.one_1"),
            ("instagram.com/some.one_1/reels/", Instagram, "some.one_1"),
            ("instagram.com/some.one_1/tagged", Instagram, "some.one_1"),
            ("instagram.com/_u/some.one_1", Instagram, "some.one_1"),
            ("instagr.am/some.one_1#bio", Instagram, "some.one_1"),
            ("https://m.tiktok.com/@Ab?lang=en", Tiktok, "ab"),
            ("tiktok.com/%40ab/live", Tiktok, "ab"),
            ("https://www.tiktok.com/@ab#videos", Tiktok, "ab"),
        ] {
            let Ok(Link { platform: found, target: LinkTarget::Profile(username) }) = Link::parse(text)
            else {
                panic!("{text}")
            };
            assert_eq!((found, username.as_str()), (platform, name), "{text}");
        }
    }

    #[test]
    fn other_pages_are_rejected() {
        for (text, platform) in [
            ("https://www.instagram.com/", Instagram),
            ("https://www.instagram.com/reels/audio/12345678", Instagram),
            ("https://www.instagram.com/reel/audio/12345678", Instagram),
            ("https://www.instagram.com/stories/someone/3371837490061265204/", Instagram),
            ("https://www.instagram.com/stories/p/CfUjwr8vyv2/", Instagram),
            ("https://www.instagram.com/explore/tags/surf/", Instagram),
            ("https://www.instagram.com/share/", Instagram),
            ("https://www.instagram.com/share/reel/", Instagram),
            ("https://www.instagram.com/p/a%2Fb/", Instagram),
            ("ftp://instagram.com/share/BAabc12345", Instagram),
            ("https://www.instagram.com/someone/followers/", Instagram),
            ("https://www.tiktok.com/", Tiktok),
            ("https://www.tiktok.com/someone/video/7301234567890123456", Tiktok),
            ("https://www.tiktok.com/tag/surf", Tiktok),
            ("https://www.tiktok.com/music/x-7301234567890123456", Tiktok),
            ("https://vm.tiktok.com/", Tiktok),
            ("https://vm.tiktok.com/a%2Fb/", Tiktok),
            ("https://lite.tiktok.com/ZTabc", Tiktok),
            ("ftp://vm.tiktok.com/ZMabc", Tiktok),
            ("https://m.tiktokv.com/@ab/video/7301234567890123456", Tiktok),
        ] {
            let is_rejected = match Link::parse(text) {
                Err(InvalidLink::OtherPage(other)) => other == platform,
                Err(InvalidLink::Username(_)) => platform == Instagram,
                _ => false,
            };
            assert!(is_rejected, "{text}: {:?}", Link::parse(text));
        }
        for name in RESERVED_NAMES {
            assert!(Link::parse(&format!("instagram.com/{name}")).is_err(), "{name}");
        }
        for text in [
            "",
            "https://www.threads.net/@someone/post/CfUjwr8vyv2",
            "https://www.threads.com/@someone",
            "https://tiktok.com.evil.example/@a1/video/7301234567890123456",
            "https://www.tiktok.com:8080/t/ZTabc",
            "https://user@vm.tiktok.com/ZMabc",
            "http://169.254.169.254/latest",
            "www.vm.tiktok.com/ZMabc",
        ] {
            assert_eq!(Link::parse(text), Err(InvalidLink::OtherSite), "{text}");
        }
    }
}
