//! Answers that are kept: whatever changes, through whichever process, the next answer of every process is what one
//! without a memory says; and what has not changed is answered without asking ClickHouse.

use std::sync::{Arc, Mutex};

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
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

use crate::harness::{Organization, ProxiedApi, Response, Stack, send, wait_until};

/// Two processes that keep answers and one that keeps none, and an organization that asks them.
struct Trial {
    organization: Organization,
    keeping: Vec<(ProxiedApi, Organization)>,
    forgetful: (ProxiedApi, Organization),
    today: NaiveDate,
}

/// What is asked about.
struct Asked {
    account: Uuid,
    creator: Uuid,
    videos: [(Uuid, i64); 2],
}

async fn organization() -> Organization {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    Stack::shared().organization_with(options, NewKey::named("test")).await
}

impl Trial {
    async fn begin() -> Self {
        let organization = organization().await;
        let today = organization.stack.databases.clock.now().await.date_naive();
        let mut keeping = Vec::new();
        for _ in 0..2 {
            let process = ProxiedApi::start(Settings::default()).await;
            let asking = process.client_for(&organization);
            keeping.push((process, asking));
        }
        let process = ProxiedApi::start(Settings { response_cache_bytes: 0, ..Settings::default() }).await;
        let asking = process.client_for(&organization);
        Trial { organization, keeping, forgetful: (process, asking), today }
    }

    fn ago(&self, days: u64) -> NaiveDate {
        self.today - Days::new(days)
    }

