//! The bodies that track an account or a video, alone or in a batch.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::fields::{TAGS, schemas_by_platform};
use crate::app::App;
use crate::http::input::{BodyFields, FromBody};
use crate::http::{Problem, Result};
use crate::model::identifier::{PlatformVideoId, Username, VideoIdentifier, VideoReference};
use crate::model::limits::{
    DEFAULT_SCRAPE_INTERVAL_HOURS, MAX_CATEGORY_CHARS, MAX_RECENT_POSTS, POST_LOOKBACK_DAYS,
    SCRAPE_INTERVAL_HOURS,
};
use crate::model::platform::Platform;
use crate::store::records::accounts::change::AccountChange;
use crate::store::records::accounts::create::NewAccount;
use crate::store::records::videos::change::NewTracking;

/// Bounds of a username or profile URL, in characters.
pub(super) const USERNAME_LENGTH: RangeInclusive<usize> = 1..=500;
/// Bounds of an identifier, in characters; URLs may have long tracking parameters.
pub(super) const IDENTIFIER_LENGTH: RangeInclusive<usize> = 1..=2048;
pub(super) const INTERVAL: &str = "Hours between scrapes.";

/// Reads the fields that creates and updates share.
pub(super) fn read_change(body: &mut BodyFields<'_>) -> AccountChange {
    AccountChange {
        is_active: body.describe("`false` pauses tracking, `true` resumes it.").boolean("is_active"),
        category: body
            .describe("Your own label; null removes it.")
            .nullable("category", |body, name| body.text(name, &(0..=MAX_CATEGORY_CHARS))),
        metadata: body.describe(TAGS).metadata("metadata"),
        scrape_interval_hours: body
            .describe("Hours between scrapes.")
            .integer("scrape_interval_hours", &SCRAPE_INTERVAL_HOURS),
        creator_id: body
            .describe("Creator of the account; null unlinks it.")
            .nullable("creator_id", BodyFields::uuid),
        max_recent_posts_per_account: body
            .describe(
                "Maximum number of posts that the first scrape reads; null for the organization's default.",
            )
            .nullable("max_recent_posts_per_account", |body, name| body.integer(name, &MAX_RECENT_POSTS)),
        post_lookback_days: body
            .describe("Number of days that the first scrape goes back; null for the organization's default.")
            .nullable("post_lookback_days", |body, name| body.integer(name, &POST_LOOKBACK_DAYS)),
    }
}

pub(super) struct NewAccountBody {
    /// `None` only if the body is invalid.
    pub(super) account: Option<NewAccount>,
}

impl FromBody for NewAccountBody {
    fn example() -> Value {
        json!({"platform": "tiktok", "username": "@salt.and.tide", "category": "surf", "metadata": {"team": "north"}})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        let username = read_username(body);
        let change = read_change(body);
        NewAccountBody {
            account: username.map(|(platform, username)| NewAccount { platform, username, change }),
        }
    }
}

/// Reads `platform` and `username`.
pub(super) fn read_username(body: &mut BodyFields<'_>) -> Option<(Platform, Username)> {
    body.require("platform");
    body.require("username");
    let platform = body.describe("Platform of the account.").variant::<Platform>("platform");
    let text =
        body.describe("Username, with or without `@`, or profile URL.").text("username", &USERNAME_LENGTH);
    body.one_of_schemas(|| schemas_by_platform("username", Username::pattern));
    let (platform, text) = platform.zip(text)?;
    match Username::parse(platform, &text) {
        Ok(username) => Some((platform, username)),
        Err(error) => {
            body.violations.add("username", error.to_string());
            None
        }
    }
}

pub(super) struct NewVideoBody {
    /// `None` only if the body is invalid.
    pub(super) video: Option<(Platform, VideoIdentifier)>,
    pub(super) tracking: NewTracking,
}

impl FromBody for NewVideoBody {
    fn example() -> Value {
        let identifier = "https://www.tiktok.com/@salt.and.tide/video/7301234567890123456";
        json!({"platform": "tiktok", "identifier": identifier, "metadata": {"campaign": "spring"}})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        body.require("platform");
        body.require("identifier");
        let platform = body.describe("Platform of the video.").variant::<Platform>("platform");
        let text = body
            .describe("Video URL, TikTok short link, Instagram shortcode, or id on the platform.")
            .text("identifier", &IDENTIFIER_LENGTH);
        body.one_of_schemas(|| schemas_by_platform("identifier", VideoIdentifier::pattern));
        let tracking = NewTracking {
            is_active: body.describe("`false` adds the video paused.").boolean_or("is_active", true),
            metadata: body.describe("Your own tags.").metadata("metadata").unwrap_or_default(),
            scrape_interval_hours: body.describe(INTERVAL).integer_or(
                "scrape_interval_hours",
                &SCRAPE_INTERVAL_HOURS,
                DEFAULT_SCRAPE_INTERVAL_HOURS,
            ),
        };
        let video = platform.zip(text).and_then(|(platform, text)| {
            VideoIdentifier::parse(platform, &text)
                .map(|identifier| (platform, identifier))
                .map_err(|error| body.violations.add("identifier", error.to_string()))
                .ok()
        });
        NewVideoBody { video, tracking }
    }
}

/// Rejects a video that no configured source can scrape by this identifier.
pub(super) fn require_readable(
    app: &App,
    field: &str,
    platform: Platform,
    identifier: &VideoIdentifier,
) -> Result<()> {
    let (by, reads) = match identifier {
        VideoIdentifier::Video(VideoReference { id: id @ PlatformVideoId::Shortcode(_), .. }) => {
            ("its shortcode", app.readable.supports_video(platform, id))
        }
        VideoIdentifier::Video(VideoReference { id, .. }) => {
            ("its id", app.readable.supports_video(platform, id))
        }
        VideoIdentifier::ShortLink(_) => ("its id", app.readable.posts_by_id.contains(&platform)),
    };
    if reads {
        return Ok(());
    }
    let message = format!(
        "cannot be scraped: no configured source finds a {platform} video by {by}; track its account instead"
    );
    Err(Problem::invalid_field(field, message))
}
