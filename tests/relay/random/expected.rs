//! What an organization has to answer: the history that the sandbox served it, checked against the sandbox's own
//! numbers of the moment of each scrape, and the records that were changed by requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tidemark::model::counters::Counters;
use tidemark::model::platform::Platform;
use tidemark::sandbox::population::{Population, SimulatedAccount as Person, SimulatedPost, graph_counters};
use uuid::Uuid;

use super::recovered;
use crate::harness::{Organization, SandboxAccount};
use crate::model::{Dice, History, Ids, PLATFORMS, Video};

/// How late an answer of the sandbox may be by a clock that the tracker read before, and that is moved on by minutes, again
/// and again, while attempts fail.
const ANSWERING: TimeDelta = TimeDelta::hours(3);

pub(super) struct Tenant {
    pub(super) organization: Organization,
    /// Accounts that are to be tracked from the first day.
    pub(super) to_track: Vec<SandboxAccount>,
    pub(super) history: History,
    pub(super) ids: Ids,
    pub(super) creators: Vec<(Uuid, String)>,
    /// Names by which no creator may be found.
    pub(super) gone: Vec<String>,
    /// Creators by the accounts that are linked to them.
    pub(super) links: HashMap<Uuid, Uuid>,
    /// Posts that are tracked individually.
    pub(super) tracked: BTreeSet<String>,
    /// Captions by the posts that the sandbox served.
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

impl Tenant {
    pub(super) fn new(organization: Organization, to_track: Vec<SandboxAccount>) -> Self {
        Tenant {
            organization,
            to_track,
            history: History::default(),
            ids: Ids { accounts: Vec::new(), creators: Vec::new(), videos: Vec::new() },
            creators: Vec::new(),
            gone: Vec::new(),
            links: HashMap::new(),
            tracked: BTreeSet::new(),
            captions: BTreeMap::new(),
        }
    }

    /// Some post of an account that is scraped: whose, which, and with how many views.
    pub(super) fn some_post(&self, dice: &mut Dice) -> Option<(SandboxAccount, String, i64)> {
        let known: Vec<_> = self
            .history
            .videos
            .iter()
            .filter_map(|video| {
                let account = &self.history.accounts[video.account?];
                let views = video.seen.values().next_back()?.1[0]?;
                let account = SandboxAccount {
                    platform: account.platform.to_owned(),
                    username: account.username.clone(),
                };
                self.captions_know(&video.external_id).then(|| (account, video.external_id.clone(), views))
            })
            .collect();
        (!known.is_empty()).then(|| known[dice.below(known.len() as i64) as usize].clone())
    }

    fn captions_know(&self, external_id: &str) -> bool {
        let videos = self.history.videos.iter().zip(&self.ids.videos);
        videos
            .filter(|(video, _)| video.external_id == external_id)
            .any(|(_, (id, _))| self.captions.contains_key(id))
    }

