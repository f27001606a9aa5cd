//! Reads accounts, videos and snapshots page by page, and writes their rows.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::error::Error;
use super::history_file::HistoryFile;
use crate::app::Databases;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::file_row::file_row;
use crate::model::latest::{LatestValue, UNDATED};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;
use crate::store::records::exports::{self, ExportedAccount, ExportedSnapshot, ExportedVideo, Snapshots};

/// Accounts, or videos, that are read at a time.
const PAGE_ROWS: u16 = 500;

file_row! {
    #[derive(Default)]
    pub(super) struct AccountRow<'a> {
        platform: Option<Platform>,
        username: Option<&'a str>,
        observed_at: Option<DateTime<Utc>>,
        fields: AccountFields,
        counters: ProfileCounters,
        category: Option<&'a str>,
        creator: Option<&'a str>,
        is_active: Option<bool>,
        scrape_interval_hours: Option<i64>,
        account_tags: Option<String>,
    }
}

file_row! {
    pub(super) struct VideoRow<'a> {
        platform: Platform,
        username: Option<&'a str>,
        external_id: Option<&'a str>,
        shortcode: Option<&'a str>,
        observed_at: Option<DateTime<Utc>>,
        fields: VideoFields,
        counters: Counters,
        is_active: Option<bool>,
    }
}

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub accounts: u64,
    pub videos: u64,
    pub account_rows: u64,
    pub video_rows: u64,
    /// Videos without any id, and accounts whose username now belongs to another account.
    pub left_out: u64,
    pub files: Vec<PathBuf>,
}

pub struct Exporter<'a> {
    databases: &'a Databases,
    organization: Uuid,
    accounts: HistoryFile,
    videos: HistoryFile,
    bar: ProgressBar,
    summary: ExportSummary,
}

impl<'a> Exporter<'a> {
    pub fn new(
        databases: &'a Databases,
        organization: Uuid,
        accounts: HistoryFile,
        videos: HistoryFile,
        bar: ProgressBar,
    ) -> Self {
        Exporter { databases, organization, accounts, videos, bar, summary: ExportSummary::default() }
    }

    /// Writes all accounts and their videos.
    pub async fn write_accounts(&mut self) -> Result<(), Error> {
        let Databases { pg, clickhouse, .. } = self.databases;
        let (mut username, mut id) = (String::new(), Uuid::nil());
        loop {
            let page =
                exports::fetch_accounts(pg, self.organization, (&username, id), PAGE_ROWS.into()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            (username, id) = (last.username.clone(), last.id);
            let subjects: Vec<_> = page.iter().map(|account| account.subject_id).collect();
            let snapshots =
                exports::fetch_account_snapshots(clickhouse, self.organization, &subjects).await?;
            let mut rest = page.as_slice();
            while !rest.is_empty() {
                let (group, others) = rest.split_at(group_size(rest));
                self.write_group(group, &snapshots).await?;
                rest = others;
            }
        }
    }

    /// Writes the creators that have no accounts.
    pub async fn write_lone_creators(&mut self) -> Result<(), Error> {
        let mut after = Uuid::nil();
        loop {
            let pg = &self.databases.pg;
            let page = exports::fetch_lone_creators(pg, self.organization, after, PAGE_ROWS.into()).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, name) in &page {
                self.accounts.add(&AccountRow { creator: Some(name), ..AccountRow::default() })?;
            }
        }
    }

    async fn write_group(&mut self, group: &[ExportedAccount], snapshots: &Snapshots) -> Result<(), Error> {
        let pg = &self.databases.pg;
        let accounts: HashMap<Uuid, &ExportedAccount> =
            group.iter().map(|account| (account.id, account)).collect();
        let ids: Vec<_> = accounts.keys().copied().collect();
        let video_ids = exports::fetch_video_ids(pg, self.organization, &ids).await?;
        for page_ids in video_ids.chunks(PAGE_ROWS.into()) {
            let page = exports::fetch_account_videos(pg, self.organization, &ids, page_ids).await?;
            self.write_videos(&page, &accounts).await?;
        }
        for account in group {
            let snapshots = snapshots.get(&account.subject_id).map_or(&[][..], Vec::as_slice);
            self.write_account(account, snapshots)?;
        }
        Ok(())
    }

