//! Identifiers of videos as users write them: the platforms' ids, Instagram's shortcodes, and links.

use super::invisible::trim_invisible;
use super::link::{Link, LinkTarget, ShortLink, VideoReference};
use super::video_ids::VideoIds;
use crate::model::platform::Platform;

/// The parsed text by which a user identifies a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VideoIdentifier {
    Video(VideoReference),
    ShortLink(ShortLink),
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

impl VideoIdentifier {
    /// Parses an id, an Instagram shortcode, or a link, which is trimmed.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, InvalidVideoIdentifier> {
        let text = trim_invisible(text);
        // Ids and shortcodes contain neither dots nor slashes; every link does.
        if text.contains(['.', '/']) {
            return match Link::parse(text) {
                Ok(link) => Self::from_link(platform, link),
                Err(_) => Err(InvalidVideoIdentifier::Url(platform)),
            };
        }
        let error = match platform {
            Platform::Instagram => InvalidVideoIdentifier::Instagram,
            Platform::Tiktok => InvalidVideoIdentifier::Tiktok,
        };
        let ids = VideoIds::parse(platform, text).ok_or(error)?;
        Ok(VideoIdentifier::Video(VideoReference { ids, username: None }))
    }

    /// Returns the video or the short link that a link of the platform leads to.
    pub fn from_link(platform: Platform, link: Link) -> Result<Self, InvalidVideoIdentifier> {
        if link.platform != platform {
            return Err(InvalidVideoIdentifier::OtherPlatform(link.platform));
        }
        match link.target {
            LinkTarget::Video(video) => Ok(VideoIdentifier::Video(video)),
            LinkTarget::ShortLink(link) => Ok(VideoIdentifier::ShortLink(link)),
            LinkTarget::Profile(_) => Err(InvalidVideoIdentifier::Url(platform)),
        }
    }
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

    fn ids(platform: Platform, text: &str) -> Option<(Option<String>, Option<String>)> {
        match VideoIdentifier::parse(platform, text) {
            Ok(VideoIdentifier::Video(video)) => {
                Some((video.ids.external_id().map(str::to_owned), video.ids.shortcode().map(str::to_owned)))
            }
            _ => None,
        }
    }

    #[test]
    fn every_form_of_an_instagram_post_is_parsed() {
        let (pk, code) = ("2870076139894680566", "CfUjwr8vyv2");
        for (text, external_id, shortcode) in [
            ("CfUjwr8vyv2", None, Some(code)),
            (" CfUjwr8vyv2 ", None, Some(code)),
            ("\u{200B}CfUjwr8vyv2\u{FEFF}", None, Some(code)),
            ("\u{A0}https://www.instagram.com/p/CfUjwr8vyv2/\u{2060}", None, Some(code)),
            (pk, Some(pk), Some(code)),
            ("2870076139894680566_1234567", Some(pk), Some(code)),
            ("17976197140599116", Some("17976197140599116"), None),
            ("12345", Some("12345"), Some("DA5")),
            ("12345678901", Some("12345678901"), Some("Lf3Bw1")),
            ("Cabc_", None, Some("Cabc_")),
        ] {
            let expected = Some((external_id.map(str::to_owned), shortcode.map(str::to_owned)));
            assert_eq!(ids(Instagram, text), expected, "{text}");
        }
    }

    #[test]
    fn every_form_of_a_tiktok_video_is_parsed() {
        let expected = Some((Some("7301234567890123456".to_owned()), None));
        for text in [
            "7301234567890123456",
            "\u{202F}7301234567890123456\r\n",
            "https://www.tiktok.com/@some.one/video/7301234567890123456",
        ] {
            assert_eq!(ids(Tiktok, text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_identifier_is_rejected_with_the_reason() {
        use InvalidVideoIdentifier as Invalid;
        for (platform, text, error) in [
            (Instagram, "", Invalid::Instagram),
            (Instagram, "abc", Invalid::Instagram),
            (Instagram, "1234", Invalid::Instagram),
            (Instagram, "0012345", Invalid::Instagram),
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
            (Tiktok, "https://www.threads.net/@someone/post/CfUjwr8vyv2", Invalid::Url(Tiktok)),
            (Tiktok, "http://169.254.169.254/latest", Invalid::Url(Tiktok)),
        ] {
            assert_eq!(VideoIdentifier::parse(platform, text), Err(error), "{text}");
        }
    }
}
