//! `tidemark export`: what an organization has, as files that `tidemark import` reads back to the same numbers.
//!
//! Every video has a row without counters that describes it, then one for each snapshot; an account describes itself in
//! the row of its latest snapshot. A page of records is in memory at a time, and the ids of all videos of its accounts.

mod table;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use uuid::Uuid;

use self::table::{Cell, Columns, Kind, Table};
use crate::app::Databases;
use crate::model::counters::Counters;
use crate::model::latest::{AccountLatest, LatestValue};
use crate::store;
use crate::store::outbox::visibility;
use crate::store::records::exports::{
    self, AccountSnapshotRow, ExportedAccount, ExportedVideo, VideoSnapshotRow,
};
use crate::store::records::organizations;

pub use self::table::Format;

/// Accounts, and videos, that are read at a time.
const PAGE: u16 = 500;

const ACCOUNT: Columns = &[
    ("platform", Kind::Text),
    ("username", Kind::Text),
    ("observed_at", Kind::Time),
    ("name", Kind::Text),
    ("description", Kind::Text),
    ("is_verified", Kind::Flag),
    ("follower_count", Kind::Whole),
    ("following_count", Kind::Whole),
    ("profile_post_count", Kind::Whole),
    ("category", Kind::Text),
    ("creator", Kind::Text),
];

const VIDEO: Columns = &[
    ("platform", Kind::Text),
    ("username", Kind::Text),
    ("external_id", Kind::Text),
    ("observed_at", Kind::Time),
    ("create_time", Kind::Time),
    ("description", Kind::Text),
    ("media_type", Kind::Text),
    ("duration", Kind::Decimal),
    ("view_count", Kind::Whole),
    ("like_count", Kind::Whole),
    ("comment_count", Kind::Whole),
    ("share_count", Kind::Whole),
    ("saved_count", Kind::Whole),
    ("play_count", Kind::Whole),
    ("ig_play_count", Kind::Whole),
    ("fb_play_count", Kind::Whole),
    ("fb_like_count", Kind::Whole),
];

/// How an export is to be done.
#[derive(Debug, Clone)]
pub struct Options {
    pub format: Format,
    /// The folder that gets the files.
    pub output: PathBuf,
    /// Whether to draw a progress bar on standard error.
    pub progress: bool,
}

/// What an export did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub accounts: u64,
    pub videos: u64,
    pub account_rows: u64,
    pub video_rows: u64,
    /// Accounts and videos that no row can name, as [`Exporter::unnamed`] says.
    pub left_out: u64,
    pub files: Vec<PathBuf>,
}

/// Why an export failed. It leaves no file then, and those of an earlier one as they are.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
}

/// Writes what the organization had when this began; what is committed meanwhile may be in it or not.
pub async fn write(stores: &Databases, organization: Uuid, options: &Options) -> Result<Summary, Error> {
    organizations::require(&stores.pg, organization).await?;
    table::make_folder(&options.output)?;
    let table = |name: &str, columns| {
        let path = options.output.join(name).with_extension(options.format.extension());
        Table::create(path, options.format, columns)
    };
    let (accounts, videos) = (table("accounts", ACCOUNT)?, table("videos", VIDEO)?);
    let bar = progress_bar(options.progress, exports::count_videos(&stores.pg, organization).await?);
    bar.set_message("waiting until everything committed is in the history");
    visibility::wait_for_history(&stores.pg, organization).await?;
    bar.set_message("");
    let summary = Summary::default();
    let mut exporter = Exporter { stores, organization, accounts, videos, bar, summary };
    exporter.on_accounts().await?;
    exporter.alone().await?;
    exporter.finish()
}

fn progress_bar(shown: bool, videos: i64) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(videos.max(0).cast_unsigned());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} videos {elapsed} {msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

struct Exporter<'a> {
    stores: &'a Databases,
    organization: Uuid,
    accounts: Table,
    videos: Table,
    bar: ProgressBar,
    summary: Summary,
}

