//! Rows gathered by what they are about, and written as one unit of work.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::row::{AccountRow, Row, VideoRow};
use crate::model::latest::{AccountLatest, LatestValue, VideoLatest};
use crate::model::platform::Platform;
use crate::store::observations::{
    FoundOn, ObservedAccount, ObservedVideo, ProfileFigures, observe_accounts, observe_videos,
};
use crate::store::records::imports;
use crate::store::{Error, Write};
use sqlx::PgPool;

/// An account by its name on a platform.
pub type Name = (Platform, String);

/// What gathered rows say, by account and by video.
#[derive(Debug, Default)]
pub struct Batch {
    accounts: HashMap<Name, (AccountLatest, Vec<ProfileFigures>)>,
    /// Keyed by what finds the video, and by the account on which the rows say it stands.
    videos: HashMap<(Platform, String, Option<String>), Video>,
    /// What the accounts' creators and categories are called.
    pub creators: HashMap<Name, LatestValue<String>>,
    pub categories: HashMap<Name, LatestValue<String>>,
    rows: usize,
}

#[derive(Debug, Default)]
struct Video {
    latest: VideoLatest,
    observations: Vec<(DateTime<Utc>, crate::model::counters::Counters)>,
}

impl Batch {
    /// The number of rows gathered.
    pub const fn len(&self) -> usize {
        self.rows
    }

    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn add(&mut self, row: Row) {
        self.rows += 1;
        match row {
            Row::Account(row) => self.add_account(row),
            Row::Video(row) => self.add_video(row),
        }
    }

    fn add_account(&mut self, row: AccountRow) {
        let at = row.observed_at;
        for (names, named) in [(&mut self.creators, row.creator), (&mut self.categories, row.category)] {
            if named.is_some() {
                names.entry((row.platform, row.username.clone())).or_default().record(named, at);
            }
        }
        let (latest, figures) = self.accounts.entry((row.platform, row.username)).or_default();
        latest.name.record(row.name, at);
        latest.description.record(row.description, at);
        latest.is_verified.record(row.is_verified, at);
        latest.follower_count.record(row.follower_count, at);
        latest.following_count.record(row.following_count, at);
        latest.profile_post_count.record(row.profile_post_count, at);
        figures.push(ProfileFigures {
            observed_at: at,
            follower_count: row.follower_count,
            following_count: row.following_count,
            profile_post_count: row.profile_post_count,
        });
    }

    fn add_video(&mut self, row: VideoRow) {
        let at = row.observed_at;
        let video = self.videos.entry((row.platform, row.external_id, row.username)).or_default();
        video.latest.record_counters(&row.counters, at);
        video.latest.description.record(row.description, at);
        video.latest.media_type.record(row.media_type, at);
        video.latest.duration.record(row.duration, at);
        video.latest.create_time.record(row.create_time, at);
        if !row.counters.is_empty() {
            video.observations.push((at, row.counters));
        }
    }

    /// Writes everything as one unit of work; the batch stays, so that it can be written again after a contention.
    /// What is new is due from `now` on.
    pub async fn write(
        &self,
        pg: &PgPool,
        organization: Uuid,
        active: bool,
        now: DateTime<Utc>,
    ) -> Result<Written, Error> {
        let mut write = Write::begin(pg, organization).await?;
        let names: BTreeSet<_> = self
            .accounts
            .keys()
            .cloned()
            .chain(
                self.videos.keys().filter_map(|(platform, _, username)| Some((*platform, username.clone()?))),
            )
            .collect();
        let names: Vec<_> = names.into_iter().collect();
        let accounts = imports::find_or_create_accounts(&mut write, &names, active, now).await?;
        let found = |name: &Name| accounts.get(name).copied();

        let observed = self.accounts.iter().filter_map(|(name, (latest, figures))| {
            Some(ObservedAccount {
                account: found(name)?,
                latest: latest.clone(),
                observations: figures.clone(),
                scraped_at: None,
            })
        });
        observe_accounts(&mut write, observed.collect()).await?;
        let observed = self.videos.iter().filter_map(|((platform, external_id, username), video)| {
            let found_on = match username {
                Some(username) => FoundOn::Account(found(&(*platform, username.clone()))?),
                None => FoundOn::Itself { active },
            };
            Some(ObservedVideo {
                platform: *platform,
                external_id: Some(external_id.clone()),
                shortcode: None,
                found_on,
                latest: video.latest.clone(),
                observations: video.observations.clone(),
                scraped_at: None,
            })
        });
        let videos = observe_videos(&mut write, now, observed.collect()).await?.videos;
        write.commit().await?;
        let snapshots = self.accounts.values().map(|(_, figures)| figures.len()).sum::<usize>()
            + self.videos.values().map(|video| video.observations.len()).sum::<usize>();
        let accounts = accounts.into_values().map(|account| account.subject_id).collect();
        Ok(Written { snapshots: snapshots as u64, accounts, videos })
    }
}

/// What a batch did.
pub struct Written {
    pub snapshots: u64,
    /// The accounts and the videos that it is about, by their internal ids.
    pub accounts: Vec<i64>,
    pub videos: Vec<i64>,
}
