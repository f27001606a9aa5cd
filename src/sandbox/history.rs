//! A past for the demo: daily snapshots of the population's first accounts, as files for `tidemark import`.
//!
//! The numbers come from the same functions that the sandbox's server answers with, so whoever imports the past
//! and then tracks the same accounts sees one unbroken curve.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;

use super::population::{Population, SimulatedAccount, SimulatedPost, graph_counters};
use super::rng::SeededRng;
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// The newest posts of each account that its history holds.
pub const POSTS_PER_ACCOUNT: usize = 50;

/// Which counters of Instagram's posts the history holds: as many as the source that will track them reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum InstagramCounters {
    /// Views, likes and comments, as the Graph API does.
    #[default]
    Graph,
    /// Everything that the sandbox knows, as the `http` source does.
    Http,
}

/// Which past is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryOptions {
    /// How many of the population's accounts, from the first.
    pub accounts: usize,
    pub days: u32,
    /// The last day of the history.
    pub until: NaiveDate,
    pub instagram: InstagramCounters,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistorySummary {
    pub accounts: usize,
    pub creators: usize,
    pub videos: usize,
    pub account_rows: u64,
    pub video_rows: u64,
    pub files: Vec<PathBuf>,
}

const VIDEO_COLUMNS: [&str; 8] = [
    "platform",
    "username",
    "external_id",
    "observed_at",
    "create_time",
    "description",
    "media_type",
    "duration",
];
const ACCOUNT_COLUMNS: [&str; 11] = [
    "platform",
    "username",
    "observed_at",
    "name",
    "description",
    "is_verified",
    "follower_count",
    "following_count",
    "profile_post_count",
    "category",
    "creator",
];

/// Writes `accounts.csv` and `videos.csv` into a directory, which is made when missing.
pub fn write_history(
    population: &Population,
    options: &HistoryOptions,
    directory: &Path,
) -> io::Result<HistorySummary> {
    fs::create_dir_all(directory)?;
    let paths = [directory.join("accounts.csv"), directory.join("videos.csv")];
    let mut accounts = BufWriter::with_capacity(1 << 20, File::create(&paths[0])?);
    let mut videos = BufWriter::with_capacity(1 << 20, File::create(&paths[1])?);
    let mut summary = write_rows(population, options, &mut accounts, &mut videos)?;
    for file in [accounts, videos] {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    }
    summary.files = paths.into();
    Ok(summary)
}

/// Writes the account rows and the video rows as CSV.
pub fn write_rows(
    population: &Population,
    options: &HistoryOptions,
    account_rows: impl Write,
    video_rows: impl Write,
) -> io::Result<HistorySummary> {
    let mut account_rows = csv::Writer::from_writer(account_rows);
    let mut video_rows = csv::Writer::from_writer(video_rows);
    account_rows.write_record(ACCOUNT_COLUMNS)?;
    video_rows.write_record(VIDEO_COLUMNS.iter().chain(&Counters::NAMES))?;
    let mut summary = HistorySummary {
        accounts: 0,
        creators: 0,
        videos: 0,
        account_rows: 0,
        video_rows: 0,
        files: Vec::new(),
    };
    let mut creators = std::collections::HashSet::new();
    for account in population.accounts().iter().take(options.accounts) {
        let observations = observations(account, options);
        let Some(&(last, _)) = observations.last() else { continue };
        summary.accounts += 1;
        creators.insert(account.creator.as_str());
        for (time, text) in &observations {
            write_account(&mut account_rows, account, options.instagram, *time, text, *time == last)?;
            summary.account_rows += 1;
        }
        for post in posts(account, options, last) {
            summary.videos += 1;
            for (time, text) in observations.iter().filter(|(time, _)| post.create_time <= *time) {
                write_video(&mut video_rows, account, &post, options.instagram, *time, text, *time == last)?;
                summary.video_rows += 1;
            }
        }
    }
    summary.creators = creators.len();
    account_rows.flush()?;
    video_rows.flush()?;
    Ok(summary)
}

