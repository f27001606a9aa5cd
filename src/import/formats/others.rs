//! Files about several platforms.

use chrono_tz::UTC;

use super::Columns::Named;
use super::{Dates, Format, Rows};

pub static FORMATS: &[Format] = &[
    Format {
        name: "yt-dlp",
        tool: "yt-dlp, .info.json",
        platform: None,
        recognize: |header| {
            header.has_all(&["extractor", "webpage_url"])
                && header.has_any(&["_type", "epoch", "upload_date"])
        },
        columns: Named(&[
            ("webpage_url", "url"),
            ("extractor_key", "platform"),
            ("channel", "username of instagram"),
            // Versions before 2022; now a number.
            ("uploader_id", "username of instagram"),
            ("uploader", "username of tiktok"),
            ("epoch", "observed_at"),
            ("timestamp", "create_time"),
            ("upload_date", "create_time"),
            ("description", "description"),
            ("title", "description"),
            ("duration", "duration"),
            ("view_count", "view_count"),
            ("like_count", "like_count"),
            ("comment_count", "comment_count"),
            ("repost_count", "share_count"),
            ("save_count", "saved_count"),
            ("channel_follower_count", "follower_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::YearFirst,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[],
    },
    Format {
        name: "shortimize",
        tool: "Shortimize API, videos",
        platform: None,
        recognize: |header| header.has_all(&["ad_link", "latest_views", "latest_updated_at"]),
        columns: Named(&[
            ("ad_link", "url"),
            ("platform", "platform"),
            ("username", "username"),
            ("latest_updated_at", "observed_at"),
            ("uploaded_at", "create_time"),
            ("title", "description"),
            ("video_length", "duration"),
            ("latest_views", "view_count"),
            ("latest_likes", "like_count"),
            ("latest_comments", "comment_count"),
            ("latest_shares", "share_count"),
            ("latest_bookmarks", "saved_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: false,
        media_types: &[],
    },
];
