//! Fields and words that several resources share.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::input::fields::{Params, Word};
use crate::http::input::window::WindowParams;
use crate::http::input::windowed::Windowed;
use crate::http::input::{FromPath, FromQuery, Parts, PathParams};
use crate::http::output::page::ListSort;
use crate::http::{Listing, Problem};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::records::videos::VideoFilter;

pub(super) const ON_PLATFORM: &str = "Only this platform.";
pub(super) const VIDEO_IDS: &str = "Ids of videos, discovered and individually tracked ones alike.";
pub(super) const TAGS: &str = "Tags of your own, text by text; they replace those that are there.";

impl Word for Platform {
    const WORDS: &'static [(&'static str, Self)] =
        &[("instagram", Platform::Instagram), ("tiktok", Platform::Tiktok)];
}

/// What the platforms' own rules of a text make of a body that names the platform beside it.
pub(super) fn by_platform(name: &'static str, pattern: fn(Platform) -> String) -> Vec<Value> {
    let case = |(word, platform): &(&str, Platform)| json!({"properties": {"platform": {"const": word}, name: {"pattern": pattern(*platform)}}});
    Platform::WORDS.iter().map(case).collect()
}

/// `{creator_id}` of a path.
#[derive(Serialize)]
pub(super) struct CreatorPath {
    pub(super) creator_id: Uuid,
}

impl FromPath for CreatorPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        CreatorPath { creator_id: path.about("The id of the creator.").uuid("creator_id") }
    }
}

/// `{video_id}` of a path.
#[derive(Serialize)]
pub(super) struct VideoPath {
    pub(super) video_id: Uuid,
}

impl FromPath for VideoPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        VideoPath { video_id: path.about("The id of the video.").uuid("video_id") }
    }
}

/// The filters and the page of a list of videos.
pub(super) struct VideosQuery<S> {
    pub(super) filter: VideoFilter,
    pub(super) listing: Listing<S>,
}

impl<S: ListSort> FromQuery for VideosQuery<S> {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        let filter = VideoFilter {
            platform: query.about(ON_PLATFORM).word("platform"),
            account_id: query.about("Only the videos of this account.").uuid("account_id"),
            creator_id: query.about("Only the videos of this creator's accounts.").uuid("creator_id"),
            is_active: query.about("Only those with this value of `is_active`.").boolean("is_active"),
            q: query.about("A part of the caption, in any case.").search_text("q"),
        };
        VideosQuery { listing: Listing::read(query, parts, &filter), filter }
    }
}

/// `{account_id}` of a path that accepts no username.
#[derive(Serialize)]
pub(super) struct AccountIdPath {
    pub(super) account_id: Uuid,
}

impl FromPath for AccountIdPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        AccountIdPath { account_id: path.about("The id of the account.").uuid("account_id") }
    }
}

#[derive(Serialize)]
pub(super) struct AnalyticsQuery {
    pub(super) window: WindowParams,
    pub(super) platform: Option<Platform>,
}

impl FromQuery for AnalyticsQuery {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        AnalyticsQuery {
            window: WindowParams::read(query, parts),
            platform: query.about(ON_PLATFORM).word("platform"),
        }
    }
}

impl Windowed for AnalyticsQuery {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.window.at(now)
    }
}
