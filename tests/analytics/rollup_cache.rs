//! Rollups in memory: a process that answers from them returns what one that always queries ClickHouse returns.

use chrono::{Days, NaiveDate};
use harness::{Organization, ProxiedApi, Stack, wait_until};
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::import::{self, ImportOptions};
use tidemark::store::analytics::rollup_cache::RollupCacheStats;
use tidemark::worker::erasure;

use super::agree::{join_ids, window_query};
use super::course::Course;
use super::export_files;
use super::model::{Random, chosen_seed};
use super::steps::steps_with_retention;

const ENOUGH: u64 = 64 << 20;

/// A process with rollups in memory and one without, both with a response cache that holds no response.
struct Pair {
    memory: ProxiedApi,
    clickhouse: ProxiedApi,
}

impl Pair {
    async fn start(rollup_cache_bytes: u64) -> Self {
        let start = async |rollup_cache_bytes| {
            let settings = Settings { response_cache_bytes: 1, rollup_cache_bytes, ..Settings::default() };
            ProxiedApi::start(settings).await
        };
        Pair { memory: start(rollup_cache_bytes).await, clickhouse: start(0).await }
    }

    fn stats(&self) -> RollupCacheStats {
        self.memory.app.history.rollups().stats()
    }

    async fn agree(&self, organization: &Organization, paths: &[String]) {
        let (memory, clickhouse) =
            (self.memory.client_for(organization), self.clickhouse.client_for(organization));
        for path in paths {
            let expected = clickhouse.get(path).await.ok(200);
            assert_eq!(memory.get(path).await.ok(200).json, expected.json, "{path}");
        }
    }

    /// Compares answers from memory, and returns the numbers of reads from memory and from ClickHouse.
    async fn agree_in_memory(&self, organization: &Organization, paths: &[String]) -> [u64; 2] {
        self.load(organization).await;
        let before = self.stats();
        self.agree(organization, paths).await;
        let after = self.stats();
        [after.from_memory - before.from_memory, after.from_clickhouse - before.from_clickhouse]
    }

    /// Requests until the organization is in memory.
    async fn load(&self, organization: &Organization) {
        let client = self.memory.client_for(organization);
        wait_until("the rollup is loaded", async || {
            let before = self.stats().from_memory;
            client.get("/overview").await.ok(200);
            (self.stats().from_memory > before).then_some(())
        })
        .await;
    }
}

async fn new_organization() -> Organization {
    Stack::shared().unlimited_organization().await
}

async fn today() -> NaiveDate {
    Stack::shared().databases.clock.now().await.date_naive()
}

/// Imports an observation of an account's only post.
async fn observe(organization: &Organization, name: &str, date: NaiveDate, views: u64) {
    let post = u64::from(organization.id.as_fields().0) * 10 + name.len() as u64;
    let row = json!({"platform": "tiktok", "username": name, "external_id": post.to_string(), "view_count": views,
                     "create_time": date - Days::new(300), "observed_at": format!("{date}T00:00:01Z")});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, row.to_string()).unwrap();
    let databases = &organization.stack.databases;
    let summary =
        import::load(databases, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    assert_eq!(summary.refused, 0);
    organization.wait_applied().await;
}

async fn views(api: &ProxiedApi, organization: &Organization) -> Value {
    api.client_for(organization).get("/overview?period=90d").await.ok(200).at("/data/views/current").clone()
}