    /// One creator with a TikTok account, an Instagram account beside it, and a post on each.
    async fn load(&self) -> Asked {
        let rows = [20, 15, 8, 1].map(|days| {
            [("tiktok", "ann"), ("instagram", "bob")]
                .map(|(platform, name)| self.seen(platform, name, days, 1_000))
        });
        self.import(rows.as_flattened()).await;
        let id = |what: &str, name: &str| {
            let (pg, organization) = (self.organization.stack.databases.pg.clone(), self.organization.id);
            let sql = format!("select id, internal_id from {what} = '{name}' and organization_id = $1");
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
        self.organization.wait_applied().await;
        Asked { account, creator, videos }
    }

    fn name(&self, name: &str) -> String {
        format!("{name}{}", &self.organization.id.simple().to_string()[24..])
    }

    /// A row that says what a post had on a day: more on every day, and at least `least`. More is also later.
    fn seen(&self, platform: &str, name: &str, days: u64, least: u64) -> Value {
        let at = self.ago(days).and_hms_milli_opt(0, 0, 1, least as u32 / 100).unwrap().and_utc();
        let post = u64::from(self.organization.id.as_fields().0) * 10 + platform.len() as u64;
        json!({"platform": platform, "username": self.name(name), "external_id": post.to_string(),
               "create_time": self.ago(60), "observed_at": at, "view_count": least + 1_000 - days, "like_count": 1_000 - days})
    }

    async fn import(&self, rows: &[Value]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let lines: Vec<_> = rows.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let (stores, id) = (&self.organization.stack.databases, self.organization.id);
        let summary = import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
        assert_eq!((summary.rows_read, summary.refused), (rows.len() as u64, 0));
    }

    /// Everything that is answered from history by GET, about today and about days that are over.
    fn paths(&self, asked: &Asked) -> Vec<String> {
        let Asked { account, creator, videos: [(one, tiktok), (other, instagram)] } = asked;
        let over = format!("start_date={}&end_date={}", self.ago(17), self.ago(5));
        let mut paths = vec![format!("/videos/deltas?video_ids={one},{other}")];
        for window in ["period=30d", over.as_str()] {
            paths.extend([
                format!("/overview?{window}"),
                format!("/overview?platform=tiktok&{window}"),
                format!("/analytics/timeseries?{window}"),
                format!("/analytics/timeseries?account_id={account}&{window}"),
                format!("/creators/top?{window}"),
                format!("/creators/{creator}/analytics/timeseries?{window}"),
                format!("/creators/{creator}/analytics?{window}"),
                format!("/accounts/{account}/analytics?values=cumulative&{window}"),
                format!("/accounts/metrics?account_ids={account}&{window}"),
                format!("/videos/metrics?video_ids={one},{other}&{window}"),
                format!("/account-videos/metrics?tiktok_video_ids={tiktok}&instagram_post_ids={instagram}&{window}"),
                format!("/videos/{one}/analytics?{window}"),
            ]);
        }
        paths
    }

    /// What every process has to say now; holds those that keep answers to it, twice each.
    async fn agreed(&self, paths: &[String], after: &str) -> Vec<Option<Value>> {
        self.organization.wait_applied().await;
        let mut told = Vec::new();
        for path in paths {
            let truth = self.forgetful.1.get(path).await;
            for (process, asking) in &self.keeping {
                let first = asking.get(path).await;
                if truth.status != 200 {
                    assert_eq!((first.status, truth.status), (404, 404), "after {after}: {path}");
                    continue;
                }
                assert_eq!((first.status, &first.json), (truth.status, &truth.json), "after {after}: {path}");
                assert_eq!(first.header("etag"), truth.header("etag"), "after {after}: {path}");
                let asked = process.clickhouse.request_count();
                let again = asking.get(path).await;
                assert_eq!((again.status, &again.body), (first.status, &first.body), "after {after}: {path}");
                let tag = first.header("etag");
                let get = asking.request(reqwest::Method::GET, path).header("if-none-match", tag);
                let empty = send(get).await.ok(304);
                assert_eq!((empty.header("etag"), empty.body.len()), (tag, 0), "{path}");
                assert_eq!(
                    process.clickhouse.request_count(),
                    asked,
                    "after {after}: {path} asks ClickHouse for the same again"
                );
            }
            told.push((truth.status == 200).then_some(truth.json));
        }
        told
    }
}

#[tokio::test]
async fn every_change_shows_in_every_process_and_what_stays_is_not_asked_for_again() {
    let trial = Trial::begin().await;
    let asked = trial.load().await;
    let paths = trial.paths(&asked);
    let (organization, ago) = (&trial.organization, |days| trial.ago(days));
    let mut told = trial.agreed(&paths, "the beginning").await;
    // Says which answers a change changed.
    let mut changes = async |after: &str| {
        let now = trial.agreed(&paths, after).await;
        let changed = now.iter().zip(&told).filter(|(now, before)| now != before).count();
        told = now;
        changed
    };

    let made = organization.post("/creators", json!({"name": "Other"})).await.ok(201);
    let other = format!("/creators/{}", made.text("/data/id"));
    assert_ne!(changes("a creator is made").await, 0);
    organization.patch(&other, json!({"name": "Another"})).await.ok(200);
    assert_ne!(changes("it is renamed").await, 0);
    let account = format!("/accounts/{}", asked.account);
    organization.patch(&account, json!({"is_active": true})).await.ok(200);
    assert_ne!(changes("an account is resumed").await, 0);
    let id = json!({"platform": "tiktok", "identifier": "7300000000000000001"});
    let video = organization.post("/videos", id).await.ok(201);
    assert_ne!(changes("a video is tracked").await, 0);
    organization.delete(&format!("/videos/{}", video.text("/data/id"))).await.ok(204);
    assert_ne!(changes("it is deleted").await, 0);

    trial.import(&[trial.seen("tiktok", "ann", 0, 5_000)]).await;
    assert_ne!(changes("a post is seen today").await, 0);
    trial.import(&[trial.seen("tiktok", "ann", 9, 3_000)]).await;
    assert_ne!(changes("a day in between is imported").await, 0);
    trial.import(&[trial.seen("instagram", "bob", 70, 0)]).await;
    assert_ne!(changes("an import moves the beginning of tracking").await, 0);
    let sandboxed = organization.stack.sandbox_account("instagram").clone();
    let scraped = organization.track(&sandboxed).await;
    assert_ne!(changes("an account is scraped").await, 0);

    organization.put(&format!("{other}/accounts/{}", scraped["id"].as_str().unwrap())).await.ok(201);
    assert_ne!(changes("an account is linked").await, 0);
    let internal: i64 = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(asked.account)
        .fetch_one(organization.pg())
        .await
        .unwrap();
    let mut write = Write::begin(organization.pg(), organization.id).await.unwrap();
    write.record_subject_change(internal, Some(ago(20)));
    write.commit().await.unwrap();
    assert_eq!(changes("the rollup is computed again").await, 0);
    let name = OrganizationChange { name: Some("renamed".to_owned()), ..OrganizationChange::default() };
    organizations::update(organization.pg(), organization.id, &name).await.unwrap();
    keys::create(organization.pg(), organization.id, &NewKey::named("more")).await.unwrap();
    assert_eq!(changes("the organization and its keys change").await, 0);

    organization.delete(&format!("/creators/{}{account}", asked.creator)).await.ok(204);
    assert_ne!(changes("an account is unlinked").await, 0);
    organization.delete(&account).await.ok(204);
    assert_ne!(changes("an account is deleted").await, 0);
    organization.delete(&format!("/creators/{}", asked.creator)).await.ok(204);
    assert_ne!(changes("a creator is deleted").await, 0);
}

/// Which of the paths a process has to ask ClickHouse for.
async fn asked_again(trial: &Trial, paths: &[String]) -> Vec<bool> {
    let (process, asking) = &trial.keeping[0];
    let mut again = Vec::new();
    for path in paths {
        let before = process.clickhouse.request_count();
        let answer = asking.get(path).await.ok(200);
        let truth = trial.forgetful.1.get(path).await.ok(200);
        assert_eq!(answer.json, truth.json, "{path}");
        again.push(process.clickhouse.request_count() > before);
    }
    again
}

#[tokio::test]
async fn days_that_are_over_are_asked_for_again_only_when_they_changed() {
    let trial = Trial::begin().await;
    let asked = trial.load().await;
    let (video, account) = (asked.videos[0].0, asked.account);
    let (start, end) = (trial.ago(17), trial.ago(5));
    let paths = [
        "/analytics/timeseries?period=30d".to_owned(),
        format!("/analytics/timeseries?start_date={start}&end_date={end}"),
        format!("/accounts/metrics?account_ids={account}&start_date={start}&end_date={end}"),
        format!("/videos/{video}/analytics?start_date={start}&end_date={end}"),
        format!("/overview?start_date={start}&end_date={end}"),
    ];
    assert_eq!(asked_again(&trial, &paths).await, [true; 5]);
    assert_eq!(asked_again(&trial, &paths).await, [false; 5]);

    trial.import(&[trial.seen("tiktok", "ann", 0, 5_000)]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true, false, false, false, false], "a post is seen today");
    trial.import(&[trial.seen("tiktok", "ann", 4, 2_000)]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true, false, false, false, false], "a day after them");
    let mut found = trial.seen("tiktok", "ann", 0, 10);
    found["external_id"] = json!(format!("{}1", found["external_id"].as_str().unwrap()));
    trial.import(&[found]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true, false, false, true, true], "a post is found today");

    trial.import(&[trial.seen("instagram", "bob", 5, 4_000)]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true; 5], "their last day is imported");
    trial.import(&[trial.seen("instagram", "bob", 200, 0)]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true; 5], "a day long before");
    trial.import(&[trial.seen("tiktok", "ann", 0, 6_000)]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true, false, false, false, false], "and again today");
    let mut described = trial.seen("tiktok", "ann", 0, 7_000);
    described["description"] = json!("another caption");
    trial.import(&[described]).await;
    assert_eq!(asked_again(&trial, &paths).await, [true, false, false, true, true], "a caption changes");
}

