//! Reference model of the analytics: plain loops over all observations of an organization, and a generator of histories
//! with gaps, decreases, late counters and days that are observed twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use harness::Organization;
use serde_json::{Map, Value, json};
use tidemark::import::{self, ImportOptions};
use tidemark::model::counters::Counters;
use uuid::Uuid;

pub const PLATFORMS: [&str; 2] = ["instagram", "tiktok"];
pub type Counts = [Option<i64>; 9];
/// The last observation of each day.
pub type DailyValues<T> = BTreeMap<NaiveDate, (DateTime<Utc>, T)>;

#[derive(Debug, Clone)]
pub struct Account {
    pub platform: &'static str,
    pub username: String,
    pub creator: Option<usize>,
    /// Imported accounts are paused.
    pub is_active: bool,
    pub followers: DailyValues<Option<i64>>,
}

#[derive(Debug, Clone)]
pub struct Video {
    pub platform: &'static str,
    pub external_id: String,
    /// Index of the account it was found on, if any.
    pub account: Option<usize>,
    pub is_tracked: bool,
    pub posted: Option<NaiveDate>,
    pub snapshots: DailyValues<Counts>,
}

/// An organization's history.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub creators: Vec<String>,
    pub accounts: Vec<Account>,
    pub videos: Vec<Video>,
    /// The rows to import.
    pub rows: Vec<Value>,
    /// The first day with history, if retention is limited.
    pub since: Option<NaiveDate>,
}

/// The ids that the service assigned.
pub struct Ids {
    pub accounts: Vec<Uuid>,
    pub creators: Vec<Uuid>,
    pub videos: Vec<(Uuid, i64)>,
}

/// Records a value unless the day has a later one.
pub fn record<T>(values: &mut DailyValues<T>, at: DateTime<Utc>, value: T) {
    let day = at.date_naive();
    if values.get(&day).is_none_or(|(latest, _)| *latest < at) {
        values.insert(day, (at, value));
    }
}

/// The last value that was reported by the end of a day.
fn last_value<T>(
    values: &DailyValues<T>,
    until: NaiveDate,
    value: impl Fn(&T) -> Option<i64>,
) -> Option<i64> {
    values.range(..=until).rev().find_map(|(_, (_, latest))| value(latest))
}

pub fn sum_known(values: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    values.into_iter().flatten().fold(None, |sum, value| Some(sum.unwrap_or(0) + value))
}

impl History {
    /// Adds an account. The service creates it with its first profile or video.
    pub fn account(&mut self, platform: &'static str, username: &str, creator: Option<usize>) -> usize {
        let username = username.to_owned();
        self.accounts.push(Account {
            platform,
            username,
            creator,
            is_active: false,
            followers: DailyValues::new(),
        });
        self.accounts.len() - 1
    }

    /// Adds a video found on an account, tracked individually, or both, without observations.
    pub fn video(
        &mut self,
        platform: &'static str,
        account: Option<usize>,
        is_tracked: bool,
        posted: Option<NaiveDate>,
    ) -> usize {
        let external_id = format!("{}", 7_000_000 + self.videos.len());
        self.videos.push(Video {
            platform,
            external_id,
            account,
            is_tracked,
            posted,
            snapshots: DailyValues::new(),
        });
        let (number, described) = (self.videos.len() - 1, "2020-01-01T00:00:00Z".parse().unwrap());
        if account.is_some() {
            self.video_row(number, described, [None; 9], true);
        }
        if is_tracked {
            self.video_row(number, described, [None; 9], false);
        }
        number
    }

    fn video_row(&mut self, number: usize, at: DateTime<Utc>, counts: Counts, on_account: bool) {
        let video = &self.videos[number];
        let mut row = json!({
            "platform": video.platform, "external_id": video.external_id, "observed_at": at,
            "create_time": video.posted.map(|day| format!("{day}T21:00:00Z")),
        });
        if let Some(account) = video.account.filter(|_| on_account) {
            row["username"] = json!(self.accounts[account].username);
        }
        for (name, count) in Counters::NAMES.iter().zip(counts) {
            row[*name] = json!(count);
        }
        self.rows.push(row);
    }

