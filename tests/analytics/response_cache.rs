//! Cached responses: after a change through any process, every process returns what one without a cache returns.
//! Responses whose data did not change need no ClickHouse query.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use harness::{Organization, ProxiedApi, Response, Stack, send, wait_until};
use serde_json::{Value, json};
use tidemark::app::{Clock, Settings};
use tidemark::import::{self, ImportOptions};
use tidemark::store::Write;
use tidemark::store::records::keys;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::{self, OrganizationChange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

/// Two processes with a response cache, one without, and an organization that uses them.
pub(crate) struct CacheTest {
    pub(crate) organization: Organization,
    pub(crate) cached: Vec<(ProxiedApi, Organization)>,
    pub(crate) uncached: (ProxiedApi, Organization),
    today: NaiveDate,
}

/// The records that requests are about.
pub(crate) struct Records {
    pub(crate) account: Uuid,
    pub(crate) creator: Uuid,
    videos: [(Uuid, i64); 2],
    /// A post with views at the age of a week.
    aged: Uuid,
}

/// Settings with which a response from another source than the cache needs a query.
fn without_rollups() -> Settings {
    Settings { rollup_cache_bytes: 0, ..Settings::default() }
}

impl CacheTest {
    pub(crate) async fn start() -> Self {
        let organization = Stack::shared().unlimited_organization().await;
        let today = organization.stack.databases.clock.now().await.date_naive();
        let mut cached = Vec::new();
        for _ in 0..2 {
            let process = ProxiedApi::start(without_rollups()).await;
            let client = process.client_for(&organization);
            cached.push((process, client));
        }
        let process = ProxiedApi::start(Settings { response_cache_bytes: 0, ..Settings::default() }).await;
        let client = process.client_for(&organization);
        CacheTest { organization, cached, uncached: (process, client), today }
    }

    fn ago(&self, days: u64) -> NaiveDate {
        self.today - Days::new(days)
    }

    /// A creator with a TikTok account, an unlinked Instagram account, and a post on each; and posts of the first account
    /// that are compared at the age of a week.
    pub(crate) async fn load(&self) -> Records {
        let rows = [20, 15, 8, 1].map(|days| {
            [("tiktok", "ann"), ("instagram", "bob")]
                .map(|(platform, name)| self.row(platform, name, days, 1_000))
        });
        self.import(rows.as_flattened()).await;
        let id = |filter: &str, name: &str| {
            let (pg, organization) = (self.organization.stack.databases.pg.clone(), self.organization.id);
            let sql = format!("select id, internal_id from {filter} = '{name}' and organization_id = $1");
            async move {
                let row: (Uuid, i64) =
                    sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(organization).fetch_one(&pg).await.unwrap();
                row
            }
        };
        let account = id("accounts where username", &self.name("ann")).await.0;
        let creator = self.organization.post("/creators", json!({"name": "Ann"})).await.ok(201);
        let creator: Uuid = creator.text("/data/id").parse().unwrap();
        self.organization.put(&format!("/creators/{creator}/accounts/{account}")).await.ok(201);
        let post = "videos where platform";
        let videos = [id(post, "tiktok").await, id(post, "instagram").await];
        let aged: Vec<_> =
            (0..12).flat_map(|n| [(0, 1), (7, 100 + n)].map(|at| self.aged_row(n, at))).collect();
        self.import(&aged).await;
        self.organization.wait_applied().await;
        let breakouts = self.organization.get("/content/breakouts?min_multiple=1").await.ok(200);
        assert_eq!(breakouts.list("/data").len(), 2, "{breakouts}");
        let aged = breakouts.text("/data/0/id").parse().unwrap();
        Records { account, creator, videos, aged }
    }

    /// An import row of a post with views at an age; more views are observed later on their day.
    fn aged_row(&self, number: u64, (age, views): (u64, u64)) -> Value {
        let posted = self.ago(30 - number);
        let at = (posted + Days::new(age)).and_hms_milli_opt(0, 0, 0, views as u32).unwrap().and_utc();
        let post = u64::from(self.organization.id.as_fields().0) * 1_000 + number;
        json!({"platform": "tiktok", "username": self.name("ann"), "external_id": post.to_string(),
               "create_time": posted, "observed_at": at, "view_count": views})
    }

    fn name(&self, name: &str) -> String {
        format!("{name}{}", &self.organization.id.simple().to_string()[24..])
    }

    /// An import row of a post. Counts grow by day and with `least`; a higher `least` is also observed later on its day.
    pub(crate) fn row(&self, platform: &str, name: &str, days: u64, least: u64) -> Value {
        let at = self.ago(days).and_hms_milli_opt(0, 0, 1, least as u32 / 100).unwrap().and_utc();
        let post = u64::from(self.organization.id.as_fields().0) * 10 + platform.len() as u64;
        json!({"platform": platform, "username": self.name(name), "external_id": post.to_string(),
               "create_time": self.ago(60), "observed_at": at, "view_count": least + 1_000 - days, "like_count": 1_000 - days})
    }

    pub(crate) async fn import(&self, rows: &[Value]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let lines: Vec<_> = rows.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let (stores, id) = (&self.organization.stack.databases, self.organization.id);
        let summary = import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
        assert_eq!((summary.rows_read, summary.refused), (rows.len() as u64, 0));
    }

    /// Every GET of history, over windows with and without today.
    pub(crate) fn paths(&self, records: &Records) -> Vec<String> {
        let Records { account, creator, videos: [(one, tiktok), (other, instagram)], aged } = records;
        let past = format!("start_date={}&end_date={}", self.ago(17), self.ago(5));
        let mut paths = vec![
            format!("/videos/deltas?video_ids={one},{other}"),
            format!("/content/{one}/ages"),
            format!("/content/ages?ids={one},{aged}"),
            "/content/breakouts?min_multiple=1".to_owned(),
            format!("/accounts/{account}/benchmarks?ages=1,7"),
        ];
        for window in ["period=30d", past.as_str()] {
            paths.extend([
                format!("/overview?{window}"),
                format!("/overview?platform=tiktok&{window}"),
                format!("/analytics/timeseries?{window}"),
                format!("/analytics/timeseries?account_id={account}&compare=previous&granularity=week&{window}"),
                format!("/overview?creator_id={creator}&{window}"),
                format!("/creators/top?{window}"),
                format!("/accounts/top?metric=new_posts&limit=1&{window}"),
                format!("/creators/metrics?creator_ids={creator}&{window}"),
                format!("/creators/{creator}/analytics/timeseries?{window}"),
                format!("/creators/{creator}/analytics?{window}"),
                format!("/accounts/{account}/analytics?values=cumulative&{window}"),
                format!("/accounts/metrics?account_ids={account}&{window}"),
                format!("/videos/metrics?video_ids={one},{other}&{window}"),
                format!("/account-videos/metrics?tiktok_video_ids={tiktok}&instagram_post_ids={instagram}&{window}"),
                format!("/videos/{one}/analytics?{window}"),
                format!("/accounts/timeseries?account_ids={account}&metric=followers&{window}"),
                format!("/creators/timeseries?creator_ids={creator}&metric=new_posts&{window}"),
                format!("/content/timeseries?ids={one},{other}&{window}"),
                format!("/content/top?{window}"),
                format!("/content/top?include_all=true&metric=likes&account_id={account}&{window}"),
            ]);
        }
        paths
    }

    /// Returns the current responses, after change `number`. Checks one cached process for each path against the uncached
    /// one, twice; after the next change, it is the other process, whose responses may be from before both changes.
    async fn check_all(&self, paths: &[String], number: usize, after: &str) -> Vec<Option<Value>> {
        self.organization.wait_applied().await;
        let mut responses = Vec::new();
        for (path_number, path) in paths.iter().enumerate() {
            let after = format!("after {after}: {path}");
            let expected = self.uncached.1.get(path).await;
            let (process, client) = &self.cached[(path_number + number) % self.cached.len()];
            let first = client.get(path).await;
            if expected.status == 200 {
                assert_eq!((first.status, &first.json), (200, &expected.json), "{after}");
                assert_eq!(first.header("etag"), expected.header("etag"), "{after}");
                check_cached(process, client, path, &first, &after).await;
            } else {
                assert_eq!((first.status, expected.status), (404, 404), "{after}");
            }
            responses.push((expected.status == 200).then_some(expected.json));
        }
        responses
    }
}

/// Checks that a process responds a second time with the same bytes, and without a query.
async fn check_cached(
    process: &ProxiedApi,
    client: &Organization,
    path: &str,
    first: &Response,
    after: &str,
) {
    let requests = process.clickhouse.request_count();
    let second = client.get(path).await;
    assert_eq!((second.status, &second.body), (first.status, &first.body), "{after}");
    let tag = first.header("etag");
    let get = client.request(reqwest::Method::GET, path).header("if-none-match", tag);
    let not_modified = send(get).await.ok(304);
    assert_eq!((not_modified.header("etag"), not_modified.body.len()), (tag, 0), "{after}");
    assert_eq!(process.clickhouse.request_count(), requests, "{after} queries ClickHouse for cached data");
}

#[tokio::test]
async fn changes_show_in_every_process_and_the_rest_stays_cached() {
    let test = CacheTest::start().await;
    let records = test.load().await;
    let paths = test.paths(&records);
    let (organization, ago) = (&test.organization, |days| test.ago(days));
    let mut previous = test.check_all(&paths, 0, "the start").await;
    // Counts the responses that a change affects.
    let mut number = 0;
    let mut changes = async |after: &str| {
        number += 1;
        let now = test.check_all(&paths, number, after).await;
        let changed = now.iter().zip(&previous).filter(|(now, before)| now != before).count();
        previous = now;
        changed
    };

    let created = organization.post("/creators", json!({"name": "Other"})).await.ok(201);
    let other = format!("/creators/{}", created.text("/data/id"));
    assert_ne!(changes("a creator is created").await, 0);
    organization.patch(&other, json!({"name": "Another"})).await.ok(200);
    assert_ne!(changes("it is renamed").await, 0);
    let account = format!("/accounts/{}", records.account);
    organization.patch(&account, json!({"is_active": true})).await.ok(200);
    assert_ne!(changes("an account is resumed").await, 0);
    // Another attempt to read it would change its status later.
    organization.patch(&account, json!({"is_active": false})).await.ok(200);
    assert_ne!(changes("it is paused").await, 0);
    let id = json!({"platform": "tiktok", "identifier": "7300000000000000001"});
    let video = organization.post("/videos", id).await.ok(201);
    assert_ne!(changes("a video is tracked").await, 0);
    organization.delete(&format!("/videos/{}", video.text("/data/id"))).await.ok(204);
    assert_ne!(changes("it is deleted").await, 0);

    test.import(&[test.row("tiktok", "ann", 0, 5_000)]).await;
    assert_ne!(changes("a post is observed today").await, 0);
    let profile = json!({"platform": "tiktok", "username": test.name("ann"), "observed_at": ago(0), "follower_count": 7});
    test.import(&[profile]).await;
    assert_ne!(changes("followers are observed today").await, 0);
    test.import(&[test.row("tiktok", "ann", 9, 3_000)]).await;
    assert_ne!(changes("a day between others is imported").await, 0);
    test.import(&[test.aged_row(2, (7, 900))]).await;
    assert_ne!(changes("an earlier post has other views at an age").await, 0);
    test.import(&[test.aged_row(0, (3, 30))]).await;
    assert_ne!(changes("a day before an age is imported").await, 0);
    test.import(&[test.row("instagram", "bob", 70, 0)]).await;
    assert_ne!(changes("an import moves the tracking start").await, 0);
    let sandbox_account = organization.stack.sandbox_account("instagram").clone();
    let scraped = organization.track(&sandbox_account).await["id"].as_str().unwrap().to_owned();
    wait_for_pictures(organization, &scraped).await;
    assert_ne!(changes("an account is scraped").await, 0);

    organization.put(&format!("{other}/accounts/{scraped}")).await.ok(201);
    assert_ne!(changes("an account is linked").await, 0);
    let internal: i64 = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(records.account)
        .fetch_one(organization.pg())
        .await
        .unwrap();
    let mut write = Write::begin(organization.pg(), organization.id).await.unwrap();
    write.record_subject_change(internal, Some(ago(20)));
    write.commit().await.unwrap();
    assert_eq!(changes("the rollup is recomputed").await, 0);
    let name = OrganizationChange { name: Some("renamed".to_owned()), ..OrganizationChange::default() };
    organizations::update(organization.pg(), organization.id, &name).await.unwrap();
    keys::create(organization.pg(), organization.id, &NewKey::named("more")).await.unwrap();
    assert_eq!(changes("the organization and its keys change").await, 0);

    organization.delete(&format!("/creators/{}{account}", records.creator)).await.ok(204);
    assert_ne!(changes("an account is unlinked").await, 0);
    organization.delete(&account).await.ok(204);
    assert_ne!(changes("an account is deleted").await, 0);
    organization.delete(&format!("/creators/{}", records.creator)).await.ok(204);
    assert_ne!(changes("a creator is deleted").await, 0);
}

/// Waits until the pictures of a scraped account are copied: responses show each at another time.
async fn wait_for_pictures(organization: &Organization, account: &str) {
    let account: Uuid = account.parse().unwrap();
    wait_until("the pictures are copied", async || {
        let are_copied: bool = sqlx::query_scalar(
            "select count(*) filter (where record_id = $2) = 1 and count(due_at) = 0
             from record_pictures where organization_id = $1",
        )
        .bind(organization.id)
        .bind(account)
        .fetch_one(organization.pg())
        .await
        .unwrap();
        are_copied.then_some(())
    })
    .await;
}

/// Which of the paths need a ClickHouse query.
async fn query_clickhouse(test: &CacheTest, paths: &[String]) -> Vec<bool> {
    let (process, client) = &test.cached[0];
    let mut queried = Vec::new();
    for path in paths {
        let before = process.clickhouse.request_count();
        let response = client.get(path).await.ok(200);
        let expected = test.uncached.1.get(path).await.ok(200);
        assert_eq!(response.json, expected.json, "{path}");
        queried.push(process.clickhouse.request_count() > before);
    }
    queried
}

#[tokio::test]
async fn past_windows_are_recomputed_only_after_changes() {
    let test = CacheTest::start().await;
    let records = test.load().await;
    let (video, account) = (records.videos[0].0, records.account);
    let (start, end) = (test.ago(17), test.ago(5));
    let paths = [
        "/analytics/timeseries?period=30d".to_owned(),
        format!("/analytics/timeseries?start_date={start}&end_date={end}"),
        format!("/accounts/metrics?account_ids={account}&start_date={start}&end_date={end}"),
        format!("/videos/{video}/analytics?start_date={start}&end_date={end}"),
        format!("/overview?start_date={start}&end_date={end}"),
    ];
    assert_eq!(query_clickhouse(&test, &paths).await, [true; 5]);
    assert_eq!(query_clickhouse(&test, &paths).await, [false; 5]);

    test.import(&[test.row("tiktok", "ann", 0, 5_000)]).await;
    assert_eq!(
        query_clickhouse(&test, &paths).await,
        [true, false, false, false, false],
        "a post is observed today"
    );
    test.import(&[test.row("tiktok", "ann", 4, 2_000)]).await;
    assert_eq!(
        query_clickhouse(&test, &paths).await,
        [true, false, false, false, false],
        "a day after the window"
    );
    let mut found = test.row("tiktok", "ann", 0, 10);
    found["external_id"] = json!(format!("{}1", found["external_id"].as_str().unwrap()));
    test.import(&[found]).await;
    assert_eq!(
        query_clickhouse(&test, &paths).await,
        [true, true, false, true, true],
        "a new post is found today"
    );

    test.import(&[test.row("instagram", "bob", 5, 4_000)]).await;
    assert_eq!(query_clickhouse(&test, &paths).await, [true; 5], "the last day of the window is imported");
    test.import(&[test.row("instagram", "bob", 200, 0)]).await;
    assert_eq!(query_clickhouse(&test, &paths).await, [true; 5], "a day long before the window");
    test.import(&[test.row("tiktok", "ann", 0, 6_000)]).await;
    assert_eq!(
        query_clickhouse(&test, &paths).await,
        [true, false, false, false, false],
        "a second observation today"
    );
    let mut described = test.row("tiktok", "ann", 0, 7_000);
    described["description"] = json!("another caption");
    test.import(&[described]).await;
    assert_eq!(query_clickhouse(&test, &paths).await, [true, true, false, true, true], "a caption changes");
}

#[tokio::test]
async fn response_computed_during_a_change_is_not_cached() {
    let test = CacheTest::start().await;
    let Records { creator, account, .. } = test.load().await;
    let (process, client) = &test.cached[0];
    let path = format!("/creators/{creator}/analytics/timeseries?period=30d");
    process.clickhouse.hold();
    let early = {
        let (client, path) = (client.clone(), path.clone());
        tokio::spawn(async move { client.get(&path).await })
    };
    wait_until("the query is sent", async || (process.clickhouse.request_count() == 1).then_some(())).await;
    // A change in Postgres alone: one that has to reach ClickHouse could outlast the timeout of the query.
    test.organization.delete(&format!("/creators/{creator}/accounts/{account}")).await.ok(204);
    process.clickhouse.release();
    let early = early.await.unwrap().ok(200);
    let expected = test.uncached.1.get(&path).await.ok(200);
    assert_ne!(early.json["data"], expected.json["data"], "the delayed response precedes the change");
    for _ in 0..2 {
        assert_eq!(client.get(&path).await.ok(200).json, expected.json);
    }
}

#[tokio::test]
async fn concurrent_requests_share_a_query_within_an_organization() {
    let test = CacheTest::start().await;
    test.load().await;
    let (process, client) = &test.cached[0];
    let path = "/analytics/timeseries?period=30d";
    process.clickhouse.hold();
    let pending: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get(path).await })
        })
        .collect();
    // Gains and followers.
    wait_until("two queries are sent", async || (process.clickhouse.request_count() == 2).then_some(()))
        .await;
    process.clickhouse.release();
    let mut responses = Vec::new();
    for request in pending {
        responses.push(request.await.unwrap().ok(200).json);
    }
    responses.dedup();
    assert_eq!((responses.len(), process.clickhouse.request_count()), (1, 2));
    let stats = process.app.responses.stats().await;
    assert_eq!((stats.misses, stats.hits + stats.shared, stats.entries), (1, 7, 1));

    let other = process.client_for(&Stack::shared().unlimited_organization().await);
    let empty = other.get(path).await.ok(200);
    assert_eq!(empty.at("/meta/data_as_of"), &Value::Null);
    assert_eq!(client.get(path).await.ok(200).json, responses[0]);
}

