//! Saves batches of rows, then links creators and sets categories.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::batch::{RowBatch, SavedBatch};
use super::error::Error;
use super::id_set::IdSet;
use super::new_records::{AccountName, NewRecords};
use crate::app::Databases;
use crate::model::latest::{LatestValue, Timestamped};
use crate::model::platform::Platform;
use crate::store::records::imports;
use crate::store::{Write, retry_on_conflict};

/// Batches that are saved at the same time: one is prepared while Postgres inserts another.
const CONCURRENT_BATCHES: usize = 2;
/// Accounts whose creators or categories are set in one transaction.
const BATCH_ACCOUNTS: usize = 1_000;

pub struct Loader<'a> {
    databases: &'a Databases,
    organization: Uuid,
    new_records: Arc<NewRecords>,
    pub snapshots: u64,
    pub accounts: IdSet,
    videos: IdSet,
    /// Those that the import merged into others.
    merged_videos: IdSet,
    /// Set after the last row, because the latest observation decides.
    creators: HashMap<AccountName, LatestValue<String>>,
    categories: HashMap<AccountName, LatestValue<String>>,
}

impl<'a> Loader<'a> {
    pub fn new(databases: &'a Databases, organization: Uuid, new_records: NewRecords) -> Self {
        Loader {
            databases,
            organization,
            new_records: Arc::new(new_records),
            snapshots: 0,
            accounts: IdSet::default(),
            videos: IdSet::default(),
            merged_videos: IdSet::default(),
            creators: HashMap::new(),
            categories: HashMap::new(),
        }
    }

    /// Saves batches, some at the same time. [`Self::finish`] saves their creators and categories.
    pub async fn save_all(
        &mut self,
        batches: impl Stream<Item = RowBatch>,
        mut on_saved: impl FnMut(&RowBatch, &SavedBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Loader { databases: Databases { pg, .. }, organization, .. } = *self;
        let new_records = self.new_records.clone();
        let saving = batches.map(|batch| {
            let new_records = new_records.clone();
            async move {
                let saved = retry_on_conflict(|| batch.save(pg, organization, &new_records)).await?;
                Ok::<_, Error>((batch, saved))
            }
        });
        let mut saving = pin!(saving.buffer_unordered(CONCURRENT_BATCHES));
        while let Some((batch, saved)) = saving.try_next().await? {
            on_saved(&batch, &saved)?;
            self.add(batch, saved);
        }
        Ok(())
    }

    fn add(&mut self, batch: RowBatch, saved: SavedBatch) {
        self.snapshots += saved.snapshots;
        self.accounts.extend(saved.accounts);
        self.videos.extend(saved.videos);
        self.merged_videos.extend(saved.merged_videos);
        for (names, observed) in
            [(&mut self.creators, batch.creators), (&mut self.categories, batch.categories)]
        {
            for (account, name) in observed {
                names.entry(account).or_default().merge(name);
            }
        }
    }

    /// The number of videos, each counted once, however their rows name them.
    pub fn video_count(&self) -> u64 {
        self.videos.len_without(&self.merged_videos)
    }

    /// Creates and links creators, and sets categories.
    pub async fn finish(&mut self) -> Result<(), Error> {
        let (pg, organization) = (&self.databases.pg, self.organization);
        let creators: Vec<_> = self.new_records.creators.iter().collect();
        for names in creators.chunks(BATCH_ACCOUNTS) {
            retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::create_missing_creators(&mut write, names).await?;
                write.commit().await
            })
            .await?;
        }
        for links in sort_by_account(std::mem::take(&mut self.creators)).chunks(BATCH_ACCOUNTS) {
            retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::link_creators(&mut write, links).await?;
                write.commit().await
            })
            .await?;
        }
        for categories in sort_by_account(std::mem::take(&mut self.categories)).chunks(BATCH_ACCOUNTS) {
            retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::set_categories(&mut write, categories).await?;
                write.commit().await
            })
            .await?;
        }
        Ok(())
    }
}

/// Returns the names in the order of their accounts.
fn sort_by_account(
    names: HashMap<AccountName, LatestValue<String>>,
) -> Vec<(Platform, String, Timestamped<String>)> {
    let mut sorted: Vec<_> = names
        .into_iter()
        .filter_map(|((platform, username), name)| Some((platform, username, name.into_timestamped()?)))
        .collect();
    sorted.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    sorted
}
