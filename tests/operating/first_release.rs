//! Both stores as 0.1.0 left them are opened and migrated by this version, and requests have the same figures.
//!
//! tests/releases/0.1.0 has a dump of each store and the responses of 0.1.0. `make release-fixture` rewrites it until 0.1.0
//! is released. From then on it never changes: a later version may only add fields to responses, and what follows from known
//! ids.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clickhouse::Client;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use harness::relay::scrape_at;
use harness::{IsolatedStores, create_organization, postgres_clients, wait_until};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tidemark::app::Clock;
use tidemark::import::{self, ImportOptions};
use tidemark::model::identifier::VideoIds;
use tidemark::model::platform::Platform;
use tidemark::rollup::verify;
use tidemark::store::records::imports;
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::worker::erasure;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::backups::Api;
use crate::migrations::run;

/// The service clock of all requests.
const NOW: &str = "2026-11-20T12:00:00Z";

/// A request, and the response of 0.1.0: JSON, or the text of a CSV file.
#[derive(Serialize, Deserialize)]
struct Answer {
    key: String,
    path: String,
    response: Value,
}

fn fixture(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/releases/0.1.0")).join(file)
}

fn read_compressed(file: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(fixture(file)).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn write_compressed(file: &str, text: &str) {
    let mut encoder = GzEncoder::new(std::fs::File::create(fixture(file)).unwrap(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
}

fn now() -> DateTime<Utc> {
    NOW.parse().unwrap()
}

/// A clock that stands still.
async fn stopped_clock() -> Clock {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let body = json!({ "now": NOW }).to_string();
        let response =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = tokio::io::AsyncReadExt::read(&mut connection, &mut request).await;
            let _ = connection.write_all(response.as_bytes()).await;
        }
    });
    Clock::remote(url).unwrap()
}

async fn count_differences(stores: &IsolatedStores, organization: Uuid) -> usize {
    verify::verify(&stores.databases, organization, false).await.unwrap().differences.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_of_0_1_0_have_the_same_figures() {
    if std::env::var_os("TIDEMARK_TEST_ACCEPT").is_some() {
        assert_eq!(env!("CARGO_PKG_VERSION"), "0.1.0", "the dump of a released version never changes");
        write_fixture().await;
    }
    let mut stores = restore().await;
    let (status, log) = run(&stores, &["migrate"]);
    assert_eq!(status, Some(0), "{log}");
    stores.databases.clock = stopped_clock().await;

    let answers = read_compressed("answers.jsonl.gz");
    let answers: Vec<Answer> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers.len() > 80);
    let mut apis = Vec::new();
    for same_key in answers.chunk_by(|one, next| one.key == next.key) {
        let api = Api::start(&stores, &same_key[0].key).await;
        for Answer { path, response, .. } in same_key {
            // The new search index is built meanwhile.
            if path.starts_with("/search") {
                let find =
                    async || find_difference(response, &api.fetch(path).await, path).is_none().then_some(());
                wait_until("search results are the same", find).await;
            }
            assert_eq!(find_difference(response, &api.fetch(path).await, path), None);
        }
        apis.push((&same_key[0].key, api));
    }

    // History continues where it ended.
    let organizations: Vec<Uuid> =
        sqlx::query_scalar("select id from organizations").fetch_all(stores.pg()).await.unwrap();
    let relay = stores.start_relay();
    // The relay fills columns that 0.1.0 did not write.
    let is_rewritten = async || {
        let finished = sqlx::query("select from backfills where name = 'clickhouse_saved_gains'");
        finished.fetch_optional(stores.pg()).await.unwrap().map(drop)
    };
    wait_until("all records are written once more", is_rewritten).await;
    for organization in organizations {
        stores.wait_applied(organization).await;
        assert_eq!(count_differences(&stores, organization).await, 0);
        let mut write = tidemark::store::Write::begin(stores.pg(), organization).await.unwrap();
        let names = [(Platform::Tiktok, "dana.dances".to_owned())];
        let found = imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, now())
            .await
            .unwrap();
        write.commit().await.unwrap();
        let account = *found.values().next().unwrap();
        scrape_at(stores.pg(), organization, account, 3, 1_000, now()).await;
        stores.wait_applied(organization).await;
        assert_eq!(count_differences(&stores, organization).await, 0);
    }
    relay.stop().await;
    let path = "/overview?period=7d&include_today=true";
    for (key, api) in &apis {
        let before = answers.iter().find(|answer| answer.key == **key && answer.path == path).unwrap();
        assert_ne!(api.fetch(path).await, before.response);
    }
}