    /// Notes what was read since the last note, and that it is what the sandbox served.
    pub(super) async fn note(&mut self, population: &Population, fixed: &BTreeMap<String, i64>) {
        let (pg, organization) = (self.organization.pg(), self.organization.id);
        let (profiles, posts) = recovered("postgres answers", async || {
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
        .await;
        assert_eq!(profiles.len(), self.ids.accounts.len(), "accounts of {organization}");
        for Profile { id, follower_count, last_scrape_time } in profiles {
            let place = self.ids.accounts.iter().position(|known| *known == id).expect("it was added");
            let account = &mut self.history.accounts[place];
            let Some(at) = last_scrape_time else { continue };
            let served =
                |at| person(population, account.platform, &account.username).profile_at(at).follower_count;
            within("followers", follower_count, served(at), served(at + ANSWERING));
            account.followers.insert(at.date_naive(), (at, Some(follower_count)));
        }
        let mut people: HashMap<Uuid, Vec<SimulatedPost>> = HashMap::new();
        for post in posts {
            let Some(at) = post.last_scrape_time else { continue };
            let account = post.account_id.map(|id| {
                self.ids.accounts.iter().position(|known| *known == id).expect("its account is known")
            });
            let known = self.history.videos.iter().position(|video| video.external_id == post.external_id);
            let place = known.unwrap_or_else(|| {
                let platform = PLATFORMS.into_iter().find(|platform| *platform == post.platform).unwrap();
                let external_id = post.external_id.clone();
                let (seen, posted) = (Default::default(), None);
                self.history.videos.push(Video {
                    platform,
                    external_id,
                    account,
                    is_tracked: false,
                    posted,
                    seen,
                });
                self.ids.videos.push((post.id, post.internal_id));
                self.history.videos.len() - 1
            });
            assert_eq!(self.ids.videos[place], (post.id, post.internal_id), "one row for each post");
            assert_eq!(
                self.history.videos[place].account, account,
                "{} belongs where it was found",
                post.external_id
            );
            assert_eq!(post.is_tracked, self.tracked.contains(&post.external_id), "{}", post.external_id);
            let video = &mut self.history.videos[place];
            video.is_tracked = post.is_tracked;
            if video.seen.values().next_back().is_some_and(|(seen_at, _)| *seen_at == at) {
                continue;
            }
            // One that is only tracked on its stores any more was found on an account before.
            let served = match account {
                Some(account) => {
                    let (id, account) = (self.ids.accounts[account], &self.history.accounts[account]);
                    let everything = || {
                        let person = person(population, account.platform, &account.username);
                        person.posts_at(at + ANSWERING).collect()
                    };
                    people
                        .entry(id)
                        .or_insert_with(everything)
                        .iter()
                        .find(|served| served.id == post.external_id)
                }
                None => None,
            };
            let mut counts: [Option<i64>; 9] = post.counts.clone().try_into().unwrap();
            if let Some(served) = served {
                video.posted = Some(served.create_time.date_naive());
                self.captions.insert(post.id, served.caption.clone());
                let told = |at| told(video.platform, served.counters_at(at));
                let (least, most) = (told(at), told(at + ANSWERING));
                for (counter, name) in Counters::NAMES.into_iter().enumerate() {
                    let Some((least, most)) = least[counter].zip(most[counter]) else {
                        assert!(counts[counter].is_none_or(|count| count == 0), "{name} was never served");
                        counts[counter] = None;
                        continue;
                    };
                    let count = counts[counter].expect("what is served is known");
                    // TikTok's plays are its views.
                    let is_views = counter == 0 || (counter == 5 && video.platform == "tiktok");
                    match fixed.get(&post.external_id).filter(|_| is_views) {
                        // Set by hand after the post was scraped on the day before.
                        Some(fixed) => assert_eq!(count, *fixed, "{name} of {}", post.external_id),
                        None => within(name, count, least, most),
                    }
                }
            } else {
                assert!(account.is_none(), "the sandbox has no {}", post.external_id);
                let known = video.seen.values().next_back().expect("it was found on an account").1;
                for (count, known) in counts.iter_mut().zip(known) {
                    *count = count.filter(|_| known.is_some());
                }
            }
            video.seen.insert(at.date_naive(), (at, counts));
        }
        self.everything_recent_was_read(&people);
    }

    /// What was published before the last scrape and is younger than 14 days was read by it.
    fn everything_recent_was_read(&self, people: &HashMap<Uuid, Vec<SimulatedPost>>) {
        for (id, posts) in people {
            let place = self.ids.accounts.iter().position(|known| known == id).unwrap();
            let (_, (at, _)) = self.history.accounts[place].followers.iter().next_back().unwrap();
            let recent = posts.iter().filter(|post| post.create_time <= *at).take(50);
            for post in recent.filter(|post| *at - post.create_time < TimeDelta::days(14)) {
                let known = self.history.videos.iter().find(|video| video.external_id == post.id);
                let seen = known.and_then(|video| video.seen.values().next_back());
                assert!(seen.is_some_and(|(seen, _)| seen >= at), "{} was not read at {at}", post.id);
            }
        }
    }

    /// The history with the creators and links as they are now.
    pub(super) fn as_linked(&self) -> (History, Ids) {
        let mut history = self.history.clone();
        history.creators = self.creators.iter().map(|(_, name)| name.clone()).collect();
        for (account, id) in history.accounts.iter_mut().zip(&self.ids.accounts) {
            let creator = self.links.get(id);
            account.creator = creator.and_then(|id| self.creators.iter().position(|(known, _)| known == id));
        }
        let ids = Ids {
            accounts: self.ids.accounts.clone(),
            creators: self.creators.iter().map(|(id, _)| *id).collect(),
            videos: self.ids.videos.clone(),
        };
        (history, ids)
    }

    /// ClickHouse holds each observation once, and nothing else.
    pub(super) async fn facts_agree(&self, history: &History) {
        let clickhouse = &self.organization.stack.databases.clickhouse;
        for (table, expected) in [
            ("video_snapshots", history.videos.iter().map(|video| video.seen.len()).sum::<usize>()),
            ("account_snapshots", history.accounts.iter().map(|account| account.followers.len()).sum()),
        ] {
            let statement = format!("select count() from {table} final where org_id = {{org:UUID}}");
            let query = clickhouse.query(&statement).param("org", self.organization.id);
            assert_eq!(query.fetch_one::<u64>().await.unwrap(), expected as u64, "{table}");
        }
    }

    /// Search finds every record by its name of now, and by no other.
    pub(super) async fn search_agrees(&self) {
        for (id, name) in &self.creators {
            self.found("creators", name, BTreeSet::from([*id])).await;
        }
        for name in &self.gone {
            self.found("creators", name, BTreeSet::new()).await;
        }
        for (account, id) in self.history.accounts.iter().zip(&self.ids.accounts) {
            let like: BTreeSet<_> = self
                .history
                .accounts
                .iter()
                .zip(&self.ids.accounts)
                .filter(|(other, _)| other.username.contains(&account.username))
                .map(|(_, id)| *id)
                .collect();
            assert!(like.contains(id));
            self.found("accounts", &account.username, like).await;
        }
        for caption in self.captions.values().step_by(11) {
            let q: String = caption.chars().take(40).collect();
            let q = q.trim();
            let live: BTreeSet<_> = self.ids.videos.iter().map(|(id, _)| *id).collect();
            let alike = self
                .captions
                .iter()
                .filter(|(id, other)| live.contains(id) && other.to_lowercase().contains(&q.to_lowercase()));
            let alike: BTreeSet<_> = alike.map(|(id, _)| *id).collect();
            // A section holds no more than 25.
            if alike.len() <= 25 {
                self.found("videos", q, alike).await;
            }
        }
    }

    async fn found(&self, section: &str, q: &str, expected: BTreeSet<Uuid>) {
        let mut last = Value::Null;
        let what = format!("{section} are found by {q:?}: {expected:?}");
        recovered(&what, async || {
            let request = self.organization.request(reqwest::Method::GET, "/search");
            let answer = request.query(&[("q", q), ("limit", "25")]).send().await.ok()?;
            last = answer.json().await.ok()?;
            let items = last["data"][section].as_array()?.iter();
            let found: BTreeSet<Uuid> =
                items.map(|item| item["id"].as_str().unwrap().parse().unwrap()).collect();
            (found == expected).then_some(())
        })
        .await;
    }
}

fn person<'a>(population: &'a Population, platform: &str, username: &str) -> &'a Person {
    let of = |person: &&Person| person.platform.as_str() == platform && person.username == username;
    population.accounts().iter().find(of).expect("the sandbox knows it")
}

/// What a platform tells of what it counts.
fn told(platform: &str, counters: Counters) -> [Option<i64>; 9] {
    let instagram = platform == Platform::Instagram.as_str();
    if instagram { graph_counters(counters) } else { counters }.to_array()
}

fn within(what: &str, count: i64, one: i64, other: i64) {
    assert!(
        (one.min(other)..=one.max(other)).contains(&count),
        "{what}: {count} is not between {one} and {other}"
    );
}
