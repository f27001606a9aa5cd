//! Applies each step of a random course to the service and to the model.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Days, NaiveDate, Utc};
use harness::{Organization, WAIT_TIMEOUT, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};
use tidemark::model::counters::Counters;
use tidemark::model::observed::{VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::rollup::rebuild;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::observations::{ObservedVideo, VideoOrigin, save_videos};
use tidemark::store::{Write, retry_on_conflict};
use tidemark::worker::retention;
use uuid::Uuid;

use super::collections::Group;
use super::model::{Account, Counts, DailyValues, History, Ids, PLATFORMS, Video, record};
use super::steps::{COLLECTIONS, NAMES, Row, Step};

/// A collection and its model: which posts its rule matches, and its marks by the external ids of the model.
struct MarkedCollection {
    id: String,
    rule: CourseRule,
    marks: BTreeMap<String, bool>,
}

#[derive(Clone, Copy)]
enum CourseRule {
    None,
    Creator(Uuid),
    Tracked,
}

/// An organization and its model.
pub struct Course {
    pub organization: Organization,
    pub history: History,
    pub ids: Ids,
    collections: [MarkedCollection; COLLECTIONS],
    today: NaiveDate,
    /// Instagram posts with both an id and a shortcode.
    revealed: BTreeSet<usize>,
}

/// The parity of the number gives the platform.
fn username(account: usize) -> String {
    let word = if account < NAMES / 2 { "exact" } else { "renamed" };
    format!("{word}.{}", account % (NAMES / 2))
}

fn external_id(video: usize) -> String {
    format!("{}", 7_000_000 + video)
}

/// The external id in the model of a post with a shortcode only.
fn shortcode(video: usize) -> String {
    format!("SHORT{video}")
}

impl Course {
    pub async fn start(organization: Organization, today: NaiveDate) -> Self {
        let history =
            History { creators: ["Zoë", "anna", "Ben"].map(str::to_owned).to_vec(), ..History::default() };
        let mut creators = Vec::new();
        for name in &history.creators {
            let created = organization.post("/creators", json!({"name": name})).await.ok(201);
            creators.push(created.text("/data/id").parse().unwrap());
        }
        let mut collections = Vec::new();
        for rule in [CourseRule::None, CourseRule::Creator(creators[0]), CourseRule::Tracked] {
            let sent = match rule {
                CourseRule::None => Value::Null,
                CourseRule::Creator(creator) => json!({"creator_ids": [creator]}),
                CourseRule::Tracked => json!({"kind": "tracked"}),
            };
            let name = format!("collection {}", collections.len());
            let id = organization.create("/collections", json!({"name": name, "rule": sent})).await;
            collections.push(MarkedCollection { id, rule, marks: BTreeMap::new() });
        }
        let Ok(collections) = collections.try_into() else { unreachable!("there are three rules") };
        let ids = Ids { accounts: Vec::new(), creators, videos: Vec::new() };
        Course { organization, history, ids, collections, today, revealed: BTreeSet::new() }
    }

    /// The collections with the posts that are in them.
    pub fn groups(&self) -> Vec<Group> {
        let videos = || self.history.videos.iter().enumerate();
        let group = |MarkedCollection { id, rule, marks }: &MarkedCollection| {
            let creator = match rule {
                CourseRule::Creator(id) => self.ids.creators.iter().position(|creator| creator == id),
                _ => None,
            };
            let matches = |video: &Video| match rule {
                CourseRule::None => false,
                CourseRule::Tracked => video.is_tracked,
                CourseRule::Creator(_) => creator.is_some_and(|creator| {
                    video
                        .account
                        .is_some_and(|account| self.history.accounts[account].creator == Some(creator))
                }),
            };
            let is_in =
                |video: &Video| marks.get(&video.external_id).copied().unwrap_or_else(|| matches(video));
            let is_excluded = |video: &Video| marks.get(&video.external_id) == Some(&false);
            Group {
                id: id.clone(),
                videos: videos().filter(|(_, video)| is_in(video)).map(|(number, _)| number).collect(),
                excluded: videos()
                    .filter(|(_, video)| is_excluded(video))
                    .map(|(number, _)| number)
                    .collect(),
            }
        };
        self.collections.iter().map(group).collect()
    }

    async fn mark(&mut self, collection: usize, video: usize, is_included: Option<bool>) {
        let names = [external_id(video), shortcode(video)];
        let Some(video) = names.iter().find_map(|name| self.find_video(name)) else { return };
        let name = self.history.videos[video].external_id.clone();
        let MarkedCollection { id, marks, .. } = &mut self.collections[collection];
        let path = format!("/collections/{id}/videos/{}", self.ids.videos[video].0);
        let before = match is_included {
            Some(is_included) => {
                let before = marks.insert(name, is_included);
                let state = if is_included { "included" } else { "excluded" };
                let put = self.organization.request(Method::PUT, &path).json(&json!({"state": state}));
                harness::send(put).await.ok(if before.is_none() { 201 } else { 200 });
                return;
            }
            None => marks.remove(&name),
        };
        let response = self.organization.delete(&path).await;
        match before {
            Some(_) => drop(response.ok(204)),
            None => drop(response.problem(404, "NOT_FOUND")),
        }
    }

    /// Of two records that turn out to be one post the mark of the older one holds, else that of the other.
    fn merge_marks(&mut self, short: usize, long: usize) {
        let [short_name, long_name] =
            [short, long].map(|number| self.history.videos[number].external_id.clone());
        for MarkedCollection { marks, .. } in &mut self.collections {
            let (of_short, of_long) = (marks.remove(&short_name), marks.remove(&long_name));
            let mark = if short < long { of_short.or(of_long) } else { of_long.or(of_short) };
            marks.extend(mark.map(|mark| (long_name.clone(), mark)));
        }
    }

    /// The creation day of a post: some before, some after the tracking start.
    fn posted(&self, video: usize) -> NaiveDate {
        self.today - Days::new((video as u64 * 37 + 5) % 75)
    }

    /// The index of the account with this username, if it exists.
    fn find_account(&self, account: usize) -> Option<usize> {
        let (platform, username) = (PLATFORMS[account % 2], username(account));
        self.history
            .accounts
            .iter()
            .position(|account| account.platform == platform && account.username == username)
    }

    fn find_video(&self, external_id: &str) -> Option<usize> {
        self.history.videos.iter().position(|video| video.external_id == external_id)
    }

    /// Moves the start of history to a later day, deletes older history and waits until the API returns the new start.
    async fn retain(&mut self, since: NaiveDate) {
        let Organization { id, stack, .. } = &self.organization;
        sqlx::query(
            "update organizations set history_since = $2, history_since_set_at = now() - interval '1 minute'
             where id = $1",
        )
        .bind(id)
        .bind(since)
        .execute(stack.pg())
        .await
        .unwrap();
        let acquire = || async { ErasureLock::try_acquire(stack.pg()).await.unwrap() };
        let mut lock = wait_until("the erasure lock is free", acquire).await;
        let deadline = tokio::time::Instant::now() + WAIT_TIMEOUT * 4;
        retention::purge_expired(&stack.databases, &mut lock, Some(*id), deadline).await.unwrap();
        wait_until("the API returns the new start of history", || async {
            let response = self.organization.get("/whoami").await.ok(200);
            (response.json["data"]["history_since"] == json!(since)).then_some(())
        })
        .await;
        self.history.since = Some(since);
    }

    /// Applies a step. Returns whether every response must reflect it at once.
    pub async fn apply(&mut self, step: &Step) -> bool {
        let mut is_settled = true;
        match step {
            Step::Import(rows) => self.import(rows).await,
            Step::Link { account, creator } => {
                let creator = creator.filter(|creator| *creator < self.ids.creators.len());
                if let Some(account) = self.find_account(*account) {
                    let id = creator.map(|creator| self.ids.creators[creator]);
                    self.patch(account, json!({"creator_id": id})).await;
                    self.history.accounts[account].creator = creator;
                }
            }
            Step::Activate { account, is_active } => {
                if let Some(account) = self.find_account(*account) {
                    self.patch(account, json!({"is_active": is_active})).await;
                    self.history.accounts[account].is_active = *is_active;
                }
            }
            Step::Rename { account } => self.rename(*account).await,
            Step::DeleteAccount { account } => {
                if let Some(account) = self.find_account(*account) {
                    let is_individual = |video: &usize| self.history.videos[*video].is_tracked;
                    is_settled = !self.history.videos_of(account).iter().any(is_individual);
                    let path = format!("/accounts/{}", self.ids.accounts[account]);
                    self.organization.delete(&path).await.ok(204);
                    self.history.delete(&mut self.ids, account);
                }
            }
            Step::DeleteVideo { video } => self.delete_video(*video).await,
            Step::DeleteCreator { creator } => {
                if self.ids.creators.len() > *creator {
                    self.delete_creator(*creator).await;
                }
            }
            // A source returns current data, never data before the retention period.
            Step::ByShortcode { at, .. } | Step::Reveal { at, .. }
                if !self.history.is_retained(at.date_naive()) => {}
            Step::Retain { ago } => {
                let since = self.today - Days::new(*ago);
                if self.history.since.is_none_or(|earlier| earlier < since) {
                    self.organization.wait_applied().await;
                    self.retain(since).await;
                }
            }
            Step::ByShortcode { video, at, counts } => {
                let id = self.revealed.contains(video).then(|| external_id(*video));
                self.read_individual(*video, id.as_deref(), false, *at, *counts).await;
            }
            Step::Reveal { video, at, counts } => self.reveal(*video, *at, *counts).await,
            Step::Mark { collection, video, is_included } => {
                self.mark(*collection, *video, *is_included).await;
            }
            Step::Rebuild => {
                rebuild::rebuild(&self.organization.stack.databases, &[self.organization.id], false)
                    .await
                    .unwrap();
            }
        }
        // Forget the shortcodes and marks of deleted records.
        let existing: BTreeSet<_> =
            self.history.videos.iter().map(|video| video.external_id.clone()).collect();
        for MarkedCollection { marks, .. } in &mut self.collections {
            marks.retain(|name, _| existing.contains(name));
        }
        self.revealed.retain(|video| existing.contains(&external_id(*video)));
        is_settled
    }

    async fn rename(&mut self, account: usize) {
        let other = (account + NAMES / 2) % NAMES;
        let (Some(renamed), None) = (self.find_account(account), self.find_account(other)) else { return };
        // The tracker sets this after three runs without the account; other accounts cannot be renamed.
        sqlx::query("update accounts set is_unavailable = true where organization_id = $1 and id = $2")
            .bind(self.organization.id)
            .bind(self.ids.accounts[renamed])
            .execute(self.organization.pg())
            .await
            .unwrap();
        self.patch(renamed, json!({"username": username(other)})).await;
        self.history.accounts[renamed].username = username(other);
    }

    async fn delete_creator(&mut self, creator: usize) {
        let id = self.ids.creators.remove(creator);
        self.organization.delete(&format!("/creators/{id}")).await.ok(204);
        self.history.creators.remove(creator);
        for account in &mut self.history.accounts {
            account.creator = account.creator.filter(|linked| *linked != creator);
            account.creator = account.creator.map(|linked| linked - usize::from(linked > creator));
        }
    }

    async fn patch(&self, account: usize, body: Value) {
        self.organization.patch(&format!("/accounts/{}", self.ids.accounts[account]), body).await.ok(200);
    }

    async fn delete_video(&mut self, video: usize) {
        let Some(video) = self.find_video(&external_id(video)) else { return };
        let is_tracked = self.history.videos[video].is_tracked;
        let path = format!("/videos/{}", self.ids.videos[video].0);
        if !is_tracked {
            return;
        }
        self.organization.delete(&path).await.ok(204);
        if self.history.videos[video].account.is_some() {
            self.history.videos[video].is_tracked = false;
        } else {
            self.history.videos.remove(video);
            self.ids.videos.remove(video);
        }
    }

    async fn import(&mut self, rows: &[Row]) {
        // Put each post on one account per file: with several, the order of import is undefined.
        let mut found_on = BTreeMap::new();
        let (mut lines, mut refused) = (Vec::new(), 0);
        for row in rows {
            if !self.history.is_retained(row.at().date_naive()) {
                lines.push(json!({
                    "platform": "tiktok", "username": "too.old", "observed_at": row.at(), "follower_count": 1,
                }));
                refused += 1;
                continue;
            }
            lines.push(match row {
                Row::Profile { account, at, followers } => {
                    let number = self.find_or_add_account(*account);
                    record(&mut self.history.accounts[number].followers, *at, *followers);
                    json!({
                        "platform": PLATFORMS[account % 2], "username": username(*account), "observed_at": at,
                        "follower_count": followers, "profile_post_count": 3,
                    })
                }
                Row::Video { video, on, at, counts, has_create_time } => {
                    let on = on.map(|on| *found_on.entry(*video).or_insert((on * 2 + video % 2) % NAMES));
                    self.video_row(*video, on, *at, *counts, *has_create_time)
                }
            });
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let text: Vec<_> = lines.iter().map(Value::to_string).collect();
        std::fs::write(&path, text.join("\n")).unwrap();
        let (stores, id) = (&self.organization.stack.databases, self.organization.id);
        let summary = import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
        assert_eq!((summary.rows_read, summary.refused), (rows.len() as u64, refused));
        self.fetch_ids().await;
    }

    fn video_row(
        &mut self,
        video: usize,
        on: Option<usize>,
        at: DateTime<Utc>,
        mut counts: Counts,
        has_create_time: bool,
    ) -> Value {
        let posted = has_create_time.then(|| self.posted(video));
        let account = on.map(|on| self.find_or_add_account(on));
        let platform = PLATFORMS[video % 2];
        let mut row = json!({
            "platform": platform, "external_id": external_id(video), "observed_at": at,
            "username": on.map(username), "create_time": posted.map(|day| format!("{day}T21:00:00Z")),
        });
        for (name, count) in Counters::NAMES.iter().zip(counts) {
            row[*name] = json!(count);
        }
        if platform == "tiktok" {
            counts[5] = counts[0];
        }
        let number = self
            .find_video(&external_id(video))
            .unwrap_or_else(|| self.add_video(platform, external_id(video)));
        let stored = &mut self.history.videos[number];
        // A video stays on its first account.
        stored.account = stored.account.or(account);
        stored.is_tracked |= account.is_none();
        stored.posted = stored.posted.or(posted);
        if counts != [None; 9] {
            record(&mut stored.snapshots, at, counts);
        }
        row
    }

    fn add_video(&mut self, platform: &'static str, external_id: String) -> usize {
        let (account, is_tracked, posted) = (None, false, None);
        let snapshots = DailyValues::new();
        self.history.videos.push(Video { platform, external_id, account, is_tracked, posted, snapshots });
        self.history.videos.len() - 1
    }

    fn find_or_add_account(&mut self, account: usize) -> usize {
        self.find_account(account).unwrap_or_else(|| {
            let (platform, username) = (PLATFORMS[account % 2], username(account));
            let followers = DailyValues::new();
            self.history.accounts.push(Account {
                platform,
                username,
                creator: None,
                is_active: false,
                followers,
            });
            self.history.accounts.len() - 1
        })
    }

    /// A source reads a post with its id and shortcode; two records may be merged.
    async fn reveal(&mut self, video: usize, at: DateTime<Utc>, counts: Counts) {
        let (short, long) = (self.find_video(&shortcode(video)), self.find_video(&external_id(video)));
        match (short, long) {
            (Some(short), Some(long)) => {
                self.merge_marks(short, long);
                let merged = self.history.videos[short].clone();
                let target = &mut self.history.videos[long];
                target.is_tracked |= merged.is_tracked;
                for (at, counts) in merged.snapshots.into_values() {
                    record(&mut target.snapshots, at, counts);
                }
                self.history.videos.remove(short);
                // fetch_ids finds out which of the two ids remains.
                self.ids.videos.truncate(self.history.videos.len());
            }
            (Some(short), None) => {
                self.history.videos[short].external_id = external_id(video);
                for MarkedCollection { marks, .. } in &mut self.collections {
                    let mark = marks.remove(&shortcode(video));
                    marks.extend(mark.map(|mark| (external_id(video), mark)));
                }
            }
            _ => {}
        }
        self.revealed.insert(video);
        self.read_individual(video, Some(&external_id(video)), true, at, counts).await;
    }

    /// A source reads an individually tracked post.
    async fn read_individual(
        &mut self,
        video: usize,
        external_id: Option<&str>,
        has_both_ids: bool,
        at: DateTime<Utc>,
        counts: Counts,
    ) {
        let model_id = external_id.map_or_else(|| shortcode(video), str::to_owned);
        let number = self.find_video(&model_id).unwrap_or_else(|| self.add_video("instagram", model_id));
        let stored = &mut self.history.videos[number];
        stored.is_tracked = true;
        if counts != [None; 9] {
            record(&mut stored.snapshots, at, counts);
        }
        let counters = Counters::from_array(counts);
        let mut latest = VideoLatest::default();
        latest.record(VideoFields::default(), counters, at);
        let observed = ObservedVideo {
            platform: Platform::Instagram,
            external_id: external_id.filter(|_| has_both_ids).map(str::to_owned),
            shortcode: Some(shortcode(video)),
            origin: VideoOrigin::Individual { is_active: false },
            latest,
            observations: vec![(at, counters)],
            scraped_at: None,
        };
        let (pg, id) = (self.organization.pg(), self.organization.id);
        retry_on_conflict(|| async {
            let mut write = Write::begin(pg, id).await?;
            save_videos(&mut write, harness::now(), vec![observed.clone()]).await?;
            write.commit().await
        })
        .await
        .unwrap();
        self.organization.wait_applied().await;
        self.fetch_ids().await;
    }

    /// Fetches the ids that the service assigned, and checks that it has as many records as the model.
    async fn fetch_ids(&mut self) {
        let (pg, id) = (self.organization.pg(), self.organization.id);
        let accounts: Vec<(String, String, Uuid)> =
            sqlx::query_as("select platform, username, id from accounts where organization_id = $1")
                .bind(id)
                .fetch_all(pg)
                .await
                .unwrap();
        let accounts: BTreeMap<_, _> =
            accounts.into_iter().map(|(platform, username, id)| ((platform, username), id)).collect();
        let videos: Vec<(String, Uuid, i64)> = sqlx::query_as(
            "select coalesce(external_id, shortcode), id, internal_id from videos where organization_id = $1",
        )
        .bind(id)
        .fetch_all(pg)
        .await
        .unwrap();
        let videos: BTreeMap<_, _> =
            videos.into_iter().map(|(name, id, internal)| (name, (id, internal))).collect();
        assert_eq!(
            (accounts.len(), videos.len()),
            (self.history.accounts.len(), self.history.videos.len()),
            "{videos:?}"
        );
        let account_id =
            |account: &Account| accounts[&(account.platform.to_owned(), account.username.clone())];
        self.ids.accounts = self.history.accounts.iter().map(account_id).collect();
        self.ids.videos = self.history.videos.iter().map(|video| videos[&video.external_id]).collect();
    }
}