/// Every request that reads the rollup.
fn paths(course: &Course, window: (NaiveDate, NaiveDate)) -> Vec<String> {
    let (ids, window) = (&course.ids, window_query(window));
    let mut paths = Vec::new();
    for filter in ["", "&platform=instagram", "&platform=tiktok"] {
        paths.extend([
            format!("/overview?{window}{filter}"),
            format!("/analytics/timeseries?{window}{filter}&group_by=platform&compare=previous"),
            format!("/creators/top?{window}{filter}"),
            format!("/accounts/top?{window}{filter}&include_all=true&metric=followers"),
        ]);
    }
    let metrics = ["views", "likes", "comments", "shares", "engagement", "followers", "new_posts"];
    if !ids.accounts.is_empty() {
        let list = join_ids(&ids.accounts);
        paths.push(format!("/accounts/metrics?account_ids={list}&{window}"));
        paths.extend(
            metrics.map(|metric| format!("/accounts/timeseries?account_ids={list}&metric={metric}&{window}")),
        );
        paths.push(format!("/overview?account_id={}&{window}", ids.accounts[0]));
    }
    if !ids.creators.is_empty() {
        let list = join_ids(&ids.creators);
        paths.push(format!("/creators/metrics?creator_ids={list}&{window}"));
        paths.extend(
            metrics.map(|metric| format!("/creators/timeseries?creator_ids={list}&metric={metric}&{window}")),
        );
        paths.push(format!("/creators/{}/analytics/timeseries?{window}", ids.creators[0]));
        paths.push(format!("/analytics/timeseries?creator_id={}&{window}&granularity=week", ids.creators[0]));
    }
    paths
}

/// GETs, POSTs, rankings that are not cached, and exports.
#[tokio::test]
async fn every_kind_of_request_is_answered_from_memory() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    for day in 1..5 {
        observe(&organization, "ann", today - Days::new(day), 100 * (30 - day)).await;
    }
    let account = organization.get("/accounts").await.ok(200).text("/data/0/id").to_owned();
    let creator = organization.post("/creators", json!({"name": "Ann"})).await.ok(201);
    let creator = creator.text("/data/id").to_owned();
    organization.put(&format!("/creators/{creator}/accounts/{account}")).await.ok(201);
    organization.wait_applied().await;
    pair.load(&organization).await;
    let client = pair.memory.client_for(&organization);
    let mut before = pair.stats();
    let mut assert_from_memory = |name: &str| {
        let after = pair.stats();
        assert!(after.from_memory > before.from_memory, "{name}: {after:?}");
        assert_eq!(after.from_clickhouse, before.from_clickhouse, "{name}");
        before = after;
    };
    for path in [
        "/overview?period=90d",
        "/overview?category=none",
        "/analytics/timeseries",
        "/tracking/coverage",
        "/accounts/top",
        "/accounts/top?status=active",
        "/creators/top",
        "/content/top",
        "/content/top?is_unavailable=false",
        &format!("/creators/{creator}/analytics/timeseries"),
        &format!("/accounts/metrics?account_ids={account}"),
        &format!("/creators/metrics?creator_ids={creator}"),
        &format!("/accounts/timeseries?account_ids={account}"),
        &format!("/creators/timeseries?creator_ids={creator}&metric=followers"),
    ] {
        client.get(path).await.ok(200);
        assert_from_memory(path);
    }
    for (path, ids) in [
        ("/accounts/metrics", json!({"account_ids": [account]})),
        ("/creators/metrics", json!({"creator_ids": [creator]})),
    ] {
        client.post(path, ids).await.ok(200);
        assert_from_memory(&format!("POST {path}"));
    }
    for file in ["accounts.csv", "creators.csv", "daily.csv"] {
        export_files::fetch(&client, file).await.ok(200);
        assert_from_memory(file);
    }
}

/// Deletions, backfills, merges, retention and rebuilds.
#[tokio::test]
async fn memory_agrees_with_clickhouse_over_random_courses() {
    let (pair, today) = (Pair::start(ENOUGH).await, today().await);
    let mut reads = Vec::new();
    for seed in chosen_seed().map_or_else(|| vec![3, fastrand::u32(..).into()], |seed| vec![seed]) {
        let mut course = Course::start(new_organization().await, today).await;
        let mut random = Random(seed ^ 0x3E3);
        for step in steps_with_retention(seed, today) {
            course.apply(&step).await;
            course.organization.wait_applied().await;
            if let Some(since) = course.history.since {
                for api in [&pair.memory, &pair.clickhouse] {
                    wait_until("the API knows the start of history", async || {
                        let response = api.client_for(&course.organization).get("/whoami").await.ok(200);
                        (response.json["data"]["history_since"] == json!(since)).then_some(())
                    })
                    .await;
                }
            }
            if random.chance(50) {
                let start = today - Days::new(random.below(75) as u64);
                let window = (start, start + Days::new(random.below(40) as u64));
                eprintln!("seed {seed} after {step:?}");
                reads.push(pair.agree_in_memory(&course.organization, &paths(&course, window)).await);
            }
        }
        let window = (today - Days::new(60), today);
        reads.push(pair.agree_in_memory(&course.organization, &paths(&course, window)).await);
    }
    // Some from ClickHouse, if another test replaces its data meanwhile.
    let [from_memory, from_clickhouse] =
        [0, 1].map(|source| reads.iter().map(|reads| reads[source]).sum::<u64>());
    assert!(from_memory > 300 && from_memory > 9 * from_clickhouse, "{reads:?}");
    assert_eq!(pair.clickhouse.app.history.rollups().stats(), RollupCacheStats::default());
}