#[tokio::test]
async fn what_was_computed_across_a_change_is_not_kept_as_what_is_so_after_it() {
    let trial = Trial::begin().await;
    trial.load().await;
    let (process, asking) = &trial.keeping[0];
    let path = "/analytics/timeseries?period=7d";
    process.clickhouse.hold();
    let early = {
        let asking = asking.clone();
        tokio::spawn(async move { asking.get(path).await })
    };
    wait_until("the question is asked", async || (process.clickhouse.request_count() == 1).then_some(()))
        .await;
    trial.import(&[trial.seen("tiktok", "ann", 0, 90_000)]).await;
    let truth = trial.forgetful.1.get(path).await.ok(200);
    process.clickhouse.release();
    let early = early.await.unwrap();
    // On a slow machine it may have waited too long.
    assert!([200, 503].contains(&early.status), "{early}");
    if early.status == 200 {
        assert_ne!(early.json["data"], truth.json["data"], "the answer that was held back is from before");
    }
    assert_eq!(asking.get(path).await.ok(200).json, truth.json);
    assert_eq!(process.clickhouse.request_count(), 2);
    assert_eq!(asking.get(path).await.ok(200).json, truth.json);
    assert_eq!(process.clickhouse.request_count(), 2);
}

#[tokio::test]
async fn the_same_question_at_once_is_asked_once_and_no_other_organization_gets_the_answer() {
    let trial = Trial::begin().await;
    trial.load().await;
    let (process, asking) = &trial.keeping[0];
    let path = "/analytics/timeseries?period=30d";
    process.clickhouse.hold();
    let all: Vec<_> = (0..8)
        .map(|_| {
            let asking = asking.clone();
            tokio::spawn(async move { asking.get(path).await })
        })
        .collect();
    wait_until("one asks", async || (process.clickhouse.request_count() == 1).then_some(())).await;
    process.clickhouse.release();
    let mut answers = Vec::new();
    for one in all {
        answers.push(one.await.unwrap().ok(200).json);
    }
    answers.dedup();
    assert_eq!((answers.len(), process.clickhouse.request_count()), (1, 1));
    let told = process.app.responses.stats().await;
    assert_eq!((told.misses, told.hits + told.shared, told.entries), (1, 7, 1));

    let nobody = process.client_for(&organization().await);
    let empty = nobody.get(path).await.ok(200);
    assert_eq!(empty.at("/meta/data_as_of"), &Value::Null);
    assert_eq!(asking.get(path).await.ok(200).json, answers[0]);
}

