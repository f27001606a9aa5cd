//! Writes history for the demo: daily snapshots of accounts of the population, as CSV files for `tidemark import`.
//!
//! The server of the sandbox computes its numbers with the same functions, so imported history and later scrapes lie on
//! one curve.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;

use super::platform::{Counters, Platform};
use super::population::{Population, SimulatedAccount, SimulatedPost, graph_counters};
use super::rng::SeededRng;

/// How many of each account's newest posts are written at least.
const MIN_POSTS_PER_ACCOUNT: usize = 50;
/// The random streams of an account's hour, of a day's jitter, and of gaps.
const HOUR_STREAM: u64 = 4;
const JITTER_STREAM: u64 = 5;
const GAP_STREAM: u64 = 7;
/// The first accounts are observed on every day. Of the others, one in so many has gaps.
const WITHOUT_GAPS: usize = 10;
const GAPS_EVERY: usize = 9;
/// Which post is written of an account of which only one is, counted from the newest.
const SINGLE_POST: usize = 6;
/// In a period of so many days, at most one gap begins.
const GAP_PERIOD_DAYS: u64 = 24;
/// A post is observed daily until it is so many days old, as the tracker reads it, then weekly. Old posts gain little, and there
/// are many of them.
const DAILY_UNTIL_AGE: i64 = 14;
/// Old posts are observed daily again from a weekly observation of these last days on, half of them from an earlier one. So the
/// last day and the tracker's first one have no gains of a week.
const DAILY_LAST_DAYS: [i64; 2] = [15, 8];

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Indices of accounts of the population.
    pub accounts: Vec<usize>,
    /// Indices of accounts of which only one post is written, as an individually tracked one.
    pub single_posts: Vec<usize>,
    pub days: u32,
    /// The last day.
    pub until: NaiveDate,
    pub instagram: InstagramCounters,
}

/// Numbers of written rows.
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
    for account in options.accounts.iter().map(|index| &population.accounts()[*index]) {
        let observations = observation_times(account, options);
        let Some(last) = observations.last() else { continue };
        summary.accounts += 1;
        creators.extend(account.creator.as_deref());
        for observation in &observations {
            write_account(&mut account_rows, account, options.instagram, observation)?;
            summary.account_rows += 1;
        }
        for post in select_posts(account, options, last.time) {
            summary.videos += 1;
            let username = Some(account.username.as_str());
            summary.video_rows +=
                write_video(&mut video_rows, account, username, &post, options, &observations)?;
        }
    }
    for account in options.single_posts.iter().map(|index| &population.accounts()[*index]) {
        let observations = observation_times(account, options);
        let Some(post) = single_post(account, options.until) else { continue };
        summary.videos += 1;
        summary.video_rows += write_video(&mut video_rows, account, None, &post, options, &observations)?;
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
    /// Whether a post is observed in a history until a day: on the last one each is.
    fn includes(&self, post: &SimulatedPost, until: NaiveDate) -> bool {
        let day = self.time.date_naive();
        let age = (day - post.create_time.date_naive()).num_days();
        let daily_days = DAILY_LAST_DAYS[post.number % 2] - 1 - (until - day).num_days();
        let is_due = age <= DAILY_UNTIL_AGE || age % 7 == 0 || age % 7 <= daily_days;
        post.create_time <= self.time && (is_due || self.is_last)
    }

    /// Texts are in the last row only: an import stores the latest value.
    fn if_last<'a>(&self, text: &'a str) -> &'a str {
        if self.is_last { text } else { "" }
    }
}

/// Whether an account was not observed on a day, although it existed.
fn is_gap(account: &SimulatedAccount, day: NaiveDate) -> bool {
    if account.index < WITHOUT_GAPS || !account.index.is_multiple_of(GAPS_EVERY) {
        return false;
    }
    let day = day.to_epoch_days() as u64;
    let mut rng = SeededRng::new(0, &[GAP_STREAM, account.index as u64, day / GAP_PERIOD_DAYS]);
    let start = rng.next_below(GAP_PERIOD_DAYS);
    rng.next_bool(0.3) && (start..start + 1 + rng.next_below(8)).contains(&(day % GAP_PERIOD_DAYS))
}

/// Returns the times of the daily observations of an account, at an hour of its own with up to an hour of jitter.
fn observation_times(account: &SimulatedAccount, options: &HistoryOptions) -> Vec<ObservationTime> {
    let index = account.index as u64;
    let start = SeededRng::new(0, &[HOUR_STREAM, index]).next_below(22 * 3600);
    let mut observations: Vec<_> = (0..options.days)
        .rev()
        .filter_map(|days| options.until.checked_sub_days(Days::new(u64::from(days))))
        .filter(|day| !is_gap(account, *day))
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

/// Returns the post of an account that is tracked individually, in a history until a day.
pub fn single_post(account: &SimulatedAccount, until: NaiveDate) -> Option<SimulatedPost> {
    account.posts_at(until.and_time(NaiveTime::MIN).and_utc()).nth(SINGLE_POST)
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
        observation.if_last(account.category.unwrap_or_default()),
        observation.if_last(account.creator.as_deref().unwrap_or_default()),
    ])?;
    Ok(())
}

/// Writes the observations of a post, without a username as an individually tracked one. Returns how many there are.
fn write_video(
    rows: &mut csv::Writer<impl Write>,
    account: &SimulatedAccount,
    username: Option<&str>,
    post: &SimulatedPost,
    options: &HistoryOptions,
    observations: &[ObservationTime],
) -> io::Result<u64> {
    let is_graph_only = is_graph_only(account, options.instagram);
    let create_time = post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let duration = post.duration.filter(|_| !is_graph_only).map(|seconds| seconds.to_string());
    let mut written = 0;
    for observation in observations.iter().filter(|observation| observation.includes(post, options.until)) {
        let counters = post.counters_at(observation.time);
        let counters = if is_graph_only { graph_counters(counters) } else { counters };
        let counters =
            counters.to_array().map(|count| count.map(|count| count.to_string()).unwrap_or_default());
        let fields = [
            account.platform.as_str(),
            username.unwrap_or_default(),
            &post.id,
            &observation.text,
            &create_time,
            observation.if_last(&post.caption),
            observation.if_last(post.media_type),
            observation.if_last(duration.as_deref().unwrap_or_default()),
        ];
        rows.write_record(fields.into_iter().chain(counters.iter().map(String::as_str)))?;
        written += 1;
    }
    Ok(written)
}