    pub fn follow(&mut self, account: usize, at: DateTime<Utc>, followers: Option<i64>) {
        let Account { platform, username, followers: values, .. } = &mut self.accounts[account];
        record(values, at, followers);
        self.rows.push(json!({
            "platform": platform, "username": username, "observed_at": at,
            "follower_count": followers, "profile_post_count": 3,
        }));
    }

    pub fn observe(&mut self, number: usize, at: DateTime<Utc>, mut counts: Counts) {
        let video = &mut self.videos[number];
        if video.platform == "tiktok" {
            counts[5] = counts[0];
        }
        if counts != [None; 9] {
            record(&mut video.snapshots, at, counts);
        }
        // A video of both kinds is imported sometimes as one, sometimes as the other.
        let on_account = !video.is_tracked || at.timestamp() % 2 == 0;
        self.video_row(number, at, counts, on_account);
    }

    /// Imports all rows, creates the creators and links their accounts.
    pub async fn load(&self, organization: &Organization) -> Ids {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let lines: Vec<_> = self.rows.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let (stores, id) = (&organization.stack.databases, organization.id);
        let summary = import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
        assert_eq!((summary.rows_read, summary.refused), (self.rows.len() as u64, 0));
        let ids = async |statement: &'static str| -> HashMap<String, (Uuid, i64)> {
            let rows: Vec<(String, Uuid, i64)> =
                sqlx::query_as(statement).bind(id).fetch_all(&stores.pg).await.unwrap();
            rows.into_iter().map(|(name, id, internal_id)| (name, (id, internal_id))).collect()
        };
        let accounts = ids("select username, id, internal_id from accounts where organization_id = $1").await;
        let videos = ids("select external_id, id, internal_id from videos where organization_id = $1").await;
        let mut creators = Vec::new();
        for name in &self.creators {
            let created = organization.post("/creators", json!({"name": name})).await.ok(201);
            creators.push(created.text("/data/id").parse().unwrap());
        }
        let accounts: Vec<_> = self.accounts.iter().map(|account| accounts[&account.username].0).collect();
        for (account, id) in self.accounts.iter().zip(&accounts) {
            if let Some(creator) = account.creator {
                let creator: Uuid = creators[creator];
                organization.put(&format!("/creators/{creator}/accounts/{id}")).await.ok(201);
            }
        }
        Ids {
            accounts,
            creators,
            videos: self.videos.iter().map(|video| videos[&video.external_id]).collect(),
        }
    }

    pub fn videos_of(&self, account: usize) -> Vec<usize> {
        (0..self.videos.len()).filter(|video| self.videos[*video].account == Some(account)).collect()
    }

    /// Deletes an account as the service does: individually tracked videos stay, with their own history. Returns the ids of
    /// the account and its deleted videos.
    pub fn delete(&mut self, ids: &mut Ids, account: usize) -> Vec<Uuid> {
        let mut deleted = vec![ids.accounts.remove(account)];
        self.accounts.remove(account);
        for number in (0..self.videos.len()).rev() {
            let video = &mut self.videos[number];
            match video.account {
                Some(own) if own == account && video.is_tracked => video.account = None,
                Some(own) if own == account => {
                    self.videos.remove(number);
                    deleted.push(ids.videos.remove(number).0);
                }
                Some(own) if own > account => video.account = Some(own - 1),
                _ => {}
            }
        }
        deleted
    }

    pub fn accounts_of(&self, creator: usize) -> Vec<usize> {
        (0..self.accounts.len()).filter(|account| self.accounts[*account].creator == Some(creator)).collect()
    }

    /// The tracking start: the first observation of the account or any of its videos, or of an individual video.
    fn tracked_since(&self, video: &Video) -> Option<NaiveDate> {
        let first = |video: &Video| video.snapshots.keys().next().copied();
        match video.account {
            None => first(video),
            Some(account) => {
                let profile = self.accounts[account].followers.keys().next().copied();
                let videos =
                    self.videos_of(account).into_iter().filter_map(|other| first(&self.videos[other]));
                videos.chain(profile).min()
            }
        }
    }

    /// Whether a day is within the retention period.
    pub fn is_retained(&self, day: NaiveDate) -> bool {
        self.since.is_none_or(|since| day >= since)
    }

    /// The gain of one counter of one video, both days included.
    fn gain(&self, video: &Video, counter: usize, start: NaiveDate, end: NaiveDate) -> i64 {
        let start = self.since.map_or(start, |since| since.max(start));
        if start > end {
            return 0;
        }
        let at = |until| last_value(&video.snapshots, until, |counts| counts[counter]);
        let Some(last) = at(end) else { return 0 };
        if let Some(before) = at(start - Days::new(1)) {
            return last - before;
        }
        let first_snapshot = video.snapshots.values().next().unwrap().1[counter];
        let first_value = video.snapshots.values().find_map(|(_, counts)| counts[counter]).unwrap();
        let since = self.tracked_since(video);
        let from_zero = video.posted.is_some_and(|posted| since.is_some_and(|since| posted >= since));
        if from_zero && first_snapshot.is_some() { last } else { last - first_value }
    }

    pub fn gains(&self, videos: &[usize], start: NaiveDate, end: NaiveDate) -> [i64; 9] {
        std::array::from_fn(|counter| {
            videos.iter().map(|video| self.gain(&self.videos[*video], counter, start, end)).sum()
        })
    }

    pub fn counts(&self, videos: &[usize], until: NaiveDate) -> Counts {
        if !self.is_retained(until) {
            return [None; 9];
        }
        std::array::from_fn(|counter| {
            sum_known(
                videos
                    .iter()
                    .map(|video| last_value(&self.videos[*video].snapshots, until, |counts| counts[counter])),
            )
        })
    }

    pub fn followers(&self, accounts: &[usize], until: NaiveDate) -> Option<i64> {
        let latest = |account: &usize| last_value(&self.accounts[*account].followers, until, |count| *count);
        sum_known(accounts.iter().filter(|_| self.is_retained(until)).map(latest))
    }

    pub fn follower_gain(&self, account: usize, start: NaiveDate, end: NaiveDate) -> i64 {
        let start = self.since.map_or(start, |since| since.max(start));
        if start > end {
            return 0;
        }
        let values = &self.accounts[account].followers;
        let first = values.values().find_map(|(_, count)| *count);
        let at = |until| last_value(values, until, |count| *count);
        at(end).map_or(0, |last| last - at(start - Days::new(1)).or(first).unwrap())
    }

    /// Whether a video was observed on a day.
    pub fn is_observed(&self, video: usize, day: NaiveDate) -> bool {
        self.is_retained(day) && self.videos[video].snapshots.contains_key(&day)
    }

    /// The day of the observation before one of a day, if both are retained.
    pub fn observed_before(&self, video: usize, day: NaiveDate) -> Option<NaiveDate> {
        let before = self.videos[video].snapshots.range(..day).next_back().map(|(before, _)| *before);
        before.filter(|before| self.is_observed(video, day) && self.is_retained(*before))
    }

    /// The number of subjects that were observed on a day: accounts, and videos without an account.
    pub fn observed(&self, accounts: &[usize], videos: &[usize], day: NaiveDate) -> usize {
        let account_is_observed = |account: usize| {
            self.is_retained(day) && self.accounts[account].followers.contains_key(&day)
                || self.videos_of(account).into_iter().any(|video| self.is_observed(video, day))
        };
        let accounts = accounts.iter().filter(|account| account_is_observed(**account));
        let alone = videos.iter().filter(|video| self.videos[**video].account.is_none());
        accounts.count() + alone.filter(|video| self.is_observed(**video, day)).count()
    }

    /// How many of the videos were posted in a window.
    pub fn new_posts(&self, videos: &[usize], start: NaiveDate, end: NaiveDate) -> usize {
        let posted = videos.iter().filter_map(|video| self.videos[*video].posted);
        posted.filter(|day| (start..=end).contains(day)).count()
    }

    /// The figures of a time series over some days.
    pub fn series_figures(
        &self,
        (accounts, videos): (&[usize], &[usize]),
        start: NaiveDate,
        end: NaiveDate,
    ) -> Value {
        let mut row = figures(self.gains(videos, start, end));
        let [engagement, views] = ["engagement", "views"].map(|name| row[name].as_i64().unwrap() as f64);
        let rate = (engagement * 1e6 / views).round() / 1e6;
        row["engagement_rate"] = json!((views > 0.0).then_some(rate));
        row["followers"] = json!(self.followers(accounts, end));
        row["new_posts"] = json!(self.new_posts(videos, start, end));
        row["observed"] =
            json!(days(start, end).into_iter().map(|day| self.observed(accounts, videos, day)).max());
        row
    }

    /// The time of the latest observation by the end of a day, unless it is before the retention period.
    pub fn as_of(&self, accounts: &[usize], videos: &[usize], until: NaiveDate) -> Value {
        let profiles = accounts.iter().filter_map(|account| {
            self.accounts[*account].followers.range(..=until).next_back().map(|(_, (at, _))| *at)
        });
        let videos = videos.iter().filter_map(|video| {
            self.videos[*video].snapshots.range(..=until).next_back().map(|(_, (at, _))| *at)
        });
        json!(profiles.chain(videos).max().filter(|latest| self.is_retained(latest.date_naive())))
    }
}

