//! Identifiers that the platforms assign: usernames, ids and shortcodes of posts, and the links that contain them.
//!
//! Parsing uses the text alone. Short links, which only the platform can resolve, are recognized but not followed.

mod invisible;
mod link;
mod pattern;
mod profile;
mod shortcode;
mod username;
mod video;
mod video_ids;

pub use invisible::trim_invisible;
pub use link::{InvalidLink, Link, LinkTarget, ShortLink, VideoReference, is_short_link_host};
pub use shortcode::shortcode_key;
pub use username::{InvalidUsername, Username};
pub use video::{InvalidVideoIdentifier, VideoIdentifier, video_url};
pub use video_ids::{InvalidVideoIds, VideoIds};
