//! The part of the sandbox's state that survives a restart, in one small JSON file, and the accounts as it changes them.
//!
//! Every change replaces the whole file, so that a kill leaves either the old state or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::fault::{Fault, PictureFault};
use super::pictures::{PictureKind, picture_key, picture_url};
use super::platform::{Counters, Platform};
use super::population::{ProfileCounts, SimulatedAccount, SimulatedPost};

/// The clock and all changes by control commands. Accounts are identified by their index in the population.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedState {
    pub(super) seed: u64,
    /// How far the sandbox's clock is ahead of the real one.
    pub(super) offset_ms: i64,
    /// The time of a stopped clock.
    #[serde(default)]
    pub(super) stopped_at: Option<DateTime<Utc>>,
    /// Usernames of renamed accounts.
    #[serde(default)]
    pub(super) renames: BTreeMap<usize, String>,
    /// Deleted accounts.
    #[serde(default)]
    pub(super) lost: BTreeSet<usize>,
    /// Ids of deleted posts.
    #[serde(default)]
    pub(super) lost_posts: BTreeMap<usize, BTreeSet<String>>,
    /// Accounts whose requests fail.
    #[serde(default)]
    pub(super) broken: BTreeMap<usize, Fault>,
    #[serde(default)]
    pub(super) followers: BTreeMap<usize, i64>,
    /// Fixed counters by post id; null is unknown.
    #[serde(default)]
    pub(super) counters: BTreeMap<usize, FixedCounters>,
    /// Bad pictures by key.
    #[serde(default)]
    pub(super) picture_faults: BTreeMap<String, PictureFault>,
    /// How often pictures were replaced, by key.
    #[serde(default)]
    pub(super) picture_versions: PictureVersions,
}

type PictureVersions = BTreeMap<String, u32>;

/// Values of counters by post id and name.
type FixedCounters = BTreeMap<String, BTreeMap<String, Option<i64>>>;

/// An account as its platform shows it at one moment.
pub struct VisibleAccount<'a> {
    pub account: &'a SimulatedAccount,
    pub username: String,
    pub profile: ProfileCounts,
    pub now: DateTime<Utc>,
    /// How every request for the account fails.
    pub fault: Option<Fault>,
    fixed_counters: FixedCounters,
    deleted_posts: BTreeSet<String>,
    picture_versions: PictureVersions,
}

impl SavedState {
    /// Returns the time of the sandbox's clock, in the precision in which it is served.
    pub(super) fn now(&self) -> DateTime<Utc> {
        let running = || (Utc::now() + TimeDelta::milliseconds(self.offset_ms)).trunc_subsecs(6);
        self.stopped_at.unwrap_or_else(running)
    }

    /// Returns the current username of an account.
    pub(super) fn username<'a>(&'a self, account: &'a SimulatedAccount) -> &'a str {
        self.renames.get(&account.index).unwrap_or(&account.username)
    }

    /// Applies the changes to an account; `None` if it is deleted.
    pub(super) fn visible_account<'a>(
        &self,
        account: &'a SimulatedAccount,
        now: DateTime<Utc>,
    ) -> Option<VisibleAccount<'a>> {
        let index = account.index;
        if self.lost.contains(&index) {
            return None;
        }
        let fixed_counters = self.counters.get(&index).cloned().unwrap_or_default();
        let deleted_posts = self.lost_posts.get(&index).cloned().unwrap_or_default();
        let mut profile = account.profile_at(now);
        profile.follower_count = self.followers.get(&index).copied().unwrap_or(profile.follower_count);
        profile.post_count -= deleted_posts.len() as i64;
        let username = self.username(account).to_owned();
        let fault = self.broken.get(&index).copied();
        Some(VisibleAccount {
            account,
            username,
            profile,
            now,
            fault,
            fixed_counters,
            deleted_posts,
            picture_versions: self.picture_versions.clone(),
        })
    }

    /// Reads the file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<SavedState>, String> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Replaces the file atomically and durably.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            fs::create_dir_all(directory)?;
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let mut file = fs::File::create(&temporary)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl VisibleAccount<'_> {
    /// Returns the visible posts, newest first, with their counters.
    pub fn posts(&self) -> impl Iterator<Item = (SimulatedPost, Counters)> + '_ {
        self.posts_where(|_, _| true)
    }

    /// Returns those of them whose number and time are selected.
    pub fn posts_where(
        &self,
        is_selected: impl Fn(usize, DateTime<Utc>) -> bool,
    ) -> impl Iterator<Item = (SimulatedPost, Counters)> {
        let is_visible = |post: &SimulatedPost| !self.deleted_posts.contains(&post.id);
        self.account.posts_where(self.now, is_selected).filter(is_visible).map(|post| {
            let counters = self.counters(&post);
            (post, counters)
        })
    }

    /// Returns the URL of the profile picture at the sandbox.
    pub fn profile_picture_url(&self, server: &str) -> String {
        self.picture_url(server, PictureKind::Profile, &self.account.id)
    }

    /// Returns the URL of a post's cover at the sandbox.
    pub fn cover_url(&self, server: &str, post: &SimulatedPost) -> String {
        self.picture_url(server, PictureKind::Cover, &post.id)
    }

    fn picture_url(&self, server: &str, kind: PictureKind, id: &str) -> String {
        let key = picture_key(self.account.platform, kind, id);
        let version = self.picture_versions.get(&key).copied().unwrap_or_default();
        picture_url(server, &key, version, self.now)
    }

    fn counters(&self, post: &SimulatedPost) -> Counters {
        let mut values = post.counters_at(self.now).to_array();
        if let Some(fixed) = self.fixed_counters.get(&post.id) {
            for (name, value) in Counters::NAMES.iter().zip(&mut values) {
                *value = fixed.get(*name).copied().unwrap_or(*value);
            }
        }
        let counters = Counters::from_array(values);
        match self.account.platform {
            Platform::Instagram => counters,
            // Plays are views.
            Platform::Tiktok => Counters { play_count: counters.view_count, ..counters },
        }
    }
}