impl Exporter<'_> {
    /// Exports all accounts with their videos.
    async fn on_accounts(&mut self) -> Result<(), Error> {
        let (mut username, mut id) = (String::new(), Uuid::nil());
        loop {
            let page =
                exports::fetch_accounts(&self.stores.pg, self.organization, (&username, id), PAGE.into())
                    .await?;
            let Some(last) = page.last() else { return Ok(()) };
            (username, id) = (last.username.clone(), last.id);
            let subjects = page.iter().map(|account| account.subject_id).collect();
            let snapshots =
                exports::fetch_account_snapshots(&self.stores.clickhouse, self.organization, &subjects)
                    .await?;
            let mut rest = page.as_slice();
            while !rest.is_empty() {
                // As many accounts as have a page of videos between them.
                let mut videos = 0;
                let some = rest
                    .iter()
                    .take_while(|account| {
                        let fits = videos < i64::from(PAGE);
                        videos += account.total_post_count;
                        fits
                    })
                    .count();
                let (group, others) = rest.split_at(some);
                self.group(group, &snapshots).await?;
                rest = others;
            }
        }
    }

    async fn group(
        &mut self,
        group: &[ExportedAccount],
        snapshots: &HashMap<i64, Vec<AccountSnapshotRow>>,
    ) -> Result<(), Error> {
        let accounts: HashMap<Uuid, &ExportedAccount> =
            group.iter().map(|account| (account.id, account)).collect();
        let ids: Vec<_> = accounts.keys().copied().collect();
        let mut seen: HashMap<Uuid, DateTime<Utc>> = HashMap::new();
        let videos = exports::fetch_video_ids(&self.stores.pg, self.organization, &ids).await?;
        for some in videos.chunks(PAGE.into()) {
            let page = exports::fetch_account_videos(&self.stores.pg, self.organization, &ids, some).await?;
            for video in &page {
                let latest = video.account_id.zip(video.observed_at);
                if let Some((account, at)) = latest {
                    let latest = seen.entry(account).or_insert(at);
                    *latest = at.max(*latest);
                }
            }
            self.page(&page, &accounts).await?;
        }
        for account in group {
            let none = Vec::new();
            let snapshots = snapshots.get(&account.subject_id).unwrap_or(&none);
            self.account(account, snapshots, seen.get(&account.id).copied())?;
        }
        Ok(())
    }

    /// Exports the videos that stand on no account.
    async fn alone(&mut self) -> Result<(), Error> {
        let mut after = (DateTime::<Utc>::MIN_UTC, Uuid::nil());
        // The earliest time that Postgres knows is later.
        after.0 = DateTime::from_timestamp(-200_000_000_000, 0).unwrap_or(after.0);
        loop {
            let page =
                exports::fetch_individual_videos(&self.stores.pg, self.organization, after, PAGE.into())
                    .await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = (last.tracked_at.unwrap_or(after.0), last.id);
            self.page(&page, &HashMap::new()).await?;
        }
    }

    async fn page(
        &mut self,
        page: &[ExportedVideo],
        accounts: &HashMap<Uuid, &ExportedAccount>,
    ) -> Result<(), Error> {
        let snapshots =
            exports::fetch_video_snapshots(&self.stores.clickhouse, self.organization, page).await?;
        for video in page {
            let none = Vec::new();
            let account = video.account_id.and_then(|id| accounts.get(&id)).copied();
            self.video(video, account, snapshots.get(&video.internal_id).unwrap_or(&none))?;
        }
        self.bar.inc(page.len() as u64);
        Ok(())
    }

    /// Notes a record that no row can name: a video whose platform id is not known yet, and an account whose username
    /// is another tracked account's now, with its videos.
    fn unnamed(&mut self) {
        self.summary.left_out += 1;
    }

    fn account(
        &mut self,
        account: &ExportedAccount,
        snapshots: &[AccountSnapshotRow],
        videos_seen: Option<DateTime<Utc>>,
    ) -> Result<(), Error> {
        if account.username_is_reused {
            self.unnamed();
            return Ok(());
        }
        self.summary.accounts += 1;
        let latest = account.latest();
        let says_nothing =
            latest == AccountLatest::default() && account.category.is_none() && account.creator.is_none();
        if says_nothing && snapshots.is_empty() && videos_seen.is_some() {
            // Its videos name it.
            return Ok(());
        }
        let name = latest.name.get().map(String::as_str);
        let description = latest.description.get().map(String::as_str);
        let verified = latest.is_verified.get().copied();
        let mut row = |at, [followers, following, posts]: [Option<i64>; 3], described: bool| {
            self.accounts.add(&[
                Cell::Text(Some(account.platform.as_str())),
                Cell::Text(Some(&account.username)),
                Cell::Time(Some(at)),
                Cell::Text(name.filter(|_| described)),
                Cell::Text(description.filter(|_| described)),
                Cell::Flag(verified.filter(|_| described)),
                Cell::Whole(followers),
                Cell::Whole(following),
                Cell::Whole(posts),
                Cell::Text(account.category.as_deref().filter(|_| described)),
                Cell::Text(account.creator.as_deref().filter(|_| described)),
            ])
        };
        let figures =
            |row: &AccountSnapshotRow| [row.follower_count, row.following_count, row.profile_post_count];
        for (at, figures) in unsaid(
            &[latest.follower_count, latest.following_count, latest.profile_post_count],
            snapshots.iter().map(figures),
        ) {
            row(at, figures, false)?;
        }
        for (n, snapshot) in snapshots.iter().enumerate() {
            row(snapshot.observed_at, figures(snapshot), n + 1 == snapshots.len())?;
        }
        if snapshots.is_empty() {
            // Any row of an account is an observation: on a day on which one of its videos was observed it adds none.
            row(videos_seen.unwrap_or(account.added_at), [None; 3], true)?;
        }
        Ok(())
    }

    fn video(
        &mut self,
        video: &ExportedVideo,
        account: Option<&ExportedAccount>,
        snapshots: &[VideoSnapshotRow],
    ) -> Result<(), Error> {
        let Some(external_id) = &video.external_id else {
            self.unnamed();
            return Ok(());
        };
        if account.is_some_and(|account| account.username_is_reused) {
            self.unnamed();
            return Ok(());
        }
        self.summary.videos += 1;
        let username = account.map(|account| account.username.as_str());
        let mut row = |username, at, counters: [Option<i64>; 9], described: bool| {
            let [views, likes, comments, shares, saves, plays, ig_plays, fb_plays, fb_likes] = counters;
            self.videos.add(&[
                Cell::Text(Some(video.platform.as_str())),
                Cell::Text(username),
                Cell::Text(Some(external_id)),
                Cell::Time(Some(at)),
                Cell::Time(video.create_time.filter(|_| described)),
                Cell::Text(video.description.as_deref().filter(|_| described)),
                Cell::Text(video.media_type.as_deref().filter(|_| described)),
                Cell::Decimal(video.duration.filter(|_| described)),
                Cell::Whole(views),
                Cell::Whole(likes),
                Cell::Whole(comments),
                Cell::Whole(shares),
                Cell::Whole(saves),
                Cell::Whole(plays),
                Cell::Whole(ig_plays),
                Cell::Whole(fb_plays),
                Cell::Whole(fb_likes),
            ])
        };
        let described_at = video.observed_at.unwrap_or(video.added_at);
        row(username, described_at, [None; 9], true)?;
        if username.is_some() && video.is_tracked {
            // It is tracked on its own as well.
            row(None, described_at, [None; 9], false)?;
        }
        let latest = video.latest();
        let known = [
            latest.view_count,
            latest.like_count,
            latest.comment_count,
            latest.share_count,
            latest.saved_count,
            latest.play_count,
            latest.ig_play_count,
            latest.fb_play_count,
            latest.fb_like_count,
        ];
        let counters = |row: &VideoSnapshotRow| {
            std::array::from_fn(|counter| row.counters.get(counter).copied().flatten())
        };
        for (at, counters) in unsaid(&known, snapshots.iter().map(counters)) {
            row(username, at, counters, false)?;
        }
        for snapshot in snapshots {
            let counters = Counters::from_array(counters(snapshot));
            if !counters.is_empty() {
                row(username, snapshot.observed_at, counters.to_array(), false)?;
            }
        }
        Ok(())
    }

    /// Gives the files their names, both or none.
    fn finish(mut self) -> Result<Summary, Error> {
        self.accounts.complete()?;
        self.videos.complete()?;
        self.summary.account_rows = self.accounts.rows;
        self.summary.video_rows = self.videos.rows;
        self.summary.files = vec![self.accounts.publish()?, self.videos.publish()?];
        self.bar.finish_and_clear();
        Ok(self.summary)
    }
}

/// What is last known and no snapshot says, by its time: a counter of which only an observation told that a later one of
/// the same day replaced.
fn unsaid<const N: usize>(
    known: &[LatestValue<i64>; N],
    snapshots: impl Iterator<Item = [Option<i64>; N]>,
) -> BTreeMap<DateTime<Utc>, [Option<i64>; N]> {
    let mut said = [None; N];
    for snapshot in snapshots {
        for (said, value) in said.iter_mut().zip(snapshot) {
            *said = value.or(*said);
        }
    }
    let mut unsaid = BTreeMap::new();
    for (n, last) in known.iter().enumerate() {
        if let (Some(value), Some(at)) = (last.get().copied(), last.at())
            && said[n] != Some(value)
        {
            unsaid.entry(at).or_insert([None; N])[n] = Some(value);
        }
    }
    unsaid
}
