//! What was observed of accounts and videos, made into records: latest counters, descriptions, snapshots.
//!
//! The tracker and the import both end here, so a number cannot depend on which of them brought it. Batches may
//! arrive in any order and more than once; only what the observations say decides.

mod accounts;
mod insert;
mod locks;
mod sums;
mod videos;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::model::counters::Counters;
use crate::model::latest::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;

pub use accounts::observe_accounts;
pub(super) use locks::lock_accounts_of;
pub use videos::{Merged, Observed, observe_videos};

/// An account as the stores know it: by its id in Postgres and as a subject of tracking in ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountRef {
    pub id: Uuid,
    pub subject_id: i64,
}

/// One look at a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileFigures {
    pub observed_at: DateTime<Utc>,
    pub follower_count: Option<i64>,
    pub following_count: Option<i64>,
    pub profile_post_count: Option<i64>,
}

/// Everything that a batch says of one account.
#[derive(Debug, Clone)]
pub struct ObservedAccount {
    pub account: AccountRef,
    pub latest: AccountLatest,
    pub observations: Vec<ProfileFigures>,
    /// Set by a scrape, not by an import.
    pub scraped_at: Option<DateTime<Utc>>,
}

/// How a video came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundOn {
    /// On a tracked account.
    Account(AccountRef),
    /// It is tracked on its own; a new one is collected when `active`.
    Itself { active: bool },
}

/// Everything that a batch says of one video.
#[derive(Debug, Clone)]
pub struct ObservedVideo {
    pub platform: Platform,
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub found_on: FoundOn,
    pub latest: VideoLatest,
    pub observations: Vec<(DateTime<Utc>, Counters)>,
    /// Set by a scrape, not by an import.
    pub scraped_at: Option<DateTime<Utc>>,
}
