//! Reads accounts, videos and snapshots page by page, and writes their rows.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use indicatif::ProgressBar;
use serde::Serialize;
use uuid::Uuid;

use super::error::Error;
use super::history_file::HistoryFile;
use crate::app::Databases;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::field::{Field, FieldType, FieldValue, ToField};
use crate::model::latest::{LatestValue, UNDATED};
use crate::model::observed::{AccountFields, VideoFields};
use crate::store::records::exports::{self, ExportedAccount, ExportedSnapshot, ExportedVideo, Snapshots};

/// Accounts, or videos, that are read at a time.
const PAGE_ROWS: u16 = 500;

type ColumnList = Vec<(&'static str, FieldType)>;

pub static ACCOUNT_COLUMNS: LazyLock<ColumnList> = LazyLock::new(|| {
    columns(
        &[("platform", FieldType::Text), ("username", FieldType::Text), ("observed_at", FieldType::Time)],
        AccountFields::LIST,
        &ProfileCounters::NAMES,
        &[("category", FieldType::Text), ("creator", FieldType::Text)],
    )
});

pub static VIDEO_COLUMNS: LazyLock<ColumnList> = LazyLock::new(|| {
    columns(
        &[
            ("platform", FieldType::Text),
            ("username", FieldType::Text),
            ("external_id", FieldType::Text),
            ("observed_at", FieldType::Time),
        ],
        VideoFields::LIST,
        &Counters::NAMES,
        &[],
    )
});

fn columns(
    first: &[(&'static str, FieldType)],
    fields: &[Field],
    counters: &[&'static str],
    last: &[(&'static str, FieldType)],
) -> ColumnList {
    let fields = fields.iter().filter(|field| field.in_files).map(|field| (field.name, field.field_type));
    let counters = counters.iter().map(|name| (*name, FieldType::Integer));
    first.iter().copied().chain(fields).chain(counters).chain(last.iter().copied()).collect()
}

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub accounts: u64,
    pub videos: u64,
    pub account_rows: u64,
    pub video_rows: u64,
    /// Videos without a known platform id, and accounts whose username now belongs to another account.
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
        let fields = latest.fields();
        let mut write = |at: Option<DateTime<Utc>>, counters: ProfileCounters, is_description: bool| {
            let described = |value| if is_description { value } else { FieldValue::Null };
            let first = [account.platform.to_field(), account.username.to_field(), at.to_field()];
            let fields = file_values(fields.values()).map(described);
            let last = [described(account.category.to_field()), described(account.creator.to_field())];
            self.accounts
                .add(first.into_iter().chain(fields).chain(counter_values(counters.to_array())).chain(last))
        };
        let missing = missing_in_snapshots(&latest.counters, snapshots).into_iter();
        let observations = missing.chain(snapshots.iter().map(|row| (row.observed_at, row.counters())));
        let mut rows: Vec<_> = observations.map(|(at, counters)| (Some(at), counters)).collect();
        if rows.is_empty() {
            rows.push((dated(latest.observed_at()), ProfileCounters::default().to_array()));
        }
        for (n, (at, counters)) in rows.iter().enumerate() {
            write(*at, ProfileCounters::from_array(*counters), n + 1 == rows.len())?;
        }
        Ok(())
    }

    fn write_video(
        &mut self,
        video: &ExportedVideo,
        account: Option<&ExportedAccount>,
        snapshots: &[ExportedSnapshot],
    ) -> Result<(), Error> {
        if video.external_id.is_none() || account.is_some_and(|account| account.username_is_reused) {
            self.summary.left_out += 1;
            return Ok(());
        }
        self.summary.videos += 1;
        let username = account.map_or(FieldValue::Null, |account| account.username.to_field());
        let fields = video.latest.fields();
        let mut write = |username, at: Option<DateTime<Utc>>, counters: Counters, is_description: bool| {
            let described = |value| if is_description { value } else { FieldValue::Null };
            let first = [video.platform.to_field(), username, video.external_id.to_field(), at.to_field()];
            let fields = file_values(fields.values()).map(described);
            self.videos.add(first.into_iter().chain(fields).chain(counter_values(counters.to_array())))
        };
        let described_at = dated(video.latest.observed_at());
        write(username, described_at, Counters::default(), true)?;
        if account.is_some() && video.is_tracked {
            // A row without username: it is tracked individually as well.
            write(FieldValue::Null, described_at, Counters::default(), false)?;
        }
        for (at, counters) in missing_in_snapshots(&video.latest.counters, snapshots) {
            write(username, Some(at), Counters::from_array(counters), false)?;
        }
        for snapshot in snapshots {
            let counters = Counters::from_array(snapshot.counters());
            if !counters.is_empty() {
                write(username, Some(snapshot.observed_at), counters, false)?;
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

fn file_values<'a>(
    values: impl Iterator<Item = (&'static Field, FieldValue<'a>)>,
) -> impl Iterator<Item = FieldValue<'a>> {
    values.filter(|(field, _)| field.in_files).map(|(_, value)| value)
}

fn counter_values<const N: usize>(counters: [Option<i64>; N]) -> [FieldValue<'static>; N] {
    counters.map(|count| count.map_or(FieldValue::Null, FieldValue::Integer))
}

/// Returns latest counters that no snapshot has, by time: a later observation of the same day, without that counter,
/// replaced their snapshot.
fn missing_in_snapshots<const N: usize>(
    latest: &[LatestValue<i64>; N],
    snapshots: &[ExportedSnapshot],
) -> BTreeMap<DateTime<Utc>, [Option<i64>; N]> {
    let mut found = [None; N];
    for snapshot in snapshots {
        for (found, counter) in found.iter_mut().zip(snapshot.counters::<N>()) {
            *found = counter.or(*found);
        }
    }
    let mut missing = BTreeMap::new();
    for (n, latest) in latest.iter().enumerate() {
        if let (Some(value), Some(at)) = (latest.get().copied(), latest.at())
            && found[n] != Some(value)
        {
            missing.entry(at).or_insert([None; N])[n] = Some(value);
        }
    }
    missing
}
