//! The expected data of an organization: the history that the sandbox served, checked against the sandbox's counters at the
//! time of each scrape, and the records that requests have changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tidemark::model::counters::Counters;
use tidemark::model::platform::Platform;
use tidemark::sandbox::population::{Population, SimulatedAccount, SimulatedPost, graph_counters};
use uuid::Uuid;

use super::wait_recovered;
use crate::harness::{Organization, SandboxAccount};
use crate::model::{History, Ids, PLATFORMS, Random, Video};

/// How far the sandbox's clock may be ahead of the recorded scrape time: the tracker reads the clock first, and the test moves
/// it by minutes while attempts fail.
const MAX_SERVING_DELAY: TimeDelta = TimeDelta::hours(3);

/// What the sandbox has served of accounts, by their ids.
type ServedPosts = HashMap<Uuid, Vec<SimulatedPost>>;

pub(super) struct ExpectedOrganization {
    pub(super) organization: Organization,
    /// Accounts to track from the first day.
    pub(super) to_track: Vec<SandboxAccount>,
    pub(super) history: History,
    pub(super) ids: Ids,
    pub(super) creators: Vec<(Uuid, String)>,
    /// Former names, under which search must not find a creator.
    pub(super) unused_names: Vec<String>,
    /// Creators by the ids of their accounts.
    pub(super) links: HashMap<Uuid, Uuid>,
    /// External ids of individually tracked posts.
    pub(super) tracked: BTreeSet<String>,
    /// Captions by the ids of scraped posts.
    captions: BTreeMap<Uuid, String>,
}

#[derive(sqlx::FromRow)]
struct Profile {
    id: Uuid,
    follower_count: i64,
    last_scrape_time: Option<DateTime<Utc>>,
}

#[derive(sqlx::FromRow)]
struct Post {
    id: Uuid,
    internal_id: i64,
    platform: String,
    external_id: String,
    account_id: Option<Uuid>,
    is_tracked: bool,
    last_scrape_time: Option<DateTime<Utc>>,
    counts: Vec<Option<i64>>,
}

