//! Kills the tracker and the API after each durable step, from the commit of a scrape to the applied outbox row and the search
//! index. Afterwards all totals match what the sandbox served.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::model::period::{Period, Window};
use tidemark::model::platform::Platform;
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::{SandboxServer, environment, start};
use tidemark::sandbox::world::World;
use tidemark::store::analytics::subjects;
use tidemark::store::analytics::{HistoryReader, SubjectScope};
use tidemark::store::observations::AccountRef;
use tidemark::store::records::keys::{self, NewKey};
use uuid::Uuid;

use crate::harness::{IsolatedStores, Process, create_organization, http_client, send, wait_until};
use crate::setup::{delete_account, track_individually};
use tidemark::store::records::organizations::OrganizationChange;

/// The tracker is killed after one of these each day.
const STEPS: [&str; 7] = [
    "write-committed",
    "relay-numbered",
    "relay-dimensions",
    "relay-snapshots",
    "relay-rollup",
    "relay-recorded",
    "relay-finished",
];

/// A sandbox with a clock, and a tracker and an API on isolated stores, which track one account.
struct KillTest {
    stores: IsolatedStores,
    sandbox: SandboxServer,
    folder: TempDir,
    tracker: Process,
    api: Process,
    url: String,
    organization: Uuid,
    key: String,
    account: AccountRef,
    username: String,
    /// Per day: each post's views in Postgres after the day's scrape, and the followers.
    scraped_days: BTreeMap<NaiveDate, (BTreeMap<String, i64>, i64)>,
}