#[tokio::test]
async fn defaults_share_a_response_with_their_explicit_values() {
    let test = CacheTest::start().await;
    test.load().await;
    let (process, client) = &test.cached[0];
    for (default, explicit, different) in [
        ("/overview", "/overview?period=30d", "/overview?period=7d"),
        ("/creators/top", "/creators/top?limit=10&period=30d", "/creators/top?limit=9"),
        (
            "/analytics/timeseries",
            "/analytics/timeseries?include_today=true",
            "/analytics/timeseries?platform=tiktok",
        ),
    ] {
        let computed = client.get(default).await.ok(200).json;
        let before = process.clickhouse.request_count();
        assert_eq!(client.get(explicit).await.ok(200).json, computed, "{explicit}");
        assert_eq!(process.clickhouse.request_count(), before, "{explicit} is served from the cache");
        client.get(different).await.ok(200);
        assert!(process.clickhouse.request_count() > before, "{different} is not");
    }
}

#[tokio::test]
async fn encoded_responses_are_cached_and_have_their_own_etags() {
    let test = CacheTest::start().await;
    test.load().await;
    let (process, client) = &test.cached[0];
    let get = async |encoding: &'static str, etag: Option<String>| -> Response {
        let get = client.request(reqwest::Method::GET, "/analytics/timeseries?period=90d");
        let get = get.header("accept-encoding", encoding);
        let get = etag.into_iter().fold(get, |get, tag| get.header("if-none-match", tag));
        send(get).await
    };
    let plain = get("identity", None).await.ok(200);
    let queries = process.clickhouse.request_count();
    for encoding in ["zstd", "br", "zstd"] {
        let encoded = get(encoding, None).await.ok(200);
        assert_eq!(encoded.header("content-encoding"), encoding);
        assert!(encoded.body.len() < plain.body.len());
        let tag = encoded.header("etag").to_owned();
        assert_ne!(tag, plain.header("etag"));
        get(encoding, Some(tag)).await.ok(304);
    }
    assert_eq!(process.clickhouse.request_count(), queries);
}

