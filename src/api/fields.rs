//! Fields and words that several resources share.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::input::{
    ApiEnum, FromPath, FromQuery, ListSort, Parts, PathParams, QueryParams, WindowParams, Windowed,
};
use crate::http::{ListParams, Problem};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::records::videos::VideoFilter;

pub(super) const ON_PLATFORM: &str = "Only this platform.";
pub(super) const VIDEO_IDS: &str = "Ids of videos, discovered and individually tracked ones alike.";
pub(super) const TAGS: &str = "Tags of your own, text by text; they replace those that are there.";

impl ApiEnum for Platform {
    const VARIANTS: &'static [(&'static str, Self)] =
        &[("instagram", Platform::Instagram), ("tiktok", Platform::Tiktok)];
}

/// What the platforms' own rules of a text make of a body that names the platform beside it.
pub(super) fn by_platform(name: &'static str, pattern: fn(Platform) -> String) -> Vec<Value> {
    let case = |(word, platform): &(&str, Platform)| json!({"properties": {"platform": {"const": word}, name: {"pattern": pattern(*platform)}}});
    Platform::VARIANTS.iter().map(case).collect()
}

/// `{creator_id}` of a path.
#[derive(Serialize)]
pub(super) struct CreatorPath {
    pub(super) creator_id: Uuid,
}

impl FromPath for CreatorPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        CreatorPath { creator_id: path.describe("The id of the creator.").uuid("creator_id") }
    }
}

/// `{video_id}` of a path.
#[derive(Serialize)]
pub(super) struct VideoPath {
    pub(super) video_id: Uuid,
}

impl FromPath for VideoPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        VideoPath { video_id: path.describe("The id of the video.").uuid("video_id") }
    }
}

/// The filters and the page of a list of videos.
pub(super) struct VideosQuery<S> {
    pub(super) filter: VideoFilter,
    pub(super) params: ListParams<S>,
}

impl<S: ListSort> FromQuery for VideosQuery<S> {
    fn read(query: &mut QueryParams<'_>, parts: &Parts<'_>) -> Self {
        let filter = VideoFilter {
            platform: query.describe(ON_PLATFORM).variant("platform"),
            account_id: query.describe("Only the videos of this account.").uuid("account_id"),
            creator_id: query.describe("Only the videos of this creator's accounts.").uuid("creator_id"),
            is_active: query.describe("Only those with this value of `is_active`.").boolean("is_active"),
            q: query.describe("A part of the caption, in any case.").search_text("q"),
        };
        VideosQuery { params: ListParams::read(query, parts, &filter), filter }
    }
}

/// `{account_id}` of a path that accepts no username.
#[derive(Serialize)]
pub(super) struct AccountIdPath {
    pub(super) account_id: Uuid,
}

impl FromPath for AccountIdPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        AccountIdPath { account_id: path.describe("The id of the account.").uuid("account_id") }
    }
}

#[derive(Serialize)]
pub(super) struct AnalyticsQuery {
    pub(super) window: WindowParams,
    pub(super) platform: Option<Platform>,
}

impl FromQuery for AnalyticsQuery {
    fn read(query: &mut QueryParams<'_>, parts: &Parts<'_>) -> Self {
        AnalyticsQuery {
            window: WindowParams::read(query, parts),
            platform: query.describe(ON_PLATFORM).variant("platform"),
        }
    }
}

impl Windowed for AnalyticsQuery {
    fn window(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        self.window.resolve(now)
    }
}
