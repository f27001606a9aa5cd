//! Kills after every durable step of a number's way, from the commit of a scrape to the acknowledged outbox and the
//! search index: the next process goes on, and every total is what was served.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::model::period::{Period, Window};
use tidemark::model::platform::Platform;
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::{SandboxServer, start};
use tidemark::sandbox::world::World;
use tidemark::store::analytics::subjects::{self, GainColumns};
use tidemark::store::analytics::{HistoryReader, SubjectScope};
use tidemark::store::observations::AccountRef;
use tidemark::store::records::keys::{self, NewKey};
use uuid::Uuid;

use crate::harness::{IsolatedStores, create_organization, http_client, send, wait_until};
use crate::setup::{delete_account, track_individually};
use tidemark::store::records::organizations::OrganizationChange;

/// The steps after which the tracker is killed, day after day.
const STEPS: [&str; 7] = [
    "write-committed",
    "relay-numbered",
    "relay-dimensions",
    "relay-snapshots",
    "relay-rollup",
    "relay-recorded",
    "relay-finished",
];

/// A process of the service, which ends with the test.
struct Process {
    child: Child,
    /// The pipe that it lives by.
    _lifeline: Option<ChildStdin>,
}

/// One account on its way: a sandbox with a clock, a tracker and an API over stores of their stores.
struct Course {
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
    /// Per day, each post's views as Postgres knew them when the day's scrape was in, and the followers.
    known: BTreeMap<NaiveDate, (BTreeMap<String, i64>, i64)>,
}