impl ExpectedOrganization {
    pub(super) fn new(organization: Organization, to_track: Vec<SandboxAccount>) -> Self {
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

    /// A random post of a scraped account, with its views.
    pub(super) fn random_post(&self, random: &mut Random) -> Option<(SandboxAccount, String, i64)> {
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

    /// Records the scrapes since the last call, and asserts that they match what the sandbox served.
    pub(super) async fn record_scrapes(
        &mut self,
        population: &Population,
        fixed_views: &BTreeMap<String, i64>,
    ) {
        let (profiles, posts) = self.fetch_records().await;
        assert_eq!(profiles.len(), self.ids.accounts.len(), "accounts of {}", self.organization.id);
        for profile in profiles {
            self.record_profile(population, &profile);
        }
        let mut served = ServedPosts::new();
        for post in posts {
            self.record_post(population, fixed_views, &post, &mut served);
        }
        self.assert_recent_posts_scraped(&served);
    }

    async fn fetch_records(&self) -> (Vec<Profile>, Vec<Post>) {
        let (pg, organization) = (self.organization.pg(), self.organization.id);
        wait_recovered("postgres responds", async || {
            let profiles: Vec<Profile> = sqlx::query_as(
                "select id, follower_count, last_scrape_time from accounts where organization_id = $1",
            )
            .bind(organization)
            .fetch_all(pg)
            .await
            .ok()?;
            let posts: Vec<Post> = sqlx::query_as(
                "select id, internal_id, platform, external_id, account_id, is_tracked, last_scrape_time,
                    array[view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count,
                        fb_play_count, fb_like_count] as counts
                 from videos where organization_id = $1 order by internal_id",
            )
            .bind(organization)
            .fetch_all(pg)
            .await
            .ok()?;
            Some((profiles, posts))
        })
        .await
    }

    fn record_profile(&mut self, population: &Population, profile: &Profile) {
        let index = self.account_index(profile.id);
        let account = &mut self.history.accounts[index];
        let Some(at) = profile.last_scrape_time else { return };
        let served = |at| {
            simulated_account(population, account.platform, &account.username).profile_at(at).follower_count
        };
        assert_between("followers", profile.follower_count, served(at), served(at + MAX_SERVING_DELAY));
        account.followers.insert(at.date_naive(), (at, Some(profile.follower_count)));
    }

    fn record_post(
        &mut self,
        population: &Population,
        fixed_views: &BTreeMap<String, i64>,
        post: &Post,
        served: &mut ServedPosts,
    ) {
        let Some(at) = post.last_scrape_time else { return };
        let account = post.account_id.map(|id| self.account_index(id));
        let index = self.find_or_add_video(post, account);
        assert_eq!(self.ids.videos[index], (post.id, post.internal_id), "one row per post");
        assert_eq!(self.history.videos[index].account, account, "account of {}", post.external_id);
        assert_eq!(post.is_tracked, self.tracked.contains(&post.external_id), "{}", post.external_id);
        let video = &mut self.history.videos[index];
        video.is_tracked = post.is_tracked;
        let last = video.snapshots.values().next_back().copied();
        if last.is_some_and(|(recorded_at, _)| recorded_at == at) {
            return;
        }
        // Without an account, the post was found on one before and is now only tracked individually.
        let served_post = account.and_then(|account| {
            let account_posts = served.entry(self.ids.accounts[account]).or_insert_with(|| {
                let account = &self.history.accounts[account];
                let account = simulated_account(population, account.platform, &account.username);
                account.posts_at(at + MAX_SERVING_DELAY).collect()
            });
            account_posts.iter().find(|served| served.id == post.external_id)
        });
        let video = &mut self.history.videos[index];
        let mut counts: [Option<i64>; 9] = post.counts.clone().try_into().unwrap();
        if let Some(served) = served_post {
            let fixed = fixed_views.get(&post.external_id).copied();
            assert_served(&mut counts, video.platform, served, at, fixed);
            video.posted = Some(served.create_time.date_naive());
            self.captions.insert(post.id, served.caption.clone());
        } else {
            assert!(account.is_none(), "the sandbox has no {}", post.external_id);
            let last = last.expect("the post was found on an account").1;
            for (count, last) in counts.iter_mut().zip(last) {
                *count = count.filter(|_| last.is_some());
            }
        }
        video.snapshots.insert(at.date_naive(), (at, counts));
    }

    fn account_index(&self, id: Uuid) -> usize {
        self.ids.accounts.iter().position(|other| *other == id).expect("the account was added")
    }

    fn find_or_add_video(&mut self, post: &Post, account: Option<usize>) -> usize {
        let found = self.history.videos.iter().position(|video| video.external_id == post.external_id);
        found.unwrap_or_else(|| {
            self.history.videos.push(Video {
                platform: PLATFORMS.into_iter().find(|platform| *platform == post.platform).unwrap(),
                external_id: post.external_id.clone(),
                account,
                is_tracked: false,
                posted: None,
                snapshots: Default::default(),
            });
            self.ids.videos.push((post.id, post.internal_id));
            self.history.videos.len() - 1
        })
    }

    /// Asserts that the last scrape read all posts of the last 14 days.
    fn assert_recent_posts_scraped(&self, served: &ServedPosts) {
        for (id, posts) in served {
            let (_, (at, _)) =
                self.history.accounts[self.account_index(*id)].followers.iter().next_back().unwrap();
            let recent = posts.iter().filter(|post| post.create_time <= *at).take(50);
            for post in recent.filter(|post| *at - post.create_time < TimeDelta::days(14)) {
                let video = self.history.videos.iter().find(|video| video.external_id == post.id);
                let last = video.and_then(|video| video.snapshots.values().next_back());
                assert!(
                    last.is_some_and(|(observed, _)| observed >= at),
                    "{} was not scraped at {at}",
                    post.id
                );
            }
        }
    }

    /// The history with the current creators and links.
    pub(super) fn with_creators(&self) -> (History, Ids) {
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
    pub(super) async fn assert_snapshots(&self, history: &History) {
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
    pub(super) async fn assert_search(&self) {
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

fn simulated_account<'a>(population: &'a Population, platform: &str, username: &str) -> &'a SimulatedAccount {
    let mut accounts = population.accounts().iter();
    accounts
        .find(|account| account.platform.as_str() == platform && account.username == username)
        .expect("the sandbox has the account")
}

/// Asserts that stored counters are those of a served post. Clears counters that the platform does not have.
fn assert_served(
    counts: &mut [Option<i64>; 9],
    platform: &str,
    served: &SimulatedPost,
    at: DateTime<Utc>,
    fixed_views: Option<i64>,
) {
    let served_at = |at| served_counters(platform, served.counters_at(at));
    let (before, after) = (served_at(at), served_at(at + MAX_SERVING_DELAY));
    for (index, name) in Counters::NAMES.into_iter().enumerate() {
        let Some((before, after)) = before[index].zip(after[index]) else {
            assert!(counts[index].is_none_or(|count| count == 0), "{name} was never served");
            counts[index] = None;
            continue;
        };
        let count = counts[index].expect("a served counter is stored");
        // TikTok's plays are its views.
        let is_views = index == 0 || (index == 5 && platform == "tiktok");
        match fixed_views.filter(|_| is_views) {
            Some(fixed) => assert_eq!(count, fixed, "{name} of {}", served.id),
            None => assert_between(name, count, before, after),
        }
    }
}

/// The counters that a platform returns.
fn served_counters(platform: &str, counters: Counters) -> [Option<i64>; 9] {
    let is_instagram = platform == Platform::Instagram.as_str();
    if is_instagram { graph_counters(counters) } else { counters }.to_array()
}

fn assert_between(name: &str, count: i64, one: i64, other: i64) {
    assert!(
        (one.min(other)..=one.max(other)).contains(&count),
        "{name}: {count} is not between {one} and {other}"
    );
}
