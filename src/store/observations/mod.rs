//! Saves observations of accounts and videos: latest values, tracking starts, snapshots.
//!
//! Scrapes and imports both use it, so they produce the same numbers. Batches may arrive in any order and repeatedly.

mod accounts;
mod locks;
mod row;
mod video_draft;
mod video_rows;
mod videos;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::observed::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;

pub use accounts::save_accounts;
pub(super) use locks::lock_account_of_video;
pub use videos::{MergedVideos, SavedVideos, save_videos};

/// The ids of an account in Postgres and, as a subject, in ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountRef {
    pub id: Uuid,
    pub subject_id: i64,
}

/// Observations of an account in a batch.
#[derive(Debug, Clone)]
pub struct ObservedAccount {
    pub account: AccountRef,
    pub latest: AccountLatest,
    pub observations: Vec<(DateTime<Utc>, ProfileCounters)>,
    /// Set by a scrape, not by an import.
    pub scraped_at: Option<DateTime<Utc>>,
}

/// Why a video is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VideoOrigin {
    /// It was found on a tracked account.
    Account(AccountRef),
    /// It is tracked individually; a new one is scraped if `is_active`.
    Individual { is_active: bool },
}

/// Observations of a video in a batch.
#[derive(Debug, Clone)]
pub struct ObservedVideo {
    pub platform: Platform,
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub origin: VideoOrigin,
    pub latest: VideoLatest,
    pub observations: Vec<(DateTime<Utc>, Counters)>,
    /// Set by a scrape, not by an import.
    pub scraped_at: Option<DateTime<Utc>>,
}

/// The external ids and the shortcodes of videos, by platform.
type VideoIds<'a> = BTreeMap<Platform, (Vec<&'a str>, Vec<&'a str>)>;

fn ids_by_platform<'a>(videos: impl Iterator<Item = &'a ObservedVideo>) -> VideoIds<'a> {
    let mut ids = VideoIds::new();
    for video in videos {
        let (external_ids, shortcodes) = ids.entry(video.platform).or_default();
        external_ids.extend(video.external_id.as_deref());
        shortcodes.extend(video.shortcode.as_deref());
    }
    ids
}
