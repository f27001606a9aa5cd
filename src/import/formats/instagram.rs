//! Files about Instagram.

use chrono_tz::{US::Pacific, UTC};

use super::Columns::{Named, Positional};
use super::{Dates, Format, Header, Rows};
use crate::model::identifier::{Link, trim_invisible};
use crate::model::platform::Platform::Instagram;

/// The columns of Meta Business Suite in English; other languages have them in the same order.
pub const META_CONTENT_NAMES: [&str; 18] = [
    "Post ID",
    "Account ID",
    "Account username",
    "Account name",
    "Description",
    "Duration (sec)",
    "Publish time",
    "Permalink",
    "Post type",
    "Data comment",
    "Date",
    "Views",
    "Reach",
    "Likes",
    "Shares",
    "Follows",
    "Comments",
    "Saves",
];
const META_PERMALINK: usize = 7;
const META_DAY: usize = 10;

/// The words of several languages, the more particular ones first.
const META_MEDIA_TYPES: &[(&str, &str)] = &[
    ("reel", "reel"),
    ("carousel", "carousel"),
    ("carrusel", "carousel"),
    ("carrossel", "carousel"),
    ("carrousel", "carousel"),
    ("karussell", "carousel"),
    ("carosello", "carousel"),
    ("secuencia", "carousel"),
    ("image", "image"),
    ("imagen", "image"),
    ("imagem", "image"),
    ("immagine", "image"),
    ("bild", "image"),
    ("photo", "image"),
    ("foto", "image"),
    ("video", "video"),
    ("vídeo", "video"),
    ("vidéo", "video"),
];

/// Whether these are Meta's columns: by their names, or by their number and the links in the eighth.
fn is_meta_content(header: &Header<'_>) -> bool {
    if header.has_all(&["post id", "permalink", "publish time", "data comment"]) {
        return META_CONTENT_NAMES.iter().enumerate().all(|(n, name)| header.name(n) == name.to_lowercase());
    }
    let is_post = |text: &str| Link::parse(trim_invisible(text)).is_ok_and(|link| link.platform == Instagram);
    header.width() == META_CONTENT_NAMES.len() && header.values(META_PERMALINK).any(is_post)
}