#[tokio::test]
async fn least_recently_used_rollup_is_evicted() {
    let (one, other, today) = (new_organization().await, new_organization().await, today().await);
    for organization in [&one, &other] {
        for day in 1..20 {
            observe(organization, "ann", today - Days::new(day), 100 * (30 - day)).await;
        }
    }
    let pair = Pair::start(ENOUGH).await;
    pair.load(&one).await;
    let bytes = pair.stats().bytes;
    assert_eq!(pair.stats().rows, 19);
    let pair = Pair::start(bytes * 3 / 2).await;
    for organization in [&one, &other, &one] {
        pair.load(organization).await;
        // Entries are evicted when the cache is used.
        wait_until("the other is evicted", async || {
            pair.agree(organization, &["/overview".to_owned()]).await;
            (pair.stats().organizations == 1).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn organization_that_does_not_fit_is_read_from_clickhouse() {
    let (organization, today) = (new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(2), 100).await;
    observe(&organization, "ann", today - Days::new(1), 150).await;
    let pair = Pair::start(10).await;
    let client = pair.memory.client_for(&organization);
    client.get("/overview").await.ok(200);
    wait_until("the rollup is read", async || {
        let requests = pair.memory.clickhouse.requests();
        requests.iter().any(|request| request.contains("rollup+cache")).then_some(())
    })
    .await;
    for _ in 0..3 {
        pair.agree(&organization, &["/overview".to_owned()]).await;
    }
    assert_eq!((pair.stats().from_memory, pair.stats().organizations), (0, 0));
}

/// Loaded and added, beside small ones, and removed with their account.
#[tokio::test]
async fn gains_beyond_32_bits_are_in_memory() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(3), 100).await;
    observe(&organization, "robert", today - Days::new(3), 100).await;
    let paths = ["/overview?period=90d", "/analytics/timeseries?period=90d", "/accounts/top?period=90d"];
    let paths = paths.map(str::to_owned);
    for (name, days, count) in [("ann", 2, 1 << 40), ("ann", 1, (1 << 40) + 7), ("robert", 1, 105)] {
        observe(&organization, name, today - Days::new(days), count).await;
        let [from_memory, from_clickhouse] = pair.agree_in_memory(&organization, &paths).await;
        assert!(from_memory > from_clickhouse, "{name} {count}");
    }
    assert_eq!(views(&pair.memory, &organization).await, json!((1_u64 << 40) + 7 - 100 + 5));
    let ann = organization.get("/accounts?q=ann").await.ok(200).text("/data/0/id").to_owned();
    organization.delete(&format!("/accounts/{ann}")).await.ok(204);
    organization.wait_applied().await;
    pair.agree_in_memory(&organization, &paths).await;
    assert_eq!(views(&pair.memory, &organization).await, json!(5));
}

#[tokio::test]
async fn rollup_answers_without_clickhouse_until_a_delivery() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(2), 100).await;
    observe(&organization, "ann", today - Days::new(1), 150).await;
    pair.load(&organization).await;
    pair.memory.clickhouse.hold();
    assert_eq!(views(&pair.memory, &organization).await, json!(50));
    observe(&organization, "ann", today, 170).await;
    pair.memory.client_for(&organization).get("/overview").await.problem(503, "SERVICE_UNAVAILABLE");
    pair.memory.clickhouse.release();
    wait_until("the API recovers", async || {
        (views(&pair.memory, &organization).await == json!(70)).then_some(())
    })
    .await;
    pair.load(&organization).await;
}