    /// Writes the videos that belong to no account.
    pub async fn write_individual_videos(&mut self) -> Result<(), Error> {
        let pg = &self.databases.pg;
        // Postgres has no earlier times.
        let mut after = (DateTime::from_timestamp(-200_000_000_000, 0).unwrap_or_default(), Uuid::nil());
        loop {
            let page =
                exports::fetch_individual_videos(pg, self.organization, after, PAGE_ROWS.into()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = (last.tracked_at.unwrap_or(after.0), last.id);
            self.write_videos(&page, &HashMap::new()).await?;
        }
    }

    async fn write_videos(
        &mut self,
        page: &[ExportedVideo],
        accounts: &HashMap<Uuid, &ExportedAccount>,
    ) -> Result<(), Error> {
        let clickhouse = &self.databases.clickhouse;
        let snapshots = exports::fetch_video_snapshots(clickhouse, self.organization, page).await?;
        for video in page {
            let account = video.account_id.and_then(|id| accounts.get(&id)).copied();
            let snapshots = snapshots.get(&video.internal_id).map_or(&[][..], Vec::as_slice);
            self.write_video(video, account, snapshots)?;
        }
        self.bar.inc(page.len() as u64);
        Ok(())
    }

    fn write_account(
        &mut self,
        account: &ExportedAccount,
        snapshots: &[ExportedSnapshot],
    ) -> Result<(), Error> {
        if account.username_is_reused {
            self.summary.left_out += 1;
            return Ok(());
        }
        self.summary.accounts += 1;
        let latest = &account.latest;
        let missing = missing_in_snapshots(&latest.counters, snapshots).into_iter();
        let observations = missing.chain(snapshots.iter().map(|row| (row.observed_at, row.counters())));
        let build_row = |observed_at, counters| AccountRow {
            platform: Some(account.platform),
            username: Some(&account.username),
            observed_at,
            fields: AccountFields::default(),
            counters: ProfileCounters::from_array(counters),
            category: None,
            creator: None,
            is_active: None,
            scrape_interval_hours: None,
            account_tags: None,
        };
        let mut rows: Vec<_> = observations.map(|(at, counters)| build_row(Some(at), counters)).collect();
        // The last row describes the account.
        let mut last = rows.pop().unwrap_or_else(|| build_row(dated(latest.observed_at()), [None; _]));
        last.fields = latest.fields();
        (last.category, last.creator) = (account.category.as_deref(), account.creator.as_deref());
        last.is_active = Some(account.is_active);
        last.scrape_interval_hours = Some(account.scrape_interval_hours.into());
        last.account_tags = (!account.metadata.is_empty()).then(|| json!(account.metadata).to_string());
        rows.push(last);
        rows.iter().try_for_each(|row| self.accounts.add(row))
    }

    fn write_video(
        &mut self,
        video: &ExportedVideo,
        account: Option<&ExportedAccount>,
        snapshots: &[ExportedSnapshot],
    ) -> Result<(), Error> {
        let has_id = video.external_id.is_some() || video.shortcode.is_some();
        if !has_id || account.is_some_and(|account| account.username_is_reused) {
            self.summary.left_out += 1;
            return Ok(());
        }
        self.summary.videos += 1;
        let row = |username, observed_at, counters| VideoRow {
            platform: video.platform,
            username,
            external_id: video.external_id.as_deref(),
            shortcode: video.shortcode.as_deref(),
            observed_at,
            fields: VideoFields::default(),
            counters,
            is_active: None,
        };
        let username = account.map(|account| account.username.as_str());
        let described_at = dated(video.latest.observed_at());
        let description = row(username, described_at, Counters::default());
        let is_active = Some(video.is_active).filter(|_| account.is_none());
        self.videos.add(&VideoRow { fields: video.latest.fields(), is_active, ..description })?;
        if account.is_some() && video.is_tracked {
            // A row without username: it is tracked individually as well.
            let tracking = row(None, described_at, Counters::default());
            self.videos.add(&VideoRow { is_active: Some(video.is_active), ..tracking })?;
        }
        for (at, counters) in missing_in_snapshots(&video.latest.counters, snapshots) {
            self.videos.add(&row(username, Some(at), Counters::from_array(counters)))?;
        }
        for snapshot in snapshots {
            let counters = Counters::from_array(snapshot.counters());
            if !counters.is_empty() {
                self.videos.add(&row(username, Some(snapshot.observed_at), counters))?;
            }
        }
        Ok(())
    }

    /// Completes both files, then renames both, so that there is never only one of them.
    pub fn finish(mut self) -> Result<ExportSummary, Error> {
        self.accounts.complete()?;
        self.videos.complete()?;
        self.summary.account_rows = self.accounts.rows;
        self.summary.video_rows = self.videos.rows;
        self.summary.files = vec![self.accounts.publish()?, self.videos.publish()?];
        self.bar.finish_and_clear();
        Ok(self.summary)
    }
}

/// Returns the time of an observation; `None` if nothing was observed.
fn dated(latest: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    latest.filter(|at| *at > UNDATED)
}

/// Returns how many accounts have about a page of videos together.
fn group_size(accounts: &[ExportedAccount]) -> usize {
    let mut videos = 0;
    let fits = |account: &&ExportedAccount| {
        let fits = videos < i64::from(PAGE_ROWS);
        videos += account.total_post_count;
        fits
    };
    accounts.iter().take_while(fits).count()
}

/// Returns latest counters that no snapshot has, by time: a later observation of the same day, without that counter,
/// replaced their snapshot.
fn missing_in_snapshots<const N: usize>(
    latest: &[LatestValue<i64>; N],
    snapshots: &[ExportedSnapshot],
) -> BTreeMap<DateTime<Utc>, [Option<i64>; N]> {
    let mut found = [None; N];
    for snapshot in snapshots {
        for (value, counter) in found.iter_mut().zip(snapshot.counters::<N>()) {
            *value = counter.or(*value);
        }
    }
    let mut missing = BTreeMap::new();
    for (n, counter) in latest.iter().enumerate() {
        if let (Some(value), Some(at)) = (counter.get().copied(), counter.at())
            && found[n] != Some(value)
        {
            missing.entry(at).or_insert([None; N])[n] = Some(value);
        }
    }
    missing
}