fn command(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> Command {
    let mut command = stores.command(&[]);
    command.env("TIDEMARK_FAILPOINTS", folder.join("armed")).envs(environment(&sandbox.url));
    command
}

fn start_tracker(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> Process {
    let mut track = command(stores, sandbox, folder);
    track.arg("track");
    Process::start(track, None)
}

/// Starts the API and returns it with its URL. Its index outlives it.
fn start_api(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> (Process, String) {
    let mut serve = command(stores, sandbox, folder);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--search-index"]).arg(folder.join("search"));
    let mut process = Process::start(serve, None);
    let url = process.listening_url();
    (process, url)
}

impl KillTest {
    /// Tracks an account of the sandbox and waits for its first scrape.
    async fn start() -> Self {
        let stores = IsolatedStores::create().await;
        let noon: DateTime<Utc> = "2026-03-10T12:00:00Z".parse().unwrap();
        let world = World::open(Population::new(5, 8), None, Some(noon)).unwrap();
        let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("armed")).unwrap();
        let tracker = start_tracker(&stores, &sandbox, folder.path());
        let (api, url) = start_api(&stores, &sandbox, folder.path());
        let (organization, _) = create_organization(stores.pg(), OrganizationChange::default()).await;
        let key = keys::create(stores.pg(), organization, &NewKey::named("test")).await.unwrap().key;
        let accounts = sandbox.world.population().accounts();
        let username =
            accounts.iter().find(|account| account.platform == Platform::Tiktok).unwrap().username.clone();
        let body = json!({"platform": "tiktok", "username": username});
        let created =
            send(http_client().post(format!("{url}/accounts")).bearer_auth(&key).json(&body)).await.ok(201);
        let id = created.json["data"]["id"].as_str().unwrap().parse().unwrap();
        let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
            .bind(id)
            .fetch_one(stores.pg())
            .await
            .unwrap();
        let account = AccountRef { id, subject_id };
        let scraped_days = BTreeMap::new();
        let mut test = KillTest {
            stores,
            sandbox,
            folder,
            tracker,
            api,
            url,
            organization,
            key,
            account,
            username,
            scraped_days,
        };
        test.wait_scraped().await;
        test
    }

    fn arm(&self, step: &str) {
        File::create(self.armed(step)).unwrap();
    }

    fn armed(&self, step: &str) -> PathBuf {
        self.folder.path().join("armed").join(step)
    }

    fn today(&self) -> NaiveDate {
        self.sandbox.world.now().date_naive()
    }

    async fn restart_tracker_killed_at(&mut self, step: &str) {
        assert_eq!(self.tracker.wait().await, None, "killed at {step}");
        assert!(!self.armed(step).exists(), "{step} was not reached");
        self.tracker = start_tracker(&self.stores, &self.sandbox, self.folder.path());
    }

    async fn restart_api_killed_at(&mut self, step: &str) {
        assert_eq!(self.api.wait().await, None, "killed at {step}");
        (self.api, self.url) = start_api(&self.stores, &self.sandbox, self.folder.path());
    }

    /// Waits until the day's scrape is applied, and records its result.
    async fn wait_scraped(&mut self) {
        let today = self.today();
        wait_until("the day's scrape is committed", || async {
            let last: Option<DateTime<Utc>> =
                sqlx::query_scalar("select last_scrape_time from accounts where id = $1")
                    .bind(self.account.id)
                    .fetch_one(self.stores.pg())
                    .await
                    .unwrap();
            last.filter(|last| last.date_naive() == today)
        })
        .await;
        self.record_day().await;
        self.wait_applied().await;
    }

    async fn record_day(&mut self) {
        let posts: Vec<(String, i64)> =
            sqlx::query_as("select external_id, view_count from videos where organization_id = $1")
                .bind(self.organization)
                .fetch_all(self.stores.pg())
                .await
                .unwrap();
        let followers: Option<i64> = sqlx::query_scalar("select follower_count from accounts where id = $1")
            .bind(self.account.id)
            .fetch_optional(self.stores.pg())
            .await
            .unwrap();
        self.scraped_days.insert(self.today(), (posts.into_iter().collect(), followers.unwrap_or_default()));
    }

    async fn wait_applied(&self) {
        let position = i64::MAX;
        let wait = tidemark::store::outbox::visibility::wait_for_position(
            self.stores.pg(),
            self.organization,
            position,
        );
        tokio::time::timeout(crate::harness::WAIT_TIMEOUT, wait)
            .await
            .expect("the rows are applied")
            .unwrap();
    }

    /// Compares each day's gain and the followers with the recorded days, for all posts or one.
    async fn assert_totals(&self, only: Option<&str>) {
        let (first, today) = (*self.scraped_days.keys().next().unwrap(), self.today());
        let scope = SubjectScope::for_organization(self.stores.pg(), self.organization, None).await.unwrap();
        let window = Window { period: Period::Custom, start: first, end: today };
        let history = HistoryReader::new(&self.stores.databases.clickhouse, 2);
        let daily = subjects::fetch_daily(&history, &scope, window).await.unwrap();
        let gained: BTreeMap<_, _> = daily.into_iter().map(|(date, day)| (date, day.gains.views)).collect();
        for (day, (posts, _)) in &self.scraped_days {
            let before = self.scraped_days.get(&(*day - Days::new(1))).map(|scraped| &scraped.0);
            let mut expected = 0;
            for (post, views) in posts.iter().filter(|(post, _)| only.is_none_or(|only| only == *post)) {
                let from_zero = self.created(post).date_naive() >= first;
                expected += match before.and_then(|before| before.get(post)) {
                    Some(before) => views - before,
                    None if from_zero => *views,
                    None => 0,
                };
            }
            assert_eq!(gained.get(day).copied().unwrap_or(0), expected, "views of {day}: {gained:?}");
        }
        let levels = subjects::fetch_levels(&history, &scope, window).await.unwrap();
        let followers = self.scraped_days.values().last().unwrap().1;
        assert_eq!(levels.followers, only.is_none().then_some(followers));
    }

    fn created(&self, post: &str) -> DateTime<Utc> {
        let found = self.sandbox.world.find_by_username(Platform::Tiktok, &self.username).unwrap();
        let posts: Vec<_> = found.account.posts_at(found.now).collect();
        posts.iter().find(|other| other.id == post).expect("the sandbox has the post").create_time
    }

    /// Compares each post with what the sandbox served at its last scrape.
    async fn assert_served(&self) {
        let stored: Vec<(String, i64, DateTime<Utc>)> = sqlx::query_as(
            "select external_id, view_count, last_scrape_time from videos where organization_id = $1",
        )
        .bind(self.organization)
        .fetch_all(self.stores.pg())
        .await
        .unwrap();
        assert!(stored.len() > 10, "{stored:?}");
        let found = self.sandbox.world.find_by_username(Platform::Tiktok, &self.username).unwrap();
        let posts: BTreeMap<_, _> =
            found.account.posts_at(found.now).map(|post| (post.id.clone(), post)).collect();
        for (post, views, scraped_at) in stored {
            let at = |time| posts[&post].counters_at(time).view_count.unwrap();
            let (before, after) = (at(scraped_at), at(scraped_at + TimeDelta::minutes(1)));
            assert!(
                before.min(after) <= views && views <= after.max(before),
                "{views} is not in {before}..{after}"
            );
        }
    }

    /// Kills the API after its index commits a new creator; search finds the creator once.
    async fn kill_after_index_commit(&mut self) {
        self.arm("index-committed");
        let name = format!("Mara {}", Uuid::now_v7().simple());
        let request = http_client().post(format!("{}/creators", self.url)).bearer_auth(&self.key);
        // The process may die before it responds.
        let _ = request.json(&json!({"name": name})).send().await;
        self.restart_api_killed_at("index-committed").await;
        let url = format!("{}/search?q={}", self.url, name.replace(' ', "+"));
        wait_until("search finds the creator", || async {
            let found = http_client().get(&url).bearer_auth(&self.key).send().await.ok()?;
            let found: Value = found.json().await.ok()?;
            (found["data"]["creators"].as_array()?.len() == 1).then_some(())
        })
        .await;
    }
}

async fn kill_after_every_step(rounds: usize) {
    let mut test = KillTest::start().await;
    test.assert_totals(None).await;
    for _ in 0..rounds {
        for step in STEPS {
            test.arm(step);
            test.sandbox.world.advance(24.0).unwrap();
            test.restart_tracker_killed_at(step).await;
            test.wait_scraped().await;
            test.assert_totals(None).await;
            test.assert_served().await;
        }
        test.kill_after_index_commit().await;
    }
    // Deletes the account except for one individually tracked post, with kills during the move and the removal.
    let post = test.scraped_days.values().next().unwrap().0.keys().next().unwrap().clone();
    track_individually(test.stores.pg(), test.organization, &post, test.sandbox.world.now()).await;
    test.wait_applied().await;
    test.assert_totals(None).await;
    test.arm("relay-copied");
    test.arm("relay-removed");
    delete_account(test.stores.pg(), test.organization, test.account).await;
    test.restart_tracker_killed_at("relay-copied").await;
    test.restart_tracker_killed_at("relay-removed").await;
    test.wait_applied().await;
    test.assert_totals(Some(&post)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_after_each_step_lose_and_duplicate_nothing() {
    kill_after_every_step(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn twenty_kills_after_each_step_lose_nothing() {
    kill_after_every_step(20).await;
}