#[tokio::test]
async fn rollup_answers_nothing_while_clickhouse_is_down() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(2), 100).await;
    observe(&organization, "ann", today - Days::new(1), 150).await;
    pair.load(&organization).await;
    let history = &pair.memory.app.history;
    pair.memory.clickhouse.hold();
    history.check_clickhouse().await;
    let client = pair.memory.client_for(&organization);
    client.get("/overview?period=7d").await.problem(503, "SERVICE_UNAVAILABLE");
    pair.memory.clickhouse.release();
    wait_until("memory answers again", async || {
        history.check_clickhouse().await;
        let before = pair.stats().from_memory;
        assert_eq!(views(&pair.memory, &organization).await, json!(50));
        (pair.stats().from_memory > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn delivery_during_a_load_is_not_missed() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(2), 100).await;
    let proxy = &pair.memory.clickhouse;
    proxy.hold_after("-- The rollup of an organization.");
    let deliver_and_release = async {
        proxy.wait_held(1).await;
        observe(&organization, "ann", today - Days::new(1), 150).await;
        proxy.hold_after("in no statement");
        proxy.release();
    };
    // The load begins a tenth of a second after the request, whose own statements may be held with it.
    let client = pair.memory.client_for(&organization);
    tokio::join!(client.get("/overview?period=90d"), deliver_and_release);
    pair.load(&organization).await;
    assert_eq!(views(&pair.memory, &organization).await, json!(50));
    assert_eq!(pair.stats().rows, 2);
}

#[tokio::test]
async fn purged_tombstones_invalidate_the_organizations_rollups() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    let other = new_organization().await;
    observe(&other, "eve", today - Days::new(1), 100).await;
    pair.load(&other).await;
    for (name, views) in [("ann", 150), ("robert", 190)] {
        observe(&organization, name, today - Days::new(2), 100).await;
        observe(&organization, name, today - Days::new(1), views).await;
    }
    pair.load(&organization).await;
    assert_eq!(views(&pair.memory, &organization).await, json!(140));
    let account = organization.get("/accounts?q=robert").await.ok(200).text("/data/0/id").to_owned();
    organization.delete(&format!("/accounts/{account}")).await.ok(204);
    organization.wait_applied().await;
    let databases = &organization.stack.databases;
    let erased = wait_until("the erasure lock is free", async || {
        erasure::run_once(databases, Some(organization.id)).await.unwrap()
    });
    assert_ne!(erased.await.history_rows, 0);
    let before = pair.stats();
    views(&pair.memory, &other).await;
    assert_eq!(pair.stats().from_clickhouse, before.from_clickhouse, "the other organization's are current");
    assert_eq!(views(&pair.memory, &organization).await, json!(50));
    assert_ne!(pair.stats().from_clickhouse, before.from_clickhouse, "its own are outdated");
    pair.load(&organization).await;
    assert_eq!(views(&pair.memory, &organization).await, json!(50));
}

/// In the background, without a request.
#[tokio::test]
async fn follower_applies_deliveries() {
    let (pair, organization, today) = (Pair::start(ENOUGH).await, new_organization().await, today().await);
    observe(&organization, "ann", today - Days::new(2), 100).await;
    pair.load(&organization).await;
    observe(&organization, "ann", today - Days::new(1), 150).await;
    let app = &pair.memory.app;
    let uses = app.history.rollups().watch_uses();
    app.history.follow(&app.pg).await.unwrap();
    assert_eq!(pair.stats().rows, 2);
    assert!(!uses.has_changed().unwrap(), "no request came");
    pair.memory.clickhouse.hold();
    assert_eq!(views(&pair.memory, &organization).await, json!(50));
    assert!(uses.has_changed().unwrap());
    pair.memory.clickhouse.release();
}
