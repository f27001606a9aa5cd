//! Fields and words that several resources share.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::Listing;
use crate::http::input::fields::{Params, Word};
use crate::http::input::window::WindowParams;
use crate::http::input::{FromPath, FromQuery, Parts, PathParams};
use crate::http::output::page::ListSort;
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
pub(super) struct CreatorPath {
    pub(super) creator_id: Uuid,
}

impl FromPath for CreatorPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        CreatorPath { creator_id: path.about("The id of the creator.").uuid("creator_id") }
    }
}

/// `{video_id}` of a path.
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

/// `{account_id}` of a path where only an id will do.
pub(super) struct AccountIdPath {
    pub(super) account_id: Uuid,
}

impl FromPath for AccountIdPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        AccountIdPath { account_id: path.about("The id of the account.").uuid("account_id") }
    }
}

/// The window and the platform that figures are asked for.
pub(super) struct WindowOnPlatform {
    pub(super) window: WindowParams,
    pub(super) platform: Option<Platform>,
}

impl FromQuery for WindowOnPlatform {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        WindowOnPlatform {
            window: WindowParams::read(query, parts),
            platform: query.about(ON_PLATFORM).word("platform"),
        }
    }
}
