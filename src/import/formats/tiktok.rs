//! Files about TikTok.

use chrono_tz::UTC;

use super::Columns::Named;
use super::{Dates, Format, Rows};
use crate::model::platform::Platform::Tiktok;

pub static FORMATS: &[Format] = &[
    Format {
        name: "tiktok-studio-posts",
        tool: "TikTok Studio, Content",
        platform: Some(Tiktok),
        recognize: |header| header.has_all(&["video link", "post time", "total views"]),
        columns: Named(&[
            ("Time", "observed_at"),
            ("Video title", "description"),
            ("Video link", "url"),
            ("Post time", "create_time"),
            ("Total views", "view_count"),
            ("Total likes", "like_count"),
            ("Total comments", "comment_count"),
            ("Total shares", "share_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::MonthAndDay,
        zone: UTC,
        is_as_of_export: false,
        media_types: &[],
    },
    Format {
        name: "tiktok-studio-followers",
        tool: "TikTok Studio, Followers",
        platform: Some(Tiktok),
        recognize: |header| {
            header.has_all(&["date", "followers", "difference in followers from previous day"])
        },
        columns: Named(&[("Date", "observed_at"), ("Followers", "follower_count")]),
        rows: Rows::Accounts,
        dates: Dates::MonthAndDay,
        zone: UTC,
        is_as_of_export: false,
        media_types: &[],
    },
    Format {
        name: "tiktok-business-posts",
        tool: "TikTok Business Suite, posts",
        platform: Some(Tiktok),
        recognize: |header| header.has_all(&["video link", "post time", "video views"]),
        columns: Named(&[
            ("Video title", "description"),
            ("Video link", "url"),
            ("Post time", "create_time"),
            ("Video views", "view_count"),
            ("Likes", "like_count"),
            ("Comments", "comment_count"),
            ("Shares", "share_count"),
            ("Add to Favorites", "saved_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::YearFirst,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[],
    },
    Format {
        name: "tiktok-research",
        tool: "TikTok Research API, videos",
        platform: Some(Tiktok),
        recognize: |header| {
            header.has("create_time")
                && header.has_any(&["id", "video_id"])
                && header.has_any(&["video_description", "region_code", "favorites_count"])
        },
        columns: Named(&[
            ("id", "external_id"),
            ("video_id", "external_id"),
            ("username", "username"),
            ("create_time", "create_time"),
            ("video_description", "description"),
            ("video_duration", "duration"),
            ("view_count", "view_count"),
            ("like_count", "like_count"),
            ("comment_count", "comment_count"),
            ("share_count", "share_count"),
            ("favorites_count", "saved_count"),
            ("favourites_count", "saved_count"),
        ]),
        rows: Rows::Posts,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[],
    },
    Format {
        name: "apify-tiktok",
        tool: "Apify, TikTok scrapers",
        platform: Some(Tiktok),
        recognize: |header| {
            header.has_all(&["diggcount", "playcount"]) && header.has_any(&["webvideourl", "authormeta.name"])
        },
        columns: Named(&[
            ("webVideoUrl", "url"),
            ("id", "external_id"),
            ("authorMeta.name", "username"),
            ("createTimeISO", "create_time"),
            ("createTime", "create_time"),
            ("text", "description"),
            ("videoMeta.duration", "duration"),
            ("playCount", "view_count"),
            ("diggCount", "like_count"),
            ("commentCount", "comment_count"),
            ("shareCount", "share_count"),
            ("collectCount", "saved_count"),
            ("authorMeta.fans", "follower_count"),
            ("authorMeta.following", "following_count"),
            ("authorMeta.video", "profile_post_count"),
            ("authorMeta.nickName", "name"),
            ("authorMeta.verified", "is_verified"),
        ]),
        rows: Rows::Posts,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[],
    },
    Format {
        name: "tiktok-api",
        tool: "TikTok-Api, and what TikTok's web site loads",
        platform: Some(Tiktok),
        recognize: |header| {
            header.has_any(&["stats.playcount", "statsv2.playcount"])
                && header.has_any(&["author.uniqueid", "createtime"])
        },
        columns: Named(&[
            ("id", "external_id"),
            ("author.uniqueId", "username"),
            ("createTime", "create_time"),
            ("desc", "description"),
            ("video.duration", "duration"),
            // `stats` are rounded as they are shown.
            ("statsV2.playCount", "view_count"),
            ("statsV2.diggCount", "like_count"),
            ("statsV2.commentCount", "comment_count"),
            ("statsV2.shareCount", "share_count"),
            ("statsV2.collectCount", "saved_count"),
            ("stats.playCount", "view_count"),
            ("stats.diggCount", "like_count"),
            ("stats.commentCount", "comment_count"),
            ("stats.shareCount", "share_count"),
            ("stats.collectCount", "saved_count"),
            ("authorStatsV2.followerCount", "follower_count"),
            ("authorStatsV2.followingCount", "following_count"),
            ("authorStatsV2.videoCount", "profile_post_count"),
            ("authorStats.followerCount", "follower_count"),
            ("authorStats.followingCount", "following_count"),
            ("authorStats.videoCount", "profile_post_count"),
            ("author.nickname", "name"),
            ("author.verified", "is_verified"),
        ]),
        rows: Rows::Posts,
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: true,
        media_types: &[],
    },
];