/// Whether each row of Meta's export is a day: the column says `Lifetime`, in any language, unless it does.
fn has_day_per_row(header: &Header<'_>) -> bool {
    is_meta_content(header)
        && header.values(META_DAY).any(|day| day.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Nested names of instaloader's counters, by its version.
const INSTALOADER_COLUMNS: &[(&str, &str)] = &[
    // Of a profile, its own id.
    ("node.id", "external_id"),
    ("node.shortcode", "shortcode"),
    ("node.owner.username", "username"),
    ("node.username", "username"),
    ("node.taken_at_timestamp", "create_time"),
    ("node.date", "create_time"),
    ("node.iphone_struct.taken_at", "create_time"),
    ("node.caption", "description"),
    ("node.edge_media_to_caption.edges.0.node.text", "description"),
    ("node.biography", "description"),
    ("node.iphone_struct.product_type", "media_type"),
    ("node.product_type", "media_type"),
    ("node.__typename", "media_type"),
    ("node.video_duration", "duration"),
    ("node.video_play_count", "view_count"),
    ("node.iphone_struct.play_count", "view_count"),
    ("node.iphone_struct.view_count", "view_count"),
    ("node.video_view_count", "view_count"),
    ("node.edge_media_preview_like.count", "like_count"),
    ("node.iphone_struct.like_count", "like_count"),
    ("node.edge_media_to_parent_comment.count", "comment_count"),
    ("node.edge_media_to_comment.count", "comment_count"),
    ("node.comments", "comment_count"),
    ("node.iphone_struct.comment_count", "comment_count"),
    ("node.edge_followed_by.count", "follower_count"),
    ("node.edge_follow.count", "following_count"),
    ("node.edge_owner_to_timeline_media.count", "profile_post_count"),
    ("node.full_name", "name"),
    ("node.is_verified", "is_verified"),
];

pub static FORMATS: &[Format] = &[
    Format {
        name: "meta-content-days",
        tool: "Meta Business Suite, Content, a row per day",
        platform: Some(Instagram),
        recognize: has_day_per_row,
        columns: Named(&[]),
        rows: Rows::Refused(
            "has gains per day, which are no counters: export the content of Meta Business Suite with \"Lifetime\" instead of \"Daily\"",
        ),
        dates: Dates::MonthFirst,
        zone: Pacific,
        is_as_of_export: true,
        media_types: &[],
    },
    Format {
        name: "meta-content",
        tool: "Meta Business Suite, Content, Lifetime, in any language",
        platform: Some(Instagram),
        recognize: is_meta_content,
        columns: Positional(&[
            Some("external_id"),
            None,
            Some("username"),
            None,
            Some("description"),
            Some("duration"),
            Some("create_time"),
            Some("url"),
            Some("media_type"),
            None,
            None,
            Some("view_count"),
            None,
            Some("like_count"),
            Some("share_count"),
            None,
            Some("comment_count"),
            Some("saved_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::MonthFirst,
        zone: Pacific,
        is_as_of_export: true,
        media_types: META_MEDIA_TYPES,
    },
    Format {
        name: "instagram-graph",
        tool: "Instagram Graph API, media with their insights, and accounts",
        platform: Some(Instagram),
        recognize: |header| {
            let is_media = header.has_all(&["id", "media_type"])
                && header.has_any(&["permalink", "shortcode", "media_product_type", "timestamp"]);
            is_media || header.has_all(&["id", "followers_count", "media_count"])
        },
        columns: Named(&[
            ("id", "external_id"),
            ("permalink", "url"),
            ("shortcode", "shortcode"),
            ("username", "username"),
            ("owner.username", "username"),
            ("timestamp", "create_time"),
            ("caption", "description"),
            ("media_product_type", "media_type"),
            ("media_type", "media_type"),
            ("view_count", "view_count"),
            ("like_count", "like_count"),
            ("comments_count", "comment_count"),
            ("insights.likes", "like_count"),
            ("insights.comments", "comment_count"),
            ("insights.views", "view_count"),
            ("insights.plays", "view_count"),
            ("insights.video_views", "view_count"),
            ("insights.shares", "share_count"),
            ("insights.saved", "saved_count"),
            ("shares", "share_count"),
            ("saved", "saved_count"),
            ("followers_count", "follower_count"),
            ("follows_count", "following_count"),
            ("media_count", "profile_post_count"),
            ("name", "name"),
            ("biography", "description"),
        ]),
        rows: Rows::Any,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[("reels", "reel"), ("carousel", "carousel"), ("image", "image"), ("video", "video")],
    },
    Format {
        name: "apify-instagram",
        tool: "Apify, Instagram scrapers, table and JSON",
        platform: Some(Instagram),
        recognize: |header| {
            header.has("shortcode")
                && header.has_any(&["likescount", "commentscount"])
                && header.has_any(&["ownerusername", "ownerid", "displayurl", "inputurl", "url"])
        },
        columns: Named(&[
            ("id", "external_id"),
            ("shortCode", "shortcode"),
            ("ownerUsername", "username"),
            ("timestamp", "create_time"),
            ("caption", "description"),
            ("productType", "media_type"),
            ("type", "media_type"),
            ("videoDuration", "duration"),
            ("videoPlayCount", "view_count"),
            ("videoViewCount", "view_count"),
            ("igPlayCount", "ig_play_count"),
            ("fbPlayCount", "fb_play_count"),
            ("fbLikeCount", "fb_like_count"),
            ("likesCount", "like_count"),
            ("commentsCount", "comment_count"),
            ("reshareCount", "share_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[
            ("clips", "reel"),
            ("sidecar", "carousel"),
            ("carousel", "carousel"),
            ("image", "image"),
            ("video", "video"),
        ],
    },
    Format {
        name: "instaloader",
        tool: "instaloader, its .json and .json.xz; the file of a profile is an account",
        platform: Some(Instagram),
        recognize: |header| {
            header.has_any(&["instaloader.node_type", "instaloader.version"])
                && header.has_any(&["node.shortcode", "node.edge_followed_by.count"])
        },
        columns: Named(INSTALOADER_COLUMNS),
        rows: Rows::Any,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[
            ("clips", "reel"),
            ("carousel", "carousel"),
            ("sidecar", "carousel"),
            ("graphimage", "image"),
            ("graphvideo", "video"),
        ],
    },
];
