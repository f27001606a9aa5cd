//! Kills the tracker and the API before and after each durable step, from the commit of a scrape, an import or a deletion to the
//! applied outbox row and the search index. Afterwards all totals and events match what the sandbox served.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use harness::{
    IsolatedStores, Organization, Process, SandboxAccount, Stack, create_organization, wait_until,
};
use reqwest::Method;
use sandbox::population::Population;
use sandbox::server::{SandboxServer, environment, start};
use sandbox::world::World;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::model::event::passed_threshold;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use crate::agree::{batches_agree, daily_rows_agree, organization_agrees};
use crate::expected::ExpectedOrganization;
use crate::recovery::seed;
use crate::served::Served;
use crate::uploads;
use crate::video_rollup::video_rollup_agrees;

/// The tracker is killed after one of these each day.
const STEPS: [&str; 9] = [
    "write-uncommitted",
    "write-committed",
    "relay-numbered",
    "relay-dimensions",
    "relay-snapshots",
    "relay-account-rollup",
    "relay-rollup",
    "relay-recorded",
    "relay-finished",
];

/// A sandbox whose clock stands still during a day, and a tracker and an API on isolated stores, which track one account.
struct KillTest {
    stores: IsolatedStores,
    sandbox: SandboxServer,
    folder: TempDir,
    tracker: Process,
    api: Process,
    expected: ExpectedOrganization,
    first_day: NaiveDate,
}

/// Folders of the failpoints of each process.
const TRACKER: &str = "tracker";
const API: &str = "api";

fn command(stores: &IsolatedStores, sandbox: &SandboxServer, failpoints: &Path) -> Command {
    let mut command = stores.command(&[]);
    command.env("TIDEMARK_FAILPOINTS", failpoints).envs(environment(&sandbox.url));
    command
}

