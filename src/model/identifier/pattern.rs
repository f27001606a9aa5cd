//! Regular expressions for usernames and video identifiers in the OpenAPI document, in the syntax of JSON Schema.
//!
//! Only parsing decides what is valid.

use super::invisible::INVISIBLE_CLASS;
use super::username::{RESERVED_NAMES, Username};
use super::video::VideoIdentifier;
use crate::model::platform::Platform;

const SCHEME: &str = "(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?";
const SUBDOMAIN: &str = "(?:www\\.|m\\.)?";
const INSTAGRAM: &str = "(?:instagram\\.com|instagr\\.am)";
/// The ignored rest of a URL: a slash, query and fragment.
const TAIL: &str = "/?(?:[?#][!-~]*)?";
const MORE_SEGMENTS: &str = "(?:/[A-Za-z0-9_-]+)*";
/// Excludes the usernames `.` and `..`.
const NOT_DOTS: &str = "(?!\\.{1,2}(?:[^A-Za-z0-9._]|$))";
/// A 64-bit number, except the largest ones.
const TIKTOK_ID: &str = "[1-9][0-9]{0,18}";
/// A Graph id, a pk, or a pk and the id of the user.
const INSTAGRAM_ID: &str = "[1-9][0-9]{4,18}(?:_[0-9]{1,20})?";
const SHORTCODE: &str = "[A-Za-z0-9_-]{5,40}";
const SHORTCODE_IN_LINK: &str = "[A-Za-z0-9_-]{3,40}";
const SHORT_LINK: &str = "[A-Za-z0-9_-]{1,64}";

/// Excludes the names that Instagram reserves, in any case.
fn not_reserved() -> String {
    let any_case = |name: &str| -> String {
        name.chars().map(|letter| format!("[{letter}{}]", letter.to_ascii_uppercase())).collect()
    };
    format!("(?!(?:{})(?:[^A-Za-z0-9._]|$))", RESERVED_NAMES.map(any_case).join("|"))
}

impl Username {
    /// Returns a pattern of the texts that [`Username::parse`] accepts.
    pub fn pattern(platform: Platform) -> String {
        let (name, link) = match platform {
            Platform::Instagram => {
                let not_reserved = not_reserved();
                let name = format!("{NOT_DOTS}{not_reserved}[A-Za-z0-9._]{{1,30}}");
                let in_link = format!("{not_reserved}[A-Za-z0-9_][A-Za-z0-9._]{{0,29}}");
                (name, format!("{INSTAGRAM}/(?:_u/{in_link}|{in_link}(?:/(?:reels|tagged))?)"))
            }
            Platform::Tiktok => {
                let name = format!("{NOT_DOTS}[A-Za-z0-9._]{{2,24}}");
                let link = format!("tiktok\\.com/@{name}(?:/live)?");
                (name, link)
            }
        };
        format!("^{INVISIBLE_CLASS}*(?:@?{name}|{SCHEME}{SUBDOMAIN}{link}{TAIL}){INVISIBLE_CLASS}*$")
    }
}

impl VideoIdentifier {
    /// Returns a pattern of the texts that [`VideoIdentifier::parse`] accepts.
    pub fn pattern(platform: Platform) -> String {
        let (id, link) = match platform {
            Platform::Instagram => {
                let user = format!("(?:{}[A-Za-z0-9_][A-Za-z0-9._]{{0,29}}/)?", not_reserved());
                let post = format!("{user}(?:p|reel|reels|tv)/{SHORTCODE_IN_LINK}{MORE_SEGMENTS}");
                let short = format!("share/(?:(?:reel|p)/)?{SHORT_LINK}");
                // Texts of digits alone are ids.
                let code = format!("(?![0-9]+(?:[^A-Za-z0-9_-]|$)){SHORTCODE}");
                (format!("{INSTAGRAM_ID}|{code}"), format!("{SUBDOMAIN}{INSTAGRAM}/(?:{post}|{short})"))
            }
            Platform::Tiktok => {
                let video = format!("@[A-Za-z0-9._]{{2,24}}/(?:video|photo)/{TIKTOK_ID}");
                let player = format!("(?:embed|embed/v2|player/v1|share/video)/{TIKTOK_ID}");
                let page = format!("v/{TIKTOK_ID}\\.html");
                let site = format!("{SUBDOMAIN}tiktok\\.com/(?:{video}|{player}|{page}|t/{SHORT_LINK})");
                let shared = format!("{SUBDOMAIN}tiktokv\\.com/share/video/{TIKTOK_ID}");
                let short = format!("(?:(?:vm|vt)\\.tiktok\\.com/|lite\\.tiktok\\.com/t/){SHORT_LINK}");
                (TIKTOK_ID.to_owned(), format!("(?:{site}|{shared}|{short})"))
            }
        };
        format!("^{INVISIBLE_CLASS}*(?:{id}|{SCHEME}{link}{TAIL}){INVISIBLE_CLASS}*$")
    }
}
