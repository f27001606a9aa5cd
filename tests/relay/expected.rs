//! The expected data of an organization: what the sandbox has served of its accounts and videos, and the records that
//! requests have changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use harness::{Organization, SandboxAccount};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::{History, Ids, PLATFORMS, Random, Video};
use crate::recovery::wait_recovered;
use crate::served::Served;

/// How many days of posts the first scrape and later ones read at least.
const FIRST_READ_DAYS: i64 = 365;
const READ_DAYS: i64 = 14;

pub(crate) struct ExpectedOrganization {
    pub(crate) organization: Organization,
    /// Accounts to track from the first day.
    pub(crate) to_track: Vec<SandboxAccount>,
    pub(crate) history: History,
    pub(crate) ids: Ids,
    pub(crate) creators: Vec<(Uuid, String)>,
    /// Former names, under which search must not find a creator.
    pub(crate) unused_names: Vec<String>,
    /// Creators by the ids of their accounts.
    pub(crate) links: HashMap<Uuid, Uuid>,
    /// External ids of individually tracked posts.
    pub(crate) tracked: BTreeSet<String>,
    /// Captions by the ids of scraped posts.
    captions: BTreeMap<Uuid, String>,
}

impl ExpectedOrganization {
    pub(crate) fn new(organization: Organization, to_track: Vec<SandboxAccount>) -> Self {
        ExpectedOrganization {
            organization,
            to_track,
            history: History::default(),
            ids: Ids { accounts: Vec::new(), creators: Vec::new(), videos: Vec::new() },
            creators: Vec::new(),
            unused_names: Vec::new(),
            links: HashMap::new(),
            tracked: BTreeSet::new(),
            captions: BTreeMap::new(),
        }
    }

    /// Tracks an account of the sandbox.
    pub(crate) async fn track(&mut self, account: &SandboxAccount) {
        let body = json!({"platform": account.platform, "username": account.username});
        let created = self.organization.post("/accounts", body).await.ok(201);
        self.add_account(account, parse_id(created.at("/data/id")));
    }

    pub(crate) fn add_account(&mut self, account: &SandboxAccount, id: Uuid) {
        let index = self.history.account(find_platform(&account.platform), &account.username, None);
        self.history.accounts[index].is_active = true;
        self.ids.accounts.push(id);
    }

    /// Deletes an account; its individually tracked posts stay.
    pub(crate) fn delete_account(&mut self, index: usize) {
        self.links.remove(&self.ids.accounts[index]);
        self.history.delete(&mut self.ids, index);
    }

    /// A random post of a scraped account, with its views.
    pub(crate) fn random_post(&self, random: &mut Random) -> Option<(SandboxAccount, String, i64)> {
        let posts: Vec<_> = self
            .history
            .videos
            .iter()
            .filter_map(|video| {
                let account = &self.history.accounts[video.account?];
                let views = video.snapshots.values().next_back()?.1[0]?;
                let account = SandboxAccount {
                    platform: account.platform.to_owned(),
                    username: account.username.clone(),
                };
                self.has_caption(&video.external_id).then(|| (account, video.external_id.clone(), views))
            })
            .collect();
        (!posts.is_empty()).then(|| posts[random.below(posts.len() as i64) as usize].clone())
    }

    fn has_caption(&self, external_id: &str) -> bool {
        let videos = self.history.videos.iter().zip(&self.ids.videos);
        videos
            .filter(|(video, _)| video.external_id == external_id)
            .any(|(_, (id, _))| self.captions.contains_key(id))
    }