fn start_tracker(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> Process {
    let mut track = command(stores, sandbox, &folder.join(TRACKER));
    // The scrape of a killed tracker is repeated when its lease ends.
    track.arg("track").env("TIDEMARK_TRACK_LEASE_SECONDS", "5");
    Process::start(track, None)
}

/// Starts the API and returns it with its URL. Its index outlives it.
fn start_api(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> (Process, String) {
    let mut serve = command(stores, sandbox, &folder.join(API));
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
        let world = World::open(Population::new(seed(), 8), None, Some(noon)).unwrap();
        world.stop_clock().unwrap();
        world.start_record();
        let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for process in [TRACKER, API] {
            fs::create_dir(folder.path().join(process)).unwrap();
        }
        let tracker = start_tracker(&stores, &sandbox, folder.path());
        let (api, url) = start_api(&stores, &sandbox, folder.path());
        let (id, key) = create_organization(stores.pg(), OrganizationChange::default()).await;
        let mut organization = Organization { stack: Stack::clone(&stores), id, key };
        organization.stack.connection.base_url = url;
        let mut expected = ExpectedOrganization::new(organization, Vec::new());
        let accounts = sandbox.world.population().accounts();
        let account = accounts.iter().find(|account| account.platform == sandbox::Platform::Tiktok).unwrap();
        let username = account.username.clone();
        expected.track(&SandboxAccount { platform: "tiktok".to_owned(), username }).await;
        let first_day = sandbox.world.now().date_naive();
        let mut test = KillTest { stores, sandbox, folder, tracker, api, expected, first_day };
        test.wait_scraped().await;
        test
    }

    fn arm(&self, process: &str, step: &str) {
        File::create(self.armed(process, step)).unwrap();
    }

    fn armed(&self, process: &str, step: &str) -> PathBuf {
        self.folder.path().join(process).join(step)
    }

    fn today(&self) -> NaiveDate {
        self.sandbox.world.now().date_naive()
    }

    async fn restart_tracker_killed_at(&mut self, step: &str) {
        assert_eq!(self.tracker.wait().await, None, "killed at {step}");
        assert!(!self.armed(TRACKER, step).exists(), "{step} was not reached");
        self.tracker = start_tracker(&self.stores, &self.sandbox, self.folder.path());
    }

    async fn restart_api_killed_at(&mut self, step: &str) {
        assert_eq!(self.api.wait().await, None, "killed at {step}");
        assert!(!self.armed(API, step).exists(), "{step} was not reached");
        uploads::expire_leases(&self.stores).await;
        let organization = &mut self.expected.organization;
        (self.api, organization.stack.connection.base_url) =
            start_api(&self.stores, &self.sandbox, self.folder.path());
    }

    /// Waits until the day's scrape is applied, and records what was served to it.
    async fn wait_scraped(&mut self) {
        let today = self.today();
        wait_until("the day's scrape is committed", async || {
            self.expected.fetch_unscraped(today).await.is_empty().then_some(())
        })
        .await;
        let served = Served::new(self.sandbox.world.served().unwrap());
        self.expected.record_scrapes(&served, today).await;
        self.expected.organization.wait_applied().await;
    }

    /// Compares all totals since the first day and of today with what was served.
    async fn assert_totals(&self) {
        let (history, ids) = self.expected.with_creators();
        let today = self.today();
        for window in [(self.first_day, today), (today, today)] {
            organization_agrees(&self.expected.organization, &history, None, window).await;
            video_rollup_agrees(&self.expected.organization, &history, &ids, window).await;
            // A batch has at least one account.
            if !ids.accounts.is_empty() {
                batches_agree(&self.expected.organization, &history, &ids, window).await;
            }
        }
    }

    /// Compares the rows of each day.
    async fn assert_daily_rows(&self) {
        let (history, ids) = self.expected.with_creators();
        assert!(!history.videos.is_empty());
        let window = (self.first_day, self.today());
        daily_rows_agree(&self.expected.organization, &history, &ids, window, 5).await;
        self.expected.assert_snapshots(&history).await;
    }

    /// Compares the events of posts and thresholds with what was served: each is there once.
    async fn assert_events(&self) {
        let mut expected = Vec::new();
        let account = &self.expected.history.accounts[0];
        let followers: Vec<_> = account.followers.values().map(|(_, followers)| *followers).collect();
        let first_scrape = account.followers.values().next().unwrap().0;
        let reached = passed_thresholds(followers[0], &followers[1..]);
        expected
            .extend(reached.map(|threshold| ("account.followers_reached".to_owned(), None, Some(threshold))));
        for video in &self.expected.history.videos {
            let id = Some(video.external_id.clone());
            let is_new = video.snapshots.values().next().unwrap().0 > first_scrape;
            let views: Vec<_> = video.snapshots.values().map(|(_, counts)| counts[0]).collect();
            let known = if is_new { None } else { views[0] };
            let reached = passed_thresholds(known, &views);
            expected.extend(is_new.then(|| ("video.published".to_owned(), id.clone(), None)));
            expected.extend(
                reached.map(|threshold| ("video.views_reached".to_owned(), id.clone(), Some(threshold))),
            );
        }
        expected.sort();
        let mut events: Vec<(String, Option<String>, Option<i64>)> = sqlx::query_as(
            "select type, data -> 'video' ->> 'external_id', (data ->> 'threshold')::bigint from events
             where organization_id = $1
                 and type in ('account.followers_reached', 'video.published', 'video.views_reached')",
        )
        .bind(self.expected.organization.id)
        .fetch_all(self.stores.pg())
        .await
        .unwrap();
        events.sort();
        assert_eq!(events, expected);
    }

    /// Kills the API at each step of imports over the scraped days, which change nothing and report only their end.
    async fn kill_during_imports(&mut self) {
        let account = &self.expected.history.accounts[0];
        let videos = self.expected.history.videos.iter();
        let rows = videos.flat_map(|video| {
            video.snapshots.values().map(move |(at, counts)| {
                json!({"platform": account.platform, "username": account.username, "external_id": video.external_id,
                       "observed_at": (*at - TimeDelta::hours(1)).to_rfc3339(), "view_count": counts[0].map(|views| views / 2)})
            })
        });
        let rows: Vec<_> = rows.collect();
        for step in uploads::STEPS {
            let (organization, failpoints) = (&self.expected.organization, self.folder.path().join(API));
            uploads::upload_until_killed(&self.stores, organization, &failpoints, &rows, step).await;
            self.restart_api_killed_at(step.0).await;
            uploads::wait_ended(&self.stores).await;
        }
        self.expected.organization.wait_applied().await;
        self.assert_totals().await;
        self.assert_events().await;
    }

    /// Counts the events of the account and its posts that scrapes have found.
    async fn count_events(&self) -> i64 {
        let count = "select count(*) from events where account_id is not null and type <> 'video.breakout'";
        sqlx::query_scalar(count).fetch_one(self.stores.pg()).await.unwrap()
    }

    /// Deletes the account except for one individually tracked post, with kills of the request, of the move and of the removal.
    async fn kill_during_deletion(&mut self) {
        let post = self.expected.history.videos[0].external_id.clone();
        let organization = self.expected.organization.clone();
        let paused = json!({"platform": "tiktok", "identifier": post, "is_active": false});
        organization.post("/videos", paused).await.ok(201);
        self.expected.tracked.insert(post.clone());
        self.wait_scraped().await;
        self.assert_totals().await;
        self.arm(TRACKER, "relay-copied");
        self.arm(TRACKER, "relay-removed");
        // Its events are deleted with it.
        let events = self.count_events().await;
        for (step, left) in [("write-uncommitted", events), ("write-committed", 0)] {
            self.arm(API, step);
            let path = format!("/accounts/{}", self.expected.ids.accounts[0]);
            // The process is killed before it responds.
            let _ = self.expected.organization.request(Method::DELETE, &path).send().await;
            self.restart_api_killed_at(step).await;
            assert_eq!(self.count_events().await, left, "{step}");
        }
        self.expected.delete_account(0);
        self.restart_tracker_killed_at("relay-copied").await;
        self.restart_tracker_killed_at("relay-removed").await;
        self.expected.organization.wait_applied().await;
        self.assert_totals().await;
        self.assert_daily_rows().await;
    }

    /// Kills the API after its index commits a new creator; search finds the creator once.
    async fn kill_after_index_commit(&mut self) {
        self.arm(API, "index-committed");
        let name = format!("Mara {}", Uuid::now_v7().simple());
        let organization = self.expected.organization.clone();
        let request = organization.request(Method::POST, "/creators").json(&json!({"name": name}));
        // The process may die before it responds.
        let _ = request.send().await;
        self.restart_api_killed_at("index-committed").await;
        let path = format!("/search?q={}", name.replace(' ', "+"));
        let found = wait_until("search finds the creator", async || {
            let found = self.expected.organization.request(Method::GET, &path).send().await.ok()?;
            let found: Value = found.json().await.ok()?;
            let creators = found["data"]["creators"].as_array()?;
            assert!(creators.len() <= 1, "{found}");
            Some(creators.first()?["id"].clone())
        })
        .await;
        self.expected.creators.push((found.as_str().unwrap().parse().unwrap(), name));
    }
}

/// The thresholds that later counts reach for the first time, of several at once the highest.
fn passed_thresholds(known: Option<i64>, later: &[Option<i64>]) -> impl Iterator<Item = i64> {
    let mut passed = passed_threshold(known.unwrap_or_default());
    let reached = move |count: &Option<i64>| {
        let threshold = passed_threshold(count.unwrap_or_default());
        (threshold > passed).then(|| {
            passed = threshold;
            threshold
        })
    };
    later.iter().filter_map(reached)
}

async fn kill_after_every_step(rounds: usize) {
    let mut test = KillTest::start().await;
    test.assert_totals().await;
    for _ in 0..rounds {
        for step in STEPS {
            test.arm(TRACKER, step);
            test.sandbox.world.start_record();
            test.sandbox.world.advance(24.0).unwrap();
            test.restart_tracker_killed_at(step).await;
            test.wait_scraped().await;
            test.assert_totals().await;
        }
        test.kill_after_index_commit().await;
        test.assert_daily_rows().await;
        test.assert_events().await;
    }
    test.kill_during_imports().await;
    test.kill_during_deletion().await;
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