/// When an account was observed: once a day, at an hour of its own that wanders by some minutes.
fn observations(account: &SimulatedAccount, options: &HistoryOptions) -> Vec<(DateTime<Utc>, String)> {
    let hour = SeededRng::new(0, &[4, account.index as u64]).below(22 * 3600);
    (0..options.days)
        .rev()
        .filter_map(|back| options.until.checked_sub_days(Days::new(u64::from(back))))
        .map(|day| {
            let minutes =
                SeededRng::new(0, &[5, account.index as u64, day.to_epoch_days() as u64]).below(3600);
            let time = day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::seconds((hour + minutes) as i64);
            (time, time.to_rfc3339_opts(SecondsFormat::Secs, true))
        })
        .filter(|(time, _)| *time >= account.began)
        .collect()
}

/// The fifty newest posts at the end, and whatever else was published since the first day.
fn posts(
    account: &SimulatedAccount,
    options: &HistoryOptions,
    last: DateTime<Utc>,
) -> impl Iterator<Item = SimulatedPost> {
    let first_day = options.until - TimeDelta::days(i64::from(options.days) - 1);
    account
        .posts_at(last)
        .enumerate()
        .take_while(move |(place, post)| {
            *place < POSTS_PER_ACCOUNT || post.create_time.date_naive() >= first_day
        })
        .map(|(_, post)| post)
}

/// Writes one row; the words stand in the last row only, for the latest observation decides them.
fn write_account(
    rows: &mut csv::Writer<impl Write>,
    account: &SimulatedAccount,
    instagram: InstagramCounters,
    time: DateTime<Utc>,
    observed_at: &str,
    last: bool,
) -> io::Result<()> {
    let profile = account.profile_at(time);
    let words = |text: &'static str| if last { text } else { "" };
    let own = |text: &String| if last { text.clone() } else { String::new() };
    rows.write_record([
        account.platform.as_str(),
        &account.username,
        observed_at,
        &own(&account.name),
        &own(&account.bio),
        // Business Discovery does not say who is verified.
        match (account.platform, instagram) {
            (Platform::Instagram, InstagramCounters::Graph) => "",
            _ => words(if account.is_verified { "true" } else { "false" }),
        },
        &profile.follower_count.to_string(),
        &profile.following_count.to_string(),
        &profile.post_count.to_string(),
        words(account.category),
        &own(&account.creator),
    ])?;
    Ok(())
}

/// Writes one row; see [`write_account`].
fn write_video(
    rows: &mut csv::Writer<impl Write>,
    account: &SimulatedAccount,
    post: &SimulatedPost,
    instagram: InstagramCounters,
    time: DateTime<Utc>,
    observed_at: &str,
    last: bool,
) -> io::Result<()> {
    let counters = match (account.platform, instagram) {
        (Platform::Instagram, InstagramCounters::Graph) => graph_counters(post.counters_at(time)),
        _ => post.counters_at(time),
    };
    for text in [account.platform.as_str(), &account.username, &post.id, observed_at] {
        rows.write_field(text)?;
    }
    rows.write_field(post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true))?;
    rows.write_field(if last { post.caption.as_str() } else { "" })?;
    rows.write_field(if last { post.media_type } else { "" })?;
    match post.duration {
        // The Graph API does not say how long a reel is.
        Some(seconds)
            if last && (account.platform, instagram) != (Platform::Instagram, InstagramCounters::Graph) =>
        {
            rows.write_field(seconds.to_string())?
        }
        _ => rows.write_field("")?,
    }
    for counter in counters.to_array() {
        match counter {
            Some(count) => rows.write_field(count.to_string())?,
            None => rows.write_field("")?,
        }
    }
    rows.write_record(None::<&[u8]>)?;
    Ok(())
}
