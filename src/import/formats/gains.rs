//! Charts: gains per day and shares of an audience, which are no counters. They are recognized and refused.

use chrono_tz::UTC;

use super::Columns::Named;
use super::{Dates, Format, Header, Rows};

/// Columns that say of which post or account a row is.
const SUBJECTS: [&str; 9] =
    ["external_id", "shortcode", "url", "username", "video link", "permalink", "video id", "post id", "id"];

/// Words of a chart by day in TikTok's exports.
const TIKTOK_GAINS: [&str; 9] = [
    "video views",
    "profile views",
    "reached audience",
    "unique viewers",
    "net followers",
    "new followers",
    "lost followers",
    "likes",
    "engaged audience",
];

fn is_by_day(header: &Header<'_>) -> bool {
    header.has_any(&["date", "day"]) && !header.has_any(&SUBJECTS)
}

const fn chart(
    name: &'static str,
    tool: &'static str,
    recognize: fn(&Header<'_>) -> bool,
    reason: &'static str,
) -> Format {
    Format {
        name,
        tool,
        platform: None,
        recognize,
        columns: Named(&[]),
        rows: Rows::Refused(reason),
        dates: Dates::Iso,
        zone: UTC,
        is_as_of_export: false,
        media_types: &[],
    }
}

pub static FORMATS: &[Format] = &[
    chart(
        "audience",
        "TikTok Studio and Meta Business Suite, who the audience is",
        |header| {
            header.width() <= 8
                && !header.has_any(&SUBJECTS)
                && (header.has_any(&[
                    "gender",
                    "top territories",
                    "top locations",
                    "territories",
                    "age",
                    "hour",
                ]) && header.has_any(&[
                    "distribution",
                    "percentage",
                    "active followers",
                    "viewers",
                    "women",
                    "men",
                ]) || header.has_any(&["active followers", "returning viewers"]))
        },
        "describes an audience, which is no history of posts or followers: export \"Content\" or \"Followers\" of TikTok Studio, or the content of Meta Business Suite",
    ),
    chart(
        "tiktok-studio-overview",
        "TikTok Studio, Overview",
        |header| {
            let is_overview = header.has_all(&["video views", "profile views", "comments", "shares"]);
            is_overview && is_by_day(header) && header.width() <= 6
        },
        "has gains per day, which are no counters: export \"Content\" and \"Followers\" of TikTok Studio instead",
    ),
    chart(
        "tiktok-business-days",
        "TikTok Business Suite, by day",
        |header| is_by_day(header) && TIKTOK_GAINS.iter().filter(|name| header.has(name)).count() >= 2,
        "has gains per day, which are no counters: export the list of posts of TikTok Business Suite instead",
    ),
    chart(
        "meta-chart",
        "Meta Business Suite, a chart",
        |header| header.width() <= 3 && header.name(1) == "primary",
        "has gains per day, which are no counters: export the content of Meta Business Suite, with \"Lifetime\", instead",
    ),
];
