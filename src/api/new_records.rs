//! The bodies that track an account or a video, alone or in a batch.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::http::input::violations::Violations;
use crate::http::input::{FromBody, field};
use crate::http::{Problem, Result};
use crate::model::identifier::{Username, VideoIdentifier};
use crate::model::limits::{MAX_IDENTIFIER_CHARS, MAX_USERNAME_CHARS};
use crate::model::platform::Platform;
use crate::store::records::accounts::change::AccountChange;
use crate::store::records::accounts::create::NewAccount;
use crate::store::records::videos::change::NewTracking;

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = schemas_by_platform("username", Username::pattern)))]
pub(super) struct NewAccountBody {
    /// Platform of the account.
    platform: Platform,
    /// Username, with or without `@`, or profile URL.
    #[schemars(length(min = 1, max = MAX_USERNAME_CHARS))]
    username: String,
    #[serde(flatten)]
    change: AccountChange,
}

impl FromBody for NewAccountBody {
    fn example() -> Value {
        json!({"platform": "tiktok", "username": "@salt.and.tide", "category": "surf", "metadata": {"team": "north"}})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_username(fields, violations);
    }
}

/// Checks that `username` is one of `platform`.
pub(super) fn check_username(fields: &Map<String, Value>, violations: &mut Violations) {
    if let (Some(platform), Some(text)) = (field(fields, "platform"), field::<String>(fields, "username"))
        && let Err(error) = Username::parse(platform, &text)
    {
        violations.add("username", error.to_string());
    }
}

pub(super) fn parse_username(platform: Platform, text: &str) -> Result<Username> {
    Username::parse(platform, text).map_err(|error| Problem::invalid_field("username", error.to_string()))
}

impl NewAccountBody {
    pub(super) fn into_account(self) -> Result<NewAccount> {
        let NewAccountBody { platform, username, change } = self;
        Ok(NewAccount { platform, username: parse_username(platform, &username)?, change })
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = schemas_by_platform("identifier", VideoIdentifier::pattern)))]
pub(super) struct NewVideoBody {
    /// Platform of the video.
    pub(super) platform: Platform,
    /// Video URL, short link, Instagram shortcode, or id on the platform.
    #[schemars(length(min = 1, max = MAX_IDENTIFIER_CHARS))]
    identifier: String,
    #[serde(flatten)]
    pub(super) tracking: NewTracking,
}

impl FromBody for NewVideoBody {
    fn example() -> Value {
        let identifier = "https://www.tiktok.com/@salt.and.tide/video/7301234567890123456";
        json!({"platform": "tiktok", "identifier": identifier, "metadata": {"campaign": "spring"}})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        if let (Some(platform), Some(text)) =
            (field(fields, "platform"), field::<String>(fields, "identifier"))
            && let Err(error) = VideoIdentifier::parse(platform, &text)
        {
            violations.add("identifier", error.to_string());
        }
    }
}

pub(super) fn parse_identifier(path: &str, platform: Platform, text: &str) -> Result<VideoIdentifier> {
    VideoIdentifier::parse(platform, text).map_err(|error| Problem::invalid_field(path, error.to_string()))
}

impl NewVideoBody {
    /// Returns the identifier, unless no source can scrape the video by it; `path` is the field's in violations.
    pub(super) fn identifier(&self, app: &App, path: &str) -> Result<VideoIdentifier> {
        let identifier = parse_identifier(path, self.platform, &self.identifier)?;
        require_readable(app, path, self.platform, &identifier)?;
        Ok(identifier)
    }
}

/// Rejects a video that no configured source can scrape by this identifier.
pub(super) fn require_readable(
    app: &App,
    field: &str,
    platform: Platform,
    identifier: &VideoIdentifier,
) -> Result<()> {
    let (by, reads) = match (identifier, platform) {
        (VideoIdentifier::Video(video), _) => {
            let by = if video.ids.external_id().is_some() { "its id" } else { "its shortcode" };
            (by, app.readable.supports_video(platform, &video.ids))
        }
        (VideoIdentifier::ShortLink(_), Platform::Instagram) => {
            ("its shortcode", app.readable.posts_by_shortcode.contains(&platform))
        }
        (VideoIdentifier::ShortLink(_), Platform::Tiktok) => {
            ("its id", app.readable.posts_by_id.contains(&platform))
        }
    };
    if reads {
        return Ok(());
    }
    let message = format!(
        "cannot be scraped: no configured source finds a {platform} video by {by}; track its account instead"
    );
    Err(Problem::invalid_field(field, message))
}

/// Schemas of a text whose pattern depends on the `platform` of the same body.
fn schemas_by_platform(name: &str, pattern: fn(Platform) -> String) -> Vec<Value> {
    let schema = |platform| json!({"properties": {"platform": {"const": platform}, name: {"pattern": pattern(platform)}}});
    Platform::ALL.map(schema).into()
}
