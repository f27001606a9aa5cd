//! Writes history for the demo: daily snapshots of the population's first accounts, as CSV files for `tidemark import`.
//!
//! The server of the sandbox computes its numbers with the same functions, so imported history and later scrapes lie on
//! one curve.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;

use super::population::{Population, SimulatedAccount, SimulatedPost, graph_counters};
use super::rng::SeededRng;
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// How many of each account's newest posts are written at least.
const MIN_POSTS_PER_ACCOUNT: usize = 50;
/// The random streams of an account's hour and of a day's jitter.
const HOUR_STREAM: u64 = 4;
const JITTER_STREAM: u64 = 5;

/// Which counters of Instagram's posts are written; those of the source that will track them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum InstagramCounters {
    /// Views, likes and comments, as in the Graph API
    #[default]
    Graph,
    /// All counters, as in the http source
    Http,
}

/// Which history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryOptions {
    /// The first so many accounts of the population.
    pub accounts: usize,
    pub days: u32,
    /// The last day.
    pub until: NaiveDate,
    pub instagram: InstagramCounters,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HistorySummary {
    pub accounts: usize,
    pub creators: usize,
    pub videos: usize,
    pub account_rows: u64,
    pub video_rows: u64,
    pub files: Vec<PathBuf>,
}

const ACCOUNT_COLUMNS: &str = "platform,username,observed_at,name,description,is_verified,follower_count,\
                               following_count,profile_post_count,category,creator";
/// The columns before the counters.
const VIDEO_COLUMNS: &str =
    "platform,username,external_id,observed_at,create_time,description,media_type,duration";

/// Writes `accounts.csv` and `videos.csv` to a directory, which is created if missing.
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
    account_rows.write_record(ACCOUNT_COLUMNS.split(','))?;
    video_rows.write_record(VIDEO_COLUMNS.split(',').chain(Counters::NAMES))?;
    let mut summary = HistorySummary::default();
    let mut creators = HashSet::new();
    for account in population.accounts().iter().take(options.accounts) {
        let observations = observation_times(account, options);
        let Some(last) = observations.last() else { continue };
        summary.accounts += 1;
        creators.insert(account.creator.as_str());
        for observation in &observations {
            write_account(&mut account_rows, account, options.instagram, observation)?;
            summary.account_rows += 1;
        }
        for post in select_posts(account, options, last.time) {
            summary.videos += 1;
            for observation in observations.iter().filter(|observation| post.create_time <= observation.time)
            {
                write_video(&mut video_rows, account, &post, options.instagram, observation)?;
                summary.video_rows += 1;
            }
        }
    }
    summary.creators = creators.len();
    account_rows.flush()?;
    video_rows.flush()?;
    Ok(summary)
}

struct ObservationTime {
    time: DateTime<Utc>,
    /// `time` as it is written.
    text: String,
    is_last: bool,
}

impl ObservationTime {
    /// Texts are in the last row only: an import stores the latest value.
    fn if_last<'a>(&self, text: &'a str) -> &'a str {
        if self.is_last { text } else { "" }
    }
}

/// Returns the times of the daily observations of an account, at an hour of its own with up to an hour of jitter.
fn observation_times(account: &SimulatedAccount, options: &HistoryOptions) -> Vec<ObservationTime> {
    let index = account.index as u64;
    let start = SeededRng::new(0, &[HOUR_STREAM, index]).next_below(22 * 3600);
    let mut observations: Vec<_> = (0..options.days)
        .rev()
        .filter_map(|days| options.until.checked_sub_days(Days::new(u64::from(days))))
        .map(|day| {
            let parts = [JITTER_STREAM, index, day.to_epoch_days() as u64];
            let seconds = start + SeededRng::new(0, &parts).next_below(3600);
            day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::seconds(seconds as i64)
        })
        .filter(|time| *time >= account.created_at)
        .map(|time| {
            let text = time.to_rfc3339_opts(SecondsFormat::Secs, true);
            ObservationTime { time, text, is_last: false }
        })
        .collect();
    if let Some(last) = observations.last_mut() {
        last.is_last = true;
    }
    observations
}

/// Returns the newest posts at the end, and all others that were published since the first day.
fn select_posts(
    account: &SimulatedAccount,
    options: &HistoryOptions,
    end: DateTime<Utc>,
) -> impl Iterator<Item = SimulatedPost> {
    let first_day = options.until - TimeDelta::days(i64::from(options.days) - 1);
    account
        .posts_at(end)
        .enumerate()
        .take_while(move |(index, post)| {
            *index < MIN_POSTS_PER_ACCOUNT || post.create_time.date_naive() >= first_day
        })
        .map(|(_, post)| post)
}

/// Whether only the fields of the Graph API are written.
fn is_graph_only(account: &SimulatedAccount, instagram: InstagramCounters) -> bool {
    account.platform == Platform::Instagram && instagram == InstagramCounters::Graph
}

fn write_account(
    rows: &mut csv::Writer<impl Write>,
    account: &SimulatedAccount,
    instagram: InstagramCounters,
    observation: &ObservationTime,
) -> io::Result<()> {
    let profile = account.profile_at(observation.time);
    let is_verified = if account.is_verified { "true" } else { "false" };
    rows.write_record([
        account.platform.as_str(),
        &account.username,
        &observation.text,
        observation.if_last(&account.name),
        observation.if_last(&account.bio),
        if is_graph_only(account, instagram) { "" } else { observation.if_last(is_verified) },
        &profile.follower_count.to_string(),
        &profile.following_count.to_string(),
        &profile.post_count.to_string(),
        observation.if_last(account.category),
        observation.if_last(&account.creator),
    ])?;
    Ok(())
}

fn write_video(
    rows: &mut csv::Writer<impl Write>,
    account: &SimulatedAccount,
    post: &SimulatedPost,
    instagram: InstagramCounters,
    observation: &ObservationTime,
) -> io::Result<()> {
    let is_graph_only = is_graph_only(account, instagram);
    let create_time = post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let counters = post.counters_at(observation.time);
    let counters = if is_graph_only { graph_counters(counters) } else { counters };
    let counters = counters.to_array().map(|count| count.map(|count| count.to_string()).unwrap_or_default());
    let duration = post.duration.filter(|_| !is_graph_only).map(|seconds| seconds.to_string());
    let fields = [
        account.platform.as_str(),
        &account.username,
        &post.id,
        &observation.text,
        &create_time,
        observation.if_last(&post.caption),
        observation.if_last(post.media_type),
        observation.if_last(duration.as_deref().unwrap_or_default()),
    ];
    rows.write_record(fields.into_iter().chain(counters.iter().map(String::as_str)))?;
    Ok(())
}