/// Serves the time that the test sets.
async fn clock(now: Arc<Mutex<DateTime<Utc>>>) -> Clock {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/_clock", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = client.read(&mut request).await;
            let body = json!({"now": *now.lock().unwrap()}).to_string();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            let _ = client.write_all((head + &body).as_bytes()).await;
        }
    });
    Clock::remote(url).unwrap()
}

#[tokio::test]
async fn midnight_invalidates_relative_windows_only() {
    let test = CacheTest::start().await;
    test.load().await;
    let evening = test.today.and_hms_opt(23, 59, 50).unwrap().and_utc();
    let now = Arc::new(Mutex::new(evening));
    let process = ProxiedApi::start_at(clock(now.clone()).await, without_rollups()).await;
    let client = process.client_for(&test.organization);
    let past = format!("/analytics/timeseries?start_date={}&end_date={}", test.ago(9), test.ago(3));
    let relative =
        ["/overview?period=7d", "/creators/top?period=7d", "/analytics/timeseries?include_today=false"];
    let mut queries = Vec::new();
    for moment in [evening, evening + TimeDelta::seconds(9), evening + TimeDelta::seconds(10)] {
        *now.lock().unwrap() = moment;
        let before = process.clickhouse.request_count();
        for path in relative {
            let response = client.get(path).await.ok(200);
            let today = moment.date_naive();
            let end = if path.contains("false") { today - Days::new(1) } else { today };
            assert_eq!(response.text("/meta/end_date"), end.to_string(), "{path} at {moment}");
            assert_eq!(response.text("/meta/complete_through"), (today - Days::new(1)).to_string(), "{path}");
        }
        let breakouts = client.get("/content/breakouts").await.ok(200);
        let posted_after = moment.date_naive() - Days::new(90);
        assert_eq!(breakouts.text("/meta/posted_after"), posted_after.to_string());
        client.get(&past).await.ok(200);
        queries.push(process.clickhouse.request_count() - before);
    }
    let [first, same_day, next_day] = queries[..] else { panic!("three moments") };
    assert_eq!(same_day, 0);
    // All but the gains and followers of the fixed past window.
    assert_eq!(next_day, first - 2);
}