/// The first difference of a response, which may have additional fields.
fn find_difference(expected: &Value, actual: &Value, path: &str) -> Option<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected.iter().find_map(|(name, value)| {
            if value.is_null() && follows_from_pk(actual, name) {
                return None;
            }
            // A cursor is bound to all filters of its version.
            if name == "next_cursor" && value.is_string() && actual[name].is_string() {
                return None;
            }
            find_difference(value, actual.get(name).unwrap_or(&Value::Null), &format!("{path} {name}"))
        }),
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs
                .find_map(|(n, (expected, actual))| find_difference(expected, actual, &format!("{path} {n}")))
        }
        _ => (expected != actual).then(|| format!("{path}: {actual} instead of {expected}")),
    }
}

/// Whether a field follows from the pk of an Instagram post, which 0.1.0 did not know.
fn follows_from_pk(record: &serde_json::Map<String, Value>, field: &str) -> bool {
    let ids = VideoIds::new(Platform::Instagram, record.get("external_id").and_then(Value::as_str), None);
    let value = record.get(field).and_then(Value::as_str).unwrap_or_default();
    let code = ids.shortcode().or(record.get("shortcode").and_then(Value::as_str)).unwrap_or_default();
    record.get("platform").is_some_and(|platform| platform == "instagram")
        && match field {
            "shortcode" => value == code,
            "url" => value.starts_with("https://www.instagram.com/p/") && value.contains(code),
            _ => false,
        }
}

/// Restores both dumps into new databases.
async fn restore() -> IsolatedStores {
    let mut connection = harness::Stack::shared().connection;
    let name = format!("release_{}", Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&connection.database_url).await.unwrap();
    let create = format!("create database {name} template template0");
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    connection.set_database(&name);
    let mut restored = PgConnection::connect(&connection.database_url).await.unwrap();
    restored.execute(sqlx::raw_sql(AssertSqlSafe(read_compressed("postgres.sql.gz")))).await.unwrap();

    let server = &harness::Stack::shared().databases.clickhouse;
    server.query_raw(&format!("CREATE DATABASE {name}")).execute().await.unwrap();
    connection.clickhouse_database.clone_from(&name);
    let stores = IsolatedStores::open(connection);
    for statement in read_compressed("clickhouse.sql.gz").split_terminator(";\n") {
        stores.clickhouse().query_raw(statement).execute().await.unwrap();
    }
    stores
}

async fn write_fixture() {
    std::fs::create_dir_all(fixture("")).unwrap();
    let mut stores = IsolatedStores::create().await;
    stores.databases.clock = stopped_clock().await;
    let relay = stores.start_relay();
    let unlimited = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let mut answers = String::new();
    for has_retention in [false, true] {
        let (organization, key) = create_organization(stores.pg(), unlimited.clone()).await;
        let api = Api::start(&stores, &key).await;
        create_records(&stores, organization, &api).await;
        if has_retention {
            compact_history(&stores, organization).await;
        }
        stores.wait_applied(organization).await;
        assert_eq!(count_differences(&stores, organization).await, 0);
        wait_until("the index has everything", async || {
            let found = api.get("/search?q=dana").await;
            (!found["data"]["videos"].as_array()?.is_empty()).then_some(())
        })
        .await;
        for path in list_requests(&api).await {
            let response = api.fetch(&path).await;
            let answer = Answer { key: key.clone(), path, response };
            answers += &(serde_json::to_string(&answer).unwrap() + "\n");
        }
    }
    relay.stop().await;
    write_compressed("answers.jsonl.gz", &answers);
    write_compressed("postgres.sql.gz", &dump_postgres(&stores).await);
    write_compressed("clickhouse.sql.gz", &dump_clickhouse(stores.clickhouse()).await);
}

