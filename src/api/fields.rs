//! Fields and words that several resources share.

use uuid::Uuid;

use crate::http::Listing;
use crate::http::extract::{FromPath, FromQuery, Parts, PathParams};
use crate::http::fields::{Params, Word};
use crate::http::page::ListSort;
use crate::model::platform::Platform;
use crate::store::videos::VideoFilter;

impl Word for Platform {
    const WORDS: &'static [(&'static str, Self)] =
        &[("instagram", Platform::Instagram), ("tiktok", Platform::Tiktok)];
}

/// `{creator_id}` of a path.
pub(super) struct CreatorPath {
    pub(super) creator_id: Uuid,
}

impl FromPath for CreatorPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        CreatorPath { creator_id: path.uuid("creator_id") }
    }
}

/// `{video_id}` of a path.
pub(super) struct VideoPath {
    pub(super) video_id: Uuid,
}

impl FromPath for VideoPath {
    fn read(path: &mut PathParams<'_>) -> Self {
        VideoPath { video_id: path.uuid("video_id") }
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
            platform: query.word("platform"),
            account_id: query.uuid("account_id"),
            creator_id: query.uuid("creator_id"),
            is_active: query.boolean("is_active"),
            q: query.search_text("q"),
        };
        VideosQuery { listing: Listing::read(query, parts, &filter), filter }
    }
}