    /// All entries of a list of the API.
    pub(crate) async fn fetch_list(&self, path: &str) -> Vec<Value> {
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = wait_recovered(&format!("{path} is listed"), async || {
                let request =
                    self.organization.request(reqwest::Method::GET, path).query(&[("limit", "200")]);
                let request =
                    cursor.iter().fold(request, |request, cursor| request.query(&[("cursor", cursor)]));
                let response = request.send().await.ok()?;
                (response.status() == 200).then_some(())?;
                response.json::<Value>().await.ok()
            })
            .await;
            entries.extend_from_slice(page["data"].as_array().expect("the response is a list"));
            cursor = page["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return entries;
            }
        }
    }

    /// Accounts and individually tracked videos that the service has not scraped on a day.
    pub(crate) async fn fetch_unscraped(&self, day: NaiveDate) -> Vec<Value> {
        let accounts = self.fetch_list("/accounts?is_active=true").await;
        let targets = accounts.into_iter().chain(self.fetch_list("/videos?is_active=true").await);
        targets.filter(|target| scraped_at(target).is_none_or(|at| at.date_naive() != day)).collect()
    }

    /// Records the scrapes of a day, all of which have to be done: the service only says when it scraped, the values are
    /// those served at that time.
    pub(crate) async fn record_scrapes(&mut self, served: &Served, day: NaiveDate) {
        let profiles = self.fetch_list("/accounts").await;
        assert_eq!(profiles.len(), self.ids.accounts.len(), "accounts of {}", self.organization.id);
        let mut posts: BTreeMap<_, _> = BTreeMap::new();
        for path in ["/account-videos", "/videos"] {
            let listed = self.fetch_list(path).await;
            posts.extend(listed.into_iter().map(|post| (post["internal_id"].as_i64().unwrap(), post)));
        }
        for profile in &profiles {
            self.record_profile(served, profile, day);
        }
        for post in posts.values() {
            self.record_post(served, post, day);
        }
        assert_eq!(posts.len(), self.history.videos.len(), "videos of {}", self.organization.id);
        self.assert_posts_scraped(served);
    }

    fn record_profile(&mut self, served: &Served, profile: &Value, day: NaiveDate) {
        let index = self.account_index(parse_id(&profile["id"]));
        let account = &mut self.history.accounts[index];
        let at = scraped_at(profile);
        assert!(!account.is_active || at.is_some_and(|at| at.date_naive() == day), "{profile}");
        let Some(at) = at else { return };
        let followers = served.followers(account.platform, &account.username, at);
        account.followers.insert(day, (at, Some(followers)));
    }

    fn record_post(&mut self, served: &Served, post: &Value, day: NaiveDate) {
        let id = post["external_id"].as_str().expect("a served post has an id");
        let is_tracked = post["is_tracked"] == true;
        assert_eq!(is_tracked, self.tracked.contains(id), "{post}");
        let Some(at) = scraped_at(post) else { return };
        assert!(!is_tracked || post["is_active"] == false || at.date_naive() == day, "{post}");
        let account =
            (!post["account_id"].is_null()).then(|| self.account_index(parse_id(&post["account_id"])));
        let ids = (parse_id(&post["id"]), post["internal_id"].as_i64().unwrap());
        let index = self.find_or_add_video(id, post["platform"].as_str().unwrap(), ids, account);
        assert_eq!(self.ids.videos[index], ids, "one row per post");
        let video = &mut self.history.videos[index];
        assert_eq!(video.account, account, "account of {id}");
        video.is_tracked = is_tracked;
        let last = video.snapshots.values().next_back();
        if last.is_some_and(|(recorded_at, _)| *recorded_at == at) {
            return;
        }
        let served = served.post(id, at);
        let mut counts = served.counts;
        if video.platform == "tiktok" {
            // TikTok counts plays as views.
            counts[5] = counts[0];
        }
        video.posted = Some(served.create_time.date_naive());
        video.snapshots.insert(at.date_naive(), (at, counts));
        self.captions.insert(ids.0, served.caption.clone());
    }

    fn account_index(&self, id: Uuid) -> usize {
        self.ids.accounts.iter().position(|other| *other == id).expect("the account was added")
    }

    fn find_or_add_video(
        &mut self,
        external_id: &str,
        platform: &str,
        ids: (Uuid, i64),
        account: Option<usize>,
    ) -> usize {
        let found = self.history.videos.iter().position(|video| video.external_id == external_id);
        found.unwrap_or_else(|| {
            self.history.videos.push(Video {
                platform: find_platform(platform),
                external_id: external_id.to_owned(),
                account,
                is_tracked: false,
                posted: None,
                snapshots: Default::default(),
            });
            self.ids.videos.push(ids);
            self.history.videos.len() - 1
        })
    }

    /// Asserts that the last scrape of each account recorded the posts that it has to read.
    fn assert_posts_scraped(&self, served: &Served) {
        let recorded: HashMap<&str, DateTime<Utc>> = self
            .history
            .videos
            .iter()
            .filter_map(|video| Some((video.external_id.as_str(), video.snapshots.values().next_back()?.0)))
            .collect();
        for account in self.history.accounts.iter().filter(|account| account.is_active) {
            let (at, _) = account.followers.values().next_back().expect("the account was scraped");
            let days = if account.followers.len() == 1 { FIRST_READ_DAYS } else { READ_DAYS };
            let oldest = at.date_naive() - TimeDelta::days(days);
            let posts: Vec<_> = served.posts_of(account.platform, &account.username, *at).collect();
            assert!(!posts.is_empty(), "@{} was scraped at {at} without posts", account.username);
            for (id, _) in posts.into_iter().filter(|(_, create_time)| create_time.date_naive() >= oldest) {
                assert_eq!(recorded.get(id), Some(at), "post {id} of @{}", account.username);
            }
        }
    }

    /// The history with the current creators and links.
    pub(crate) fn with_creators(&self) -> (History, Ids) {
        let mut history = self.history.clone();
        history.creators = self.creators.iter().map(|(_, name)| name.clone()).collect();
        for (account, id) in history.accounts.iter_mut().zip(&self.ids.accounts) {
            let creator = self.links.get(id);
            account.creator = creator.and_then(|id| self.creators.iter().position(|(other, _)| other == id));
        }
        let ids = Ids {
            accounts: self.ids.accounts.clone(),
            creators: self.creators.iter().map(|(id, _)| *id).collect(),
            videos: self.ids.videos.clone(),
        };
        (history, ids)
    }

    /// Asserts that ClickHouse has each observation once, and no other.
    pub(crate) async fn assert_snapshots(&self, history: &History) {
        let clickhouse = &self.organization.stack.databases.clickhouse;
        for (table, expected) in [
            ("video_snapshots", history.videos.iter().map(|video| video.snapshots.len()).sum::<usize>()),
            ("account_snapshots", history.accounts.iter().map(|account| account.followers.len()).sum()),
        ] {
            let statement = format!("select count() from {table} final where org_id = {{org:UUID}}");
            let query = clickhouse.query(&statement).param("org", self.organization.id);
            assert_eq!(query.fetch_one::<u64>().await.unwrap(), expected as u64, "{table}");
        }
    }

    /// Asserts that search finds each record by its current name only.
    pub(crate) async fn assert_search(&self) {
        for (id, name) in &self.creators {
            self.assert_found("creators", name, BTreeSet::from([*id])).await;
        }
        for name in &self.unused_names {
            self.assert_found("creators", name, BTreeSet::new()).await;
        }
        for (account, id) in self.history.accounts.iter().zip(&self.ids.accounts) {
            let matching: BTreeSet<_> = self
                .history
                .accounts
                .iter()
                .zip(&self.ids.accounts)
                .filter(|(other, _)| other.username.contains(&account.username))
                .map(|(_, id)| *id)
                .collect();
            assert!(matching.contains(id));
            self.assert_found("accounts", &account.username, matching).await;
        }
        for caption in self.captions.values().step_by(11) {
            let q: String = caption.chars().take(40).collect();
            let q = q.trim();
            let live: BTreeSet<_> = self.ids.videos.iter().map(|(id, _)| *id).collect();
            let matching = self
                .captions
                .iter()
                .filter(|(id, other)| live.contains(id) && other.to_lowercase().contains(&q.to_lowercase()));
            let matching: BTreeSet<_> = matching.map(|(id, _)| *id).collect();
            // A section has at most 25 items.
            if matching.len() <= 25 {
                self.assert_found("videos", q, matching).await;
            }
        }
    }

    async fn assert_found(&self, section: &str, q: &str, expected: BTreeSet<Uuid>) {
        let mut last = Value::Null;
        let state = format!("{q:?} finds {section} {expected:?}");
        wait_recovered(&state, async || {
            let request = self.organization.request(reqwest::Method::GET, "/search");
            let response = request.query(&[("q", q), ("limit", "25")]).send().await.ok()?;
            last = response.json().await.ok()?;
            let items = last["data"][section].as_array()?.iter();
            let found: BTreeSet<Uuid> =
                items.map(|item| item["id"].as_str().unwrap().parse().unwrap()).collect();
            (found == expected).then_some(())
        })
        .await;
    }
}

fn scraped_at(record: &Value) -> Option<DateTime<Utc>> {
    record["last_scrape_time"].as_str().map(|time| time.parse().expect("a time"))
}

fn find_platform(name: &str) -> &'static str {
    PLATFORMS.into_iter().find(|platform| *platform == name).expect("a platform")
}

fn parse_id(value: &Value) -> Uuid {
    value.as_str().expect("an id").parse().expect("a UUID")
}
