//! Full disks of each database: reads work, committed changes wait, and nothing is lost or doubled afterwards.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use harness::{IsolatedStack, Organization, wait_until};
use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use crate::{output_text, path};

/// Fills a file system until it is dropped.
struct FullDisk(std::path::PathBuf);

impl FullDisk {
    fn fill(folder: &Path) -> Self {
        let ballast = folder.join("ballast");
        let mut file = File::create(&ballast).expect("a writable folder");
        for size in [1 << 20, 1 << 12, 1] {
            let zeros = vec![0; size];
            while file.write_all(&zeros).is_ok() {}
        }
        FullDisk(ballast)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn overview(organization: &Organization) -> Value {
    organization.get("/overview").await.ok(200).at("/data").clone()
}

/// Creates a creator with metadata of a few KiB; returns 201 or 503.
async fn create(organization: &Organization, name: &str) -> u16 {
    let metadata: serde_json::Map<_, _> =
        (0..20).map(|n| (format!("{n}{}", "k".repeat(200)), json!("v".repeat(250)))).collect();
    let response = organization.post("/creators", json!({"name": name, "metadata": metadata})).await;
    match response.status {
        201 => {}
        503 => assert!(!response.header("retry-after").is_empty(), "{response}"),
        _ => panic!("{response}"),
    }
    response.status
}

/// Requests that work on a full disk.
const READ_PATHS: [&str; 6] =
    ["/accounts", "/creators", "/account-videos", "/overview", "/search?q=before", "/whoami"];

/// Runs the disk guard once; returns its output.
fn run_disk_guard(isolated: &IsolatedStack, low: &str, high: &str) -> String {
    let url = url::Url::parse(&isolated.connection.database_url).unwrap();
    let output = Command::new(path("deploy/systemd/space"))
        .env("PGHOST", url.host_str().unwrap())
        .env("PGPORT", url.port().unwrap().to_string())
        .env("PGUSER", url.username())
        .env("PGPASSWORD", url.password().unwrap())
        .env("PGDATABASE", "postgres")
        .env("SPACE_FOLDER", isolated.folder())
        .envs([("SPACE_LOW_MIB", low), ("SPACE_HIGH_MIB", high)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    output_text(&output)
}

/// Waits for a line in the log of a process.
async fn wait_for_log(isolated: &IsolatedStack, process: &str, line: &str) {
    wait_until(&format!("{process} logs {line:?}"), async || {
        let log =
            std::fs::read_to_string(isolated.folder().join(format!("state/logs/{process}.log"))).unwrap();
        log.contains(line).then_some(())
    })
    .await;
}

async fn count_found(organization: &Organization, name: &str) -> usize {
    organization.get(&format!("/search?q={name}")).await.ok(200).list("/data/creators").len()
}

async fn wait_writable(organization: &Organization, name: &str) {
    wait_until("writes work", async || (create(organization, name).await == 201).then_some(())).await;
}

async fn assert_readable(organization: &Organization) {
    for path in READ_PATHS {
        organization.get(path).await.ok(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "mounts small file systems, which takes root, and fills them"]
async fn isolated_full_disks_lose_nothing() {
    let disks = [("clickhouse", 96), ("search", 32), ("postgres", 256)];
    let isolated = IsolatedStack::start_on_small_disks(&disks).await;
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("unlimited") };
    let organization = isolated.organization_with(OrganizationChange::default(), key).await;
    fill_clickhouse(&isolated, &organization).await;
    fill_search_index(&isolated, &organization).await;
    fill_postgres(&isolated, &organization).await;
    make_postgres_read_only(&isolated, &organization).await;
}

/// Analytics work, and new snapshots wait in Postgres.
async fn fill_clickhouse(isolated: &IsolatedStack, organization: &Organization) {
    let accounts = &isolated.connection.sandbox_accounts;
    let first = organization.track(&accounts[0]).await;
    let before = overview(organization).await;
    let full = FullDisk::fill(&isolated.disk("clickhouse"));
    let body = json!({"platform": accounts[1].platform, "username": accounts[1].username});
    let second = organization.post("/accounts", body).await.ok(201);
    let path = format!("/accounts/{}", second.text("/data/id"));
    let scraped = wait_until("the account is scraped", async || {
        let account = organization.get(&path).await.ok(200);
        (!account.at("/data/last_scrape_time").is_null()).then_some(account)
    })
    .await;
    wait_for_log(isolated, "track", "delivery to clickhouse failed").await;
    assert_eq!(overview(organization).await["followers"], before["followers"]);
    drop(full);
    organization.wait_applied().await;
    let followers = first["follower_count"].as_i64().unwrap() + scraped.integer("/data/follower_count");
    assert_eq!(overview(organization).await["followers"]["current"], followers);
}

/// Search finds what is indexed, and the rest when there is space.
async fn fill_search_index(isolated: &IsolatedStack, organization: &Organization) {
    organization.post("/creators", json!({"name": "before"})).await.ok(201);
    let found = async |name: &str| (count_found(organization, name).await == 1).then_some(());
    wait_until("search finds it", || found("before")).await;
    let full = FullDisk::fill(&isolated.disk("search"));
    organization.post("/creators", json!({"name": "meanwhile"})).await.ok(201);
    wait_for_log(isolated, "serve", "search indexing failed").await;
    assert!(found("before").await.is_some() && found("meanwhile").await.is_none());
    drop(full);
    wait_until("the index catches up", || found("meanwhile")).await;
    isolated.kill_process("serve");
    wait_until("the API is restarted", async || {
        let response = organization.request(reqwest::Method::GET, "/search?q=meanwhile").send().await.ok()?;
        response.status().is_success().then_some(())
    })
    .await;
    wait_until("search finds both", async || found("meanwhile").await.and(found("before").await)).await;
    let log = std::fs::read_to_string(isolated.folder().join("state/logs/serve.log")).unwrap();
    assert!(!log.contains("cannot be used and is rebuilt"), "the full disk damaged the index: {log}");
}

/// Writes are rejected, and all accepted ones are stored.
async fn fill_postgres(isolated: &IsolatedStack, organization: &Organization) {
    let full = FullDisk::fill(&isolated.disk("postgres"));
    let mut created = Vec::new();
    for number in 0.. {
        let name = format!("number {number:05}");
        if create(organization, &name).await == 503 {
            break;
        }
        created.push(name);
        assert!(number < 20_000, "the disk is not full");
    }
    assert_readable(organization).await;
    drop(full);
    wait_writable(organization, "last").await;
    organization.wait_applied().await;
    let mut listed = Vec::new();
    let mut path = "/creators?limit=200&q=number".to_owned();
    loop {
        let page = organization.get(&path).await.ok(200);
        listed.extend(page.list("/data").iter().map(|creator| creator["name"].as_str().unwrap().to_owned()));
        let Some(cursor) = page.at("/pagination/next_cursor").as_str() else { break };
        path = format!("/creators?limit=200&q=number&cursor={cursor}");
    }
    assert_eq!(listed, created, "exactly the creators that were answered with 201");
}

/// The disk guard makes Postgres read-only before the disk is full.
async fn make_postgres_read_only(isolated: &IsolatedStack, organization: &Organization) {
    assert!(run_disk_guard(isolated, "1000000000", "2000000000").contains("is read-only"));
    let rejected = async || (create(organization, "rejected").await == 503).then_some(());
    wait_until("writes are rejected", rejected).await;
    assert_readable(organization).await;
    assert_eq!(run_disk_guard(isolated, "1000000000", "2000000000"), "", "it is logged once");
    assert!(run_disk_guard(isolated, "0", "0").contains("accepts writes again"));
    wait_writable(organization, "accepted").await;
    organization.wait_applied().await;
}
