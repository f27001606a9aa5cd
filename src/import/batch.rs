//! Rows grouped by account and video, saved in one transaction.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::new_records::{AccountName, NewRecords};
use super::row::{AccountRow, Row, VideoRow};
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::VideoIds;
use crate::model::latest::{LatestValue, UNDATED};
use crate::model::observed::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;
use crate::store::observations::{ObservedAccount, ObservedVideo, VideoOrigin, save_accounts, save_videos};
use crate::store::records::imports;
use crate::store::{Error, Write};

/// A video by platform, username of the account, and the key of its ids.
type VideoName = (Platform, Option<String>, String);

#[derive(Debug, Default)]
pub struct RowBatch {
    accounts: HashMap<AccountName, AccountRows>,
    videos: HashMap<VideoName, VideoRows>,
    pub creators: HashMap<AccountName, LatestValue<String>>,
    pub categories: HashMap<AccountName, LatestValue<String>>,
    rows: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct AccountRows {
    latest: AccountLatest,
    observations: Vec<(DateTime<Utc>, ProfileCounters)>,
}

#[derive(Debug)]
struct VideoRows {
    ids: VideoIds,
    is_active: Option<bool>,
    latest: VideoLatest,
    observations: Vec<(DateTime<Utc>, Counters)>,
}

impl RowBatch {
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns the approximate memory of the rows.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn add(&mut self, row: Row) {
        self.rows += 1;
        self.bytes += row.text_bytes();
        match row {
            Row::Account(row) => self.add_account(row),
            Row::Video(row) => self.add_video(row),
        }
    }

    fn add_account(&mut self, row: AccountRow) {
        let at = row.observed_at.unwrap_or(UNDATED);
        for (names, name) in [(&mut self.creators, row.creator), (&mut self.categories, row.category)] {
            if name.is_some() {
                names.entry((row.platform, row.username.clone())).or_default().record(name, at);
            }
        }
        let account = self.accounts.entry((row.platform, row.username)).or_insert_with(|| {
            self.bytes += size_of::<(AccountName, AccountRows)>();
            AccountRows::default()
        });
        account.latest.record(row.fields, row.counters, at);
        if !row.counters.is_empty() {
            self.bytes += size_of::<(DateTime<Utc>, ProfileCounters)>();
            account.observations.push((at, row.counters));
        }
    }

    fn add_video(&mut self, row: VideoRow) {
        let at = row.observed_at.unwrap_or(UNDATED);
        let name = (row.platform, row.username, row.ids.key().to_owned());
        let video = self.videos.entry(name).or_insert_with(|| {
            self.bytes += size_of::<(VideoName, VideoRows)>();
            VideoRows {
                ids: VideoIds::default(),
                is_active: None,
                latest: VideoLatest::default(),
                observations: Vec::with_capacity(1),
            }
        });
        video.is_active = row.is_active.or(video.is_active);
        if video.ids != row.ids {
            video.ids.merge(row.ids);
        }
        // A written time takes precedence, whenever it was observed.
        if video.latest.create_time.get().is_none() {
            video.latest.create_time.record(row.id_time, UNDATED);
        }
        video.latest.record(row.fields, row.counters, at);
        if !row.counters.is_empty() {
            self.bytes += size_of::<(DateTime<Utc>, Counters)>();
            video.observations.push((at, row.counters));
        }
    }

    /// Saves the batch in one transaction, which can be retried.
    pub async fn save(&self, pg: &PgPool, organization: Uuid, new: &NewRecords) -> Result<SavedBatch, Error> {
        let NewRecords { is_active, now, ref settings, .. } = *new;
        let mut write = Write::begin(pg, organization).await?;
        let video_accounts =
            self.videos.keys().filter_map(|(platform, username, _)| Some((*platform, username.clone()?)));
        let names: BTreeSet<_> = self.accounts.keys().cloned().chain(video_accounts).collect();
        let names: Vec<_> = names.into_iter().collect();
        let accounts = imports::find_or_create_accounts(&mut write, &names, settings, is_active, now).await?;
        let find = |name: &AccountName| accounts.get(name).copied();

        let mut snapshots = 0;
        let observed_accounts = self.accounts.iter().filter_map(|(name, account)| {
            let observations = last_of_each_time(&account.observations);
            snapshots += observations.len() as u64;
            Some(ObservedAccount {
                account: find(name)?,
                latest: account.latest.clone(),
                observations,
                scraped_at: None,
            })
        });
        save_accounts(&mut write, observed_accounts.collect()).await?;
        // Inserts are cheaper if successive rows are neighbours in the indexes by account and by external id.
        let mut sorted: Vec<_> = self.videos.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        let observed_videos = sorted.into_iter().filter_map(|((platform, username, _), video)| {
            let origin = match username {
                Some(username) => VideoOrigin::Account(find(&(*platform, username.clone()))?),
                None => VideoOrigin::Individual { is_active: video.is_active.unwrap_or(is_active) },
            };
            let observations = last_of_each_time(&video.observations);
            snapshots += observations.len() as u64;
            Some(ObservedVideo {
                platform: *platform,
                external_id: video.ids.external_id().map(str::to_owned),
                shortcode: video.ids.shortcode().map(str::to_owned),
                origin,
                latest: video.latest.clone(),
                observations,
                scraped_at: None,
            })
        });
        let videos = save_videos(&mut write, now, observed_videos.collect()).await?;
        write.commit().await?;
        let accounts = accounts.into_values().map(|account| account.subject_id).collect();
        Ok(SavedBatch {
            snapshots,
            accounts,
            videos: videos.internal_ids,
            merged_videos: videos.merged_internal_ids,
        })
    }
}

/// Returns observations in the order of time. Of several at one time the last row holds.
fn last_of_each_time<T: Copy>(observations: &[(DateTime<Utc>, T)]) -> Vec<(DateTime<Utc>, T)> {
    let mut sorted = observations.to_vec();
    sorted.sort_by_key(|(at, _)| *at);
    sorted.dedup_by(|next, kept| {
        let is_same_time = next.0 == kept.0;
        if is_same_time {
            *kept = *next;
        }
        is_same_time
    });
    sorted
}

/// The number of snapshots, and the internal ids of accounts and videos.
pub struct SavedBatch {
    pub snapshots: u64,
    pub accounts: Vec<i64>,
    pub videos: Vec<i64>,
    /// Videos of earlier batches that turned out to be one with others.
    pub merged_videos: Vec<i64>,
}
