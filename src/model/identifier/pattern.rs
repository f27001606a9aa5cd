//! Regular expressions for usernames and video identifiers in the OpenAPI document, in the syntax of JSON Schema.
//!
//! Only parsing decides what is valid.

use super::username::Username;
use super::video::VideoIdentifier;
use crate::model::platform::Platform;

const SCHEME: &str = "(?:https?://)?";
/// The ignored rest of a URL: a slash, query and fragment.
const TAIL: &str = "/?(?:[?#][!-~]*)?";
/// Excludes the usernames `.` and `..`.
const NOT_DOTS: &str = "(?!\\.{1,2}(?:[^A-Za-z0-9._]|$))";
const BLANK: &str = "[\\t\\n\\f\\r ]*";
/// A 64-bit number, except the largest ones.
const TIKTOK_ID: &str = "[1-9][0-9]{0,18}";
const INSTAGRAM_ID: &str = "[1-9][0-9]{11,18}";
const SHORTCODE: &str = "[A-Za-z0-9_-]{5,40}";
const SHORT_LINK: &str = "[A-Za-z0-9_-]{1,64}";

impl Username {
    /// Returns a pattern of the texts that [`Username::parse`] accepts.
    pub fn pattern(platform: Platform) -> String {
        match platform {
            Platform::Instagram => {
                let url = format!("(?:www\\.|m\\.)?instagram\\.com/[A-Za-z0-9_][A-Za-z0-9._]{{0,29}}{TAIL}");
                format!("^{BLANK}(?:@?{NOT_DOTS}[A-Za-z0-9._]{{1,30}}|{SCHEME}{url}){BLANK}$")
            }
            Platform::Tiktok => {
                let url = format!("(?:www\\.|m\\.)?tiktok\\.com/@{NOT_DOTS}[A-Za-z0-9._]{{2,24}}{TAIL}");
                format!("^{BLANK}(?:@?{NOT_DOTS}[A-Za-z0-9._]{{2,24}}|{SCHEME}{url}){BLANK}$")
            }
        }
    }
}

impl VideoIdentifier {
    /// Returns a pattern of the texts that [`VideoIdentifier::parse`] accepts.
    pub fn pattern(platform: Platform) -> String {
        match platform {
            Platform::Instagram => {
                let user = "(?:[A-Za-z0-9_][A-Za-z0-9._]{0,29}/)?";
                let url =
                    format!("(?:www\\.|m\\.)?instagram\\.com/{user}(?:p|reel|reels|tv)/{SHORTCODE}{TAIL}");
                // Numbers of twelve or more digits are ids.
                format!("^{BLANK}(?:{INSTAGRAM_ID}|(?![0-9]{{12}}){SHORTCODE}|{SCHEME}{url}){BLANK}$")
            }
            Platform::Tiktok => {
                let video = format!("@[A-Za-z0-9._]{{2,24}}/(?:video|photo)/{TIKTOK_ID}");
                let page = format!("v/{TIKTOK_ID}\\.html");
                let url = format!("(?:www\\.|m\\.)?tiktok\\.com/(?:{video}|{page}|t/{SHORT_LINK}){TAIL}");
                let short = format!("(?:vm|vt)\\.tiktok\\.com/{SHORT_LINK}{TAIL}");
                format!("^{BLANK}(?:{TIKTOK_ID}|{SCHEME}(?:{url}|{short})){BLANK}$")
            }
        }
    }
}