#[tokio::test]
async fn encoded_answers_are_kept_as_well_and_match_under_their_own_tags() {
    let trial = Trial::begin().await;
    trial.load().await;
    let (process, asking) = &trial.keeping[0];
    let get = async |encoding: &'static str, known: Option<String>| -> Response {
        let get = asking.request(reqwest::Method::GET, "/analytics/timeseries?period=90d");
        let get = get.header("accept-encoding", encoding);
        let get = known.into_iter().fold(get, |get, tag| get.header("if-none-match", tag));
        send(get).await
    };
    let plain = get("identity", None).await.ok(200);
    for encoding in ["zstd", "br", "zstd"] {
        let encoded = get(encoding, None).await.ok(200);
        assert_eq!(encoded.header("content-encoding"), encoding);
        assert!(encoded.body.len() < plain.body.len());
        let tag = encoded.header("etag").to_owned();
        assert_ne!(tag, plain.header("etag"));
        get(encoding, Some(tag)).await.ok(304);
    }
    assert_eq!(process.clickhouse.request_count(), 1);
}

/// A clock that a test sets.
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
async fn midnight_changes_what_is_about_today_and_nothing_else() {
    let trial = Trial::begin().await;
    trial.load().await;
    let evening = trial.today.and_hms_opt(23, 59, 50).unwrap().and_utc();
    let now = Arc::new(Mutex::new(evening));
    let process = ProxiedApi::start_at(clock(now.clone()).await, Settings::default()).await;
    let asking = process.client_for(&trial.organization);
    let over = format!("/analytics/timeseries?start_date={}&end_date={}", trial.ago(9), trial.ago(3));
    let relative =
        ["/overview?period=7d", "/creators/top?period=7d", "/analytics/timeseries?include_today=false"];
    let mut ends = Vec::new();
    for moment in [evening, evening + TimeDelta::seconds(9), evening + TimeDelta::seconds(10)] {
        *now.lock().unwrap() = moment;
        let before = process.clickhouse.request_count();
        for path in relative {
            let answer = asking.get(path).await.ok(200);
            let today = moment.date_naive();
            let end = if path.contains("false") { today - Days::new(1) } else { today };
            assert_eq!(answer.text("/meta/end_date"), end.to_string(), "{path} at {moment}");
            assert_eq!(answer.text("/meta/complete_through"), (today - Days::new(1)).to_string(), "{path}");
        }
        asking.get(&over).await.ok(200);
        ends.push(process.clickhouse.request_count() - before);
    }
    let [first, same_day, next_day] = ends[..] else { panic!("three moments") };
    assert_eq!(same_day, 0);
    // All but the days that are over.
    assert_eq!(next_day, first - 1);
}