impl Process {
    fn start(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path, arguments: &[&str]) -> Self {
        let connection = crate::harness::Stack::shared().connection;
        let name = stores.connection.database_url.rsplit('/').next().unwrap();
        let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let mut child = connection
            .command()
            .arg("--exit-with-parent")
            .arg(folder.join("lock"))
            .args(arguments)
            .env("TIDEMARK_DATABASE_URL", &stores.connection.database_url)
            .env("TIDEMARK_CLICKHOUSE_DATABASE", name)
            .env("TIDEMARK_FAILPOINTS", folder.join("armed"))
            .envs(sandbox.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lifeline = child.stdin.take();
        Process { child, _lifeline: lifeline }
    }

    fn tracker(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> Self {
        Process::start(stores, sandbox, folder, &["track"])
    }

    /// Starts the API and waits for its address.
    fn api(stores: &IsolatedStores, sandbox: &SandboxServer, folder: &Path) -> (Self, String) {
        let index = folder.join("search");
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--search-index", index.to_str().unwrap()];
        let mut process = Process::start(stores, sandbox, folder, &arguments);
        let mut line = String::new();
        BufReader::new(process.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        (process, ready["url"].as_str().unwrap().to_owned())
    }

    async fn has_died(&mut self, step: &str) {
        let what = format!("the process dies at {step}");
        let status = wait_until(&what, || std::future::ready(self.child.try_wait().unwrap())).await;
        assert!(!status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Course {
    /// Tracks an account of the sandbox and waits for its first day.
    async fn start() -> Self {
        let stores = IsolatedStores::create().await;
        let noon: DateTime<Utc> = "2026-03-10T12:00:00Z".parse().unwrap();
        let world = World::open(Population::new(5, 8), None, Some(noon)).unwrap();
        let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("armed")).unwrap();
        let tracker = Process::tracker(&stores, &sandbox, folder.path());
        let (api, url) = Process::api(&stores, &sandbox, folder.path());
        let (organization, _) = create_organization(stores.pg(), OrganizationChange::default()).await;
        let key = keys::create(stores.pg(), organization, &NewKey::named("test")).await.unwrap().key;
        let accounts = sandbox.world.population().accounts();
        let username =
            accounts.iter().find(|account| account.platform == Platform::Tiktok).unwrap().username.clone();
        let body = json!({"platform": "tiktok", "username": username});
        let made =
            send(http_client().post(format!("{url}/accounts")).bearer_auth(&key).json(&body)).await.ok(201);
        let id = made.json["data"]["id"].as_str().unwrap().parse().unwrap();
        let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
            .bind(id)
            .fetch_one(stores.pg())
            .await
            .unwrap();
        let account = AccountRef { id, subject_id };
        let known = BTreeMap::new();
        let mut course = Course {
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
            known,
        };
        course.scraped().await;
        course
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

    async fn tracker_dies_at(&mut self, step: &str) {
        self.tracker.has_died(step).await;
        assert!(!self.armed(step).exists(), "{step} was not reached");
        self.tracker = Process::tracker(&self.stores, &self.sandbox, self.folder.path());
    }

    async fn api_dies_at(&mut self, step: &str) {
        self.api.has_died(step).await;
        (self.api, self.url) = Process::api(&self.stores, &self.sandbox, self.folder.path());
    }

    /// Waits until the day's scrape is in and applied, and notes what is known by it.
    async fn scraped(&mut self) {
        let today = self.today();
        wait_until("the day's scrape is in", || async {
            let last: Option<DateTime<Utc>> =
                sqlx::query_scalar("select last_scrape_time from accounts where id = $1")
                    .bind(self.account.id)
                    .fetch_one(self.stores.pg())
                    .await
                    .unwrap();
            last.filter(|last| last.date_naive() == today)
        })
        .await;
        self.note().await;
        self.applied().await;
    }

    async fn note(&mut self) {
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
        self.known.insert(self.today(), (posts.into_iter().collect(), followers.unwrap_or_default()));
    }

    async fn applied(&self) {
        let position = i64::MAX;
        let wait = tidemark::store::outbox::visibility::wait_for_position(
            self.stores.pg(),
            self.organization,
            position,
        );
        tokio::time::timeout(crate::harness::WAIT_TIMEOUT, wait).await.expect("it is applied").unwrap();
    }

    /// Compares every day's gain and the level of followers with what was known on each of the days.
    async fn check(&self, only: Option<&str>) {
        let (first, today) = (*self.known.keys().next().unwrap(), self.today());
        let scope = SubjectScope::for_organization(self.stores.pg(), self.organization, None).await.unwrap();
        let window = Window { period: Period::Custom, start: first, end: today };
        let history = HistoryReader::new(&self.stores.databases.clickhouse, 2);
        let daily = subjects::fetch_daily(&history, &scope, window, GainColumns::All).await.unwrap();
        let gained: BTreeMap<_, _> = daily.into_iter().map(|(date, day)| (date, day.gains.views)).collect();
        for (day, (posts, _)) in &self.known {
            let before = self.known.get(&(*day - Days::new(1))).map(|known| &known.0);
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
        let followers = self.known.values().last().unwrap().1;
        assert_eq!(levels.followers, only.is_none().then_some(followers));
    }

    fn created(&self, post: &str) -> DateTime<Utc> {
        let seen = self.sandbox.world.find_by_username(Platform::Tiktok, &self.username).unwrap();
        let posts: Vec<_> = seen.account.posts_at(seen.now).collect();
        posts.iter().find(|other| other.id == post).expect("the sandbox knows it").create_time
    }

    /// Compares what is known of each post with what the sandbox had to serve when it was scraped last.
    async fn check_served(&self) {
        let known: Vec<(String, i64, DateTime<Utc>)> = sqlx::query_as(
            "select external_id, view_count, last_scrape_time from videos where organization_id = $1",
        )
        .bind(self.organization)
        .fetch_all(self.stores.pg())
        .await
        .unwrap();
        assert!(known.len() > 10, "{known:?}");
        let seen = self.sandbox.world.find_by_username(Platform::Tiktok, &self.username).unwrap();
        let posts: BTreeMap<_, _> =
            seen.account.posts_at(seen.now).map(|post| (post.id.clone(), post)).collect();
        for (post, views, scraped_at) in known {
            let at = |time| posts[&post].counters_at(time).view_count.unwrap();
            let (least, most) = (at(scraped_at), at(scraped_at + TimeDelta::minutes(1)));
            assert!(least.min(most) <= views && views <= most.max(least), "{views} not in {least}..{most}");
        }
    }

    /// A creator that was just added is found, once, by an API that died when its index had it.
    async fn index_survives_a_kill(&mut self) {
        self.arm("index-committed");
        let name = format!("Mara {}", Uuid::now_v7().simple());
        let request = http_client().post(format!("{}/creators", self.url)).bearer_auth(&self.key);
        // The process may end before it has answered.
        let _ = request.json(&json!({"name": name})).send().await;
        self.api_dies_at("index-committed").await;
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
    let mut course = Course::start().await;
    course.check(None).await;
    for _ in 0..rounds {
        for step in STEPS {
            course.arm(step);
            course.sandbox.world.advance(24.0).unwrap();
            course.tracker_dies_at(step).await;
            course.scraped().await;
            course.check(None).await;
            course.check_served().await;
        }
        course.index_survives_a_kill().await;
    }
    // The account goes, but for one post that is tracked on its stores: moved and removed, with a kill within each.
    let post = course.known.values().next().unwrap().0.keys().next().unwrap().clone();
    track_individually(course.stores.pg(), course.organization, &post, course.sandbox.world.now()).await;
    course.applied().await;
    course.check(None).await;
    course.arm("relay-copied");
    course.arm("relay-removed");
    delete_account(course.stores.pg(), course.organization, course.account).await;
    course.tracker_dies_at("relay-copied").await;
    course.tracker_dies_at("relay-removed").await;
    course.applied().await;
    course.check(Some(&post)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_any_step_loses_nothing_and_doubles_nothing() {
    kill_after_every_step(1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn twenty_kills_after_every_step_lose_nothing_and_double_nothing() {
    kill_after_every_step(20).await;
}
