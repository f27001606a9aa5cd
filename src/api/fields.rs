//! Fields and words that several resources share.

use uuid::Uuid;

use crate::http::extract::{FromPath, PathParams};
use crate::http::fields::Word;
use crate::model::platform::Platform;

pub(super) const ON_PLATFORM: &str = "Only this platform.";
pub(super) const TAGS: &str = "Tags of your own, text by text; they replace those that are there.";

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