async fn dump_postgres(stores: &IsolatedStores) -> String {
    let clients = postgres_clients("release").await.expect("pg_dump is installed");
    let output = Command::new(clients.join("pg_dump"))
        .args(["--no-owner", "--no-privileges", "--rows-per-insert=500", &stores.connection.database_url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Commands of psql, and settings that older servers lack.
    let is_statement = |line: &&str| !line.starts_with('\\') && !line.starts_with("SET transaction_timeout");
    text.split_inclusive('\n').filter(is_statement).collect()
}

async fn dump_clickhouse(client: &Client) -> String {
    let tables =
        "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name";
    let tables: Vec<(String, String)> = client.query_raw(tables).fetch_all().await.unwrap();
    let mut dump = String::new();
    for (table, create) in tables {
        let (_, definition) = create.split_once(&format!(".{table} ")).unwrap();
        dump += &format!("CREATE TABLE {table} {definition};\n");
        let rows = format!("SELECT * FROM {table} ORDER BY ALL");
        let rows = client
            .query_raw(&rows)
            .with_setting("output_format_sql_insert_table_name", &table)
            .with_setting("output_format_sql_insert_max_batch_size", "1000");
        let rows = rows.fetch_bytes("SQLInsert").unwrap().collect().await.unwrap();
        dump += std::str::from_utf8(&rows).unwrap();
    }
    dump
}

/// Rows of an import: histories with gaps, unknown and falling counters, of videos posted before and after the first scrape.
fn history(first: NaiveDate, names: &[(&str, &str, &str, &str)]) -> String {
    let mut rows = String::new();
    for (n, (platform, username, creator, category)) in names.iter().enumerate() {
        let mut day = first;
        let mut age = 0;
        while day < now().date_naive() {
            let observed_at = format!("{day}T{:02}:30:00Z", (5 * n + age) % 24);
            if age % 5 != 3 {
                let account = json!({
                    "platform": platform, "username": username, "observed_at": observed_at, "name": username,
                    "creator": creator, "category": category, "follower_count": 1_000 * (n + 1) + 7 * age,
                    "following_count": 50 + n, "profile_post_count": (age % 4 > 0).then_some(20 + age / 7),
                });
                rows += &format!("{account}\n");
            }
            for video in 0..4 {
                let posted = first + TimeDelta::days(6 * video as i64 - 8);
                if day < posted || (age + video) % 4 == 2 {
                    continue;
                }
                let days = (day - posted).num_days();
                let views =
                    1_000 * (video as i64 + 1) + days * (90 + 13 * n as i64) - 150 * i64::from(age % 11 == 9);
                let is_instagram = *platform == "instagram";
                let video = json!({
                    "platform": platform, "username": username, "observed_at": observed_at,
                    "external_id": format!("{}{:02}{video}", 7_300_000_000_000_000_i64, n),
                    "create_time": format!("{posted}T18:00:00Z"), "media_type": if video % 2 == 0 { "VIDEO" } else { "IMAGE" },
                    "description": format!("{username} no {video} of {posted} #{category}"),
                    "view_count": views, "like_count": (age % 3 > 0).then_some(views / 10),
                    "comment_count": views / 100, "share_count": (!is_instagram).then_some(views / 200),
                    "saved_count": views / 300, "play_count": views + 40,
                    "ig_play_count": is_instagram.then_some(views + 10), "fb_play_count": is_instagram.then_some(30 + days),
                    "fb_like_count": is_instagram.then_some(days),
                });
                rows += &format!("{video}\n");
            }
            day += TimeDelta::days(1);
            age += 1;
        }
    }
    rows
}

/// Rows of an individually tracked video.
fn single_history(first: NaiveDate, external_id: &str) -> String {
    let mut rows = String::new();
    for day in (0..30).filter(|day| day % 6 != 4) {
        let row = json!({
            "platform": "tiktok", "external_id": external_id, "observed_at": format!("{}T09:15:00Z", first + TimeDelta::days(day)),
            "create_time": format!("{}T07:00:00Z", first + TimeDelta::days(2)), "media_type": "VIDEO",
            "description": format!("single {external_id}"), "view_count": 500 + 70 * day, "like_count": 20 + day,
        });
        rows += &format!("{row}\n");
    }
    rows
}

/// The id of the record in a list whose field has a value.
async fn find_id(api: &Api, list: &str, field: &str, value: &str) -> String {
    let list = api.get(list).await;
    let record = list["data"].as_array().unwrap().iter().find(|record| record[field] == value);
    record.unwrap_or_else(|| panic!("{value} is not in {list}"))["id"].as_str().unwrap().to_owned()
}

async fn load(stores: &IsolatedStores, organization: Uuid, rows: String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    std::fs::write(&file, rows).unwrap();
    let summary = import::load(&stores.databases, organization, vec![file], &ImportOptions::default()).await;
    assert_eq!(summary.unwrap().refused, 0);
}

/// Accounts, creators and individually tracked videos with history; some were deleted, moved or paused.
async fn create_records(stores: &IsolatedStores, organization: Uuid, api: &Api) {
    let first = NaiveDate::from_ymd_opt(2026, 9, 20).unwrap();
    let names = [
        ("instagram", "ada.codes", "Ada", "tech"),
        ("instagram", "bo.bakes", "Bo", "food"),
        ("tiktok", "dana.dances", "Ada", "dance"),
        ("tiktok", "carla.cycles", "Carla", "sport"),
        ("tiktok", "eli.edits", "Eli", "tech"),
    ];
    // One is later found on dana.dances, one survives the deletion of carla.cycles, and one is deleted.
    let singles =
        ["7300000000000000020", "7300000000000000031", "7399000000000000001", "7399000000000000002"];
    for single in singles {
        load(stores, organization, single_history(first, single)).await;
    }
    load(stores, organization, history(first, &names)).await;

    let carla = find_id(api, "/accounts", "username", "carla.cycles").await;
    api.delete(&format!("/accounts/{carla}")).await;
    let single = find_id(api, "/videos", "external_id", singles[2]).await;
    api.delete(&format!("/videos/{single}")).await;
    let creator =
        api.change(Method::POST, "/creators", json!({"name": "Cy", "metadata": {"team": "north"}})).await;
    let bo = find_id(api, "/accounts", "username", "bo.bakes").await;
    api.change(Method::PATCH, &format!("/accounts/{bo}"), json!({"creator_id": creator["id"]})).await;
    for (list, field, value) in [("/creators", "name", "Carla"), ("/creators", "name", "Bo")] {
        let id = find_id(api, list, field, value).await;
        api.delete(&format!("{list}/{id}")).await;
    }
    for username in ["ada.codes", "dana.dances"] {
        let id = find_id(api, "/accounts", "username", username).await;
        let change = json!({"is_active": true, "metadata": {"note": username}, "scrape_interval_hours": 12});
        api.change(Method::PATCH, &format!("/accounts/{id}"), change).await;
    }
    stores.wait_applied(organization).await;
}

/// Deletes history before a cutoff.
async fn compact_history(stores: &IsolatedStores, organization: Uuid) {
    let change = OrganizationChange { retention_days: Some(Some(30)), ..OrganizationChange::default() };
    organizations::update(stores.pg(), organization, &change).await.unwrap();
    wait_until("the erasure lock is free", async || {
        erasure::run_once(&stores.databases, None).await.unwrap()
    })
    .await;
}

async fn list_requests(api: &Api) -> Vec<String> {
    let ada = find_id(api, "/accounts", "username", "ada.codes").await;
    let dana = find_id(api, "/accounts", "username", "dana.dances").await;
    let (creator, cy) =
        (find_id(api, "/creators", "name", "Ada").await, find_id(api, "/creators", "name", "Cy").await);
    let single = find_id(api, "/videos", "external_id", "7300000000000000031").await;
    let content = api.get("/content?limit=50").await;
    let ids: Vec<_> =
        content["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    let (first, some) = (ids[0], ids[..6].join(","));
    let mut requests: Vec<String> = [
        "/whoami",
        "/accounts?include_total=true",
        "/accounts/categories",
        "/accounts/stats",
        "/creators",
        "/tracking",
        "/account-videos?limit=50&include_total=true",
        "/videos",
        "/content?limit=50&include_total=true",
        "/content?kind=tracked",
        "/accounts?q=ada",
        "/search?q=dana",
        "/search?q=single",
        "/content/breakouts?age_days=7&min_multiple=1",
    ]
    .map(str::to_owned)
    .into();
    for path in [
        format!("/accounts/{ada}"),
        format!("/accounts/{ada}/videos"),
        format!("/accounts/{ada}/benchmarks"),
        format!("/creators/{creator}"),
        format!("/content/{first}"),
        format!("/content/{first}/ages"),
        format!("/content/ages?ids={some}"),
        format!("/videos/{single}"),
        format!("/videos/deltas?video_ids={single}&windows=7,30"),
    ] {
        requests.push(path);
    }
    for window in [
        "period=7d",
        "period=30d",
        "start_date=2026-10-03&end_date=2026-11-15",
        "period=7d&include_today=true",
    ] {
        for path in [
            "/overview?".to_owned(),
            "/overview?platform=instagram&".to_owned(),
            format!("/overview?creator_id={cy}&"),
            "/analytics/timeseries?compare=previous&".to_owned(),
            "/analytics/timeseries?group_by=platform&".to_owned(),
            format!("/analytics/timeseries?account_id={dana}&granularity=week&"),
            format!("/accounts/{dana}/analytics?"),
            format!("/accounts/{ada}/analytics?"),
            "/accounts/top?metric=views&include_all=true&".to_owned(),
            "/accounts/top?metric=followers&platform=tiktok&".to_owned(),
            format!("/accounts/timeseries?account_ids={ada},{dana}&metric=likes&"),
            format!("/accounts/metrics?account_ids={ada},{dana}&"),
            "/creators/top?metric=engagement&".to_owned(),
            format!("/creators/metrics?creator_ids={creator},{cy}&"),
            format!("/creators/{creator}/analytics?"),
            format!("/creators/{creator}/analytics/timeseries?"),
            "/content/top?metric=views&".to_owned(),
            "/content/top?metric=likes&kind=tracked&include_all=true&".to_owned(),
            format!("/content/timeseries?ids={some}&metric=views&"),
            format!("/videos/metrics?video_ids={single}&"),
            format!("/videos/{single}/analytics?"),
            "/tracking/coverage?".to_owned(),
            "/export/daily.csv?".to_owned(),
            "/export/accounts.csv?".to_owned(),
        ] {
            requests.push(path + window);
        }
    }
    requests
}
