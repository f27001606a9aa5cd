//! Identifiers that the platforms assign: usernames, shortcodes, video ids, and the URLs that contain them.
//!
//! Parsing uses the text alone. Short links, which only the platform can resolve, are recognized but not followed.

mod pattern;
mod url;
mod username;
mod video;

pub use username::{InvalidUsername, Username};
pub use video::{
    InvalidVideoIdentifier, PlatformVideoId, ShortLink, VideoIdentifier, VideoReference, is_short_link_host,
    video_url,
};
