//! Saves observations of accounts and videos: latest values, tracking starts, snapshots.
//!
//! Scrapes and imports both use it, so they produce the same numbers. Batches may arrive in any order and repeatedly.

mod accounts;
mod complete_ids;
mod locks;
mod row;
mod thresholds;
mod video_draft;
mod video_events;
mod video_rows;
mod videos;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::VideoIds;
use crate::model::observed::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;

pub use accounts::save_accounts;
pub use complete_ids::complete_ids;
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
    /// It has a record already, whose ids are completed. Without one, nothing is saved.
    Record,
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

impl ObservedVideo {
    fn ids(&self) -> VideoIds {
        VideoIds::new(self.platform, self.external_id.as_deref(), self.shortcode.as_deref())
    }

    /// Adds ids by which the video is known, unless its shortcode is another video's.
    pub fn add_ids(&mut self, known: VideoIds) {
        let mut ids = self.ids();
        if ids.shortcode_key().zip(known.shortcode_key()).is_none_or(|(own, known)| own == known) {
            ids.merge(known);
            self.external_id = ids.external_id().map(str::to_owned);
            self.shortcode = ids.shortcode().map(str::to_owned);
        }
    }
}

/// The external ids and the shortcodes by which records of videos are found, by platform.
type RecordKeys = BTreeMap<Platform, (Vec<String>, Vec<String>)>;

fn record_keys<'a>(videos: impl Iterator<Item = &'a ObservedVideo>) -> RecordKeys {
    let mut keys = RecordKeys::new();
    for video in videos {
        let (external_ids, shortcodes) = keys.entry(video.platform).or_default();
        let ids = video.ids();
        external_ids.extend(ids.external_ids());
        shortcodes.extend(ids.shortcode_key().map(str::to_owned));
        if video.origin == VideoOrigin::Record {
            // As an earlier version stored them.
            external_ids.extend(video.external_id.clone());
            shortcodes.extend(video.shortcode.clone());
        }
    }
    keys
}