/// The figures in totals and time series.
pub fn figures(gains: [i64; 9]) -> Value {
    let [views, likes, comments, shares, _, plays, ..] = gains;
    json!({
        "views": views, "plays": plays, "likes": likes, "comments": comments, "shares": shares,
        "engagement": likes + comments + shares,
    })
}

/// The nine counters as a JSON object.
pub fn counters<T: Into<Value>>(values: [T; 9]) -> Map<String, Value> {
    Counters::NAMES.iter().map(|name| (*name).to_owned()).zip(values.map(Into::into)).collect()
}

pub fn days(start: NaiveDate, end: NaiveDate) -> Vec<NaiveDate> {
    start.iter_days().take_while(|day| *day <= end).collect()
}

/// The seed of a run that is repeated.
pub fn chosen_seed() -> Option<u64> {
    std::env::var("TIDEMARK_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"))
}

/// A seeded pseudo-random number generator (SplitMix64), so that failures can be reproduced.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound as u64) as i64
    }

    /// True in this percentage of calls.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.below(100) < percent
    }
}

/// Generates accounts and videos of every kind with observations on the days up to today.
pub fn random_history(seed: u64, accounts: usize, individual: usize, today: NaiveDate) -> History {
    const SPAN: i64 = 36;
    let mut random = Random(seed);
    let mut history =
        History { creators: ["Zoë", "anna", "Ben"].map(str::to_owned).to_vec(), ..History::default() };
    let mut times = BTreeSet::new();
    let mut moment = |random: &mut Random| loop {
        let day = today - Days::new(random.below(SPAN) as u64);
        let at = day.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(random.below(86_400));
        if times.insert(at) {
            return at;
        }
    };
    for number in 0..accounts {
        let platform = PLATFORMS[number % 2];
        let creator = random.chance(80).then(|| random.below(3) as usize);
        let account = history.account(platform, &format!("account.{number}"), creator);
        for _ in 0..random.below(6) {
            let at = moment(&mut random);
            let followers = random.chance(80).then(|| 1_000 + random.below(300));
            history.follow(account, at, followers);
        }
        for _ in 0..1 + random.below(3) {
            let posted = random.chance(80).then(|| today - Days::new(random.below(SPAN + 20) as u64));
            let is_tracked = random.chance(30);
            history.video(platform, Some(account), is_tracked, posted);
        }
    }
    for number in 0..individual {
        let posted = random.chance(80).then(|| today - Days::new(random.below(SPAN + 20) as u64));
        history.video(PLATFORMS[number % 2], None, true, posted);
    }
    for video in 0..history.videos.len() {
        let reports: [i64; 9] = std::array::from_fn(|_| [0, 60, 90, 100][random.below(4) as usize]);
        for _ in 0..random.below(9) {
            let at = moment(&mut random);
            let counts = std::array::from_fn(|counter| {
                random.chance(reports[counter]).then(|| 500 + 20 * at.timestamp() % 4_000 + random.below(400))
            });
            history.observe(video, at, counts);
        }
    }
    history
}
