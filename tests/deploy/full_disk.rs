//! Disks that are really full, one store after the other: requests that read go on, what is committed waits, and nothing is
//! lost or doubled once there is room again.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use crate::harness::{IsolatedStack, Organization, wait_until};
use crate::{path, told};

/// Leaves no room on the file system of a folder until it is dropped.
struct Full(std::path::PathBuf);

impl Full {
    fn make(folder: &Path) -> Self {
        let ballast = folder.join("ballast");
        let mut file = File::create(&ballast).expect("the folder can be written");
        for size in [1 << 20, 1 << 12, 1] {
            let zeros = vec![0; size];
            while file.write_all(&zeros).is_ok() {}
        }
        Full(ballast)
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn overview(organization: &Organization) -> Value {
    organization.get("/overview").await.ok(200).at("/data").clone()
}

/// Creates a creator with metadata of a few KiB; the status of the answer, which has to be one of the two.
async fn create(organization: &Organization, name: &str) -> u16 {
    let metadata: serde_json::Map<_, _> =
        (0..20).map(|n| (format!("{n}{}", "k".repeat(200)), json!("v".repeat(250)))).collect();
    let answer = organization.post("/creators", json!({"name": name, "metadata": metadata})).await;
    match answer.status {
        201 => {}
        503 => assert!(!answer.header("retry-after").is_empty(), "{answer}"),
        _ => panic!("neither done nor out: {answer}"),
    }
    answer.status
}

/// What has to be answered on a full disk.
const READ: [&str; 6] =
    ["/accounts", "/creators", "/account-videos", "/overview", "/search?q=beforehand", "/whoami"];

/// Looks once whether there is room beside Postgres' data, and returns what was said.
fn guard(private: &IsolatedStack, low: &str, high: &str) -> String {
    let url = url::Url::parse(&private.connection.database_url).unwrap();
    let output = Command::new(path("deploy/systemd/space"))
        .env("PGHOST", url.host_str().unwrap())
        .env("PGPORT", url.port().unwrap().to_string())
        .env("PGUSER", url.username())
        .env("PGPASSWORD", url.password().unwrap())
        .env("PGDATABASE", "postgres")
        .env("SPACE_FOLDER", private.folder())
        .envs([("SPACE_LOW_MIB", low), ("SPACE_HIGH_MIB", high)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", told(&output));
    told(&output)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "mounts small file systems, which takes root, and fills them"]
async fn own_stores_on_full_disks_are_read_on_and_lose_nothing() {
    let private =
        IsolatedStack::start_on_small_disks(&[("clickhouse", 96), ("search", 32), ("postgres", 256)]).await;
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("unlimited") };
    let organization = private.organization_with(OrganizationChange::default(), key).await;
    let accounts = &private.connection.sandbox_accounts;
    let first = organization.track(&accounts[0]).await;

    // ClickHouse: what is there is answered, and what comes in waits in Postgres.
    let before = overview(&organization).await;
    let full = Full::make(&private.disk("clickhouse"));
    let body = json!({"platform": accounts[1].platform, "username": accounts[1].username});
    let second = organization.post("/accounts", body).await.ok(201);
    let path = format!("/accounts/{}", second.text("/data/id"));
    let scraped = wait_until("the account is scraped", async || {
        let account = organization.get(&path).await.ok(200);
        (!account.at("/data/last_scrape_time").is_null()).then_some(account)
    })
    .await;
    wait_until("the relay finds the disk full", async || {
        let log = std::fs::read_to_string(private.folder().join("state/logs/track.log")).unwrap();
        log.contains("delivery to clickhouse failed").then_some(())
    })
    .await;
    assert_eq!(overview(&organization).await["followers"], before["followers"]);
    drop(full);
    organization.wait_applied().await;
    let followers = first["follower_count"].as_i64().unwrap() + scraped.integer("/data/follower_count");
    assert_eq!(overview(&organization).await["followers"]["current"], followers);

    // The search index: what it holds is found, and the rest once there is room.
    let find = async |name: &str| {
        organization.get(&format!("/search?q={name}")).await.ok(200).list("/data/creators").len()
    };
    organization.post("/creators", json!({"name": "beforehand"})).await.ok(201);
    wait_until("search finds it", async || (find("beforehand").await == 1).then_some(())).await;
    let full = Full::make(&private.disk("search"));
    organization.post("/creators", json!({"name": "afterwards"})).await.ok(201);
    wait_until("search cannot follow", async || {
        let log = std::fs::read_to_string(private.folder().join("state/logs/serve.log")).unwrap();
        log.contains("cannot follow postgres").then_some(())
    })
    .await;
    assert_eq!((find("beforehand").await, find("afterwards").await), (1, 0));
    drop(full);
    wait_until("search goes on", async || (find("afterwards").await == 1).then_some(())).await;
    private.kill_process("serve");
    wait_until("another process has the index", async || {
        let request = organization.request(reqwest::Method::GET, "/search?q=afterwards").send().await.ok()?;
        request.status().is_success().then_some(())
    })
    .await;
    wait_until("it finds both", async || {
        (find("afterwards").await == 1 && find("beforehand").await == 1).then_some(())
    })
    .await;
    let log = std::fs::read_to_string(private.folder().join("state/logs/serve.log")).unwrap();
    assert!(!log.contains("cannot be used and is rebuilt"), "the full disk damaged the index: {log}");

    // Postgres: writes come to an end, and reads do not.
    let full = Full::make(&private.disk("postgres"));
    let mut made = Vec::new();
    for number in 0.. {
        let name = format!("number {number:05}");
        if create(&organization, &name).await == 503 {
            break;
        }
        made.push(name);
        assert!(number < 20_000, "the disk is not full");
    }
    for path in READ {
        organization.get(path).await.ok(200);
    }
    drop(full);
    wait_until("writes work again", async || (create(&organization, "last").await == 201).then_some(()))
        .await;
    organization.wait_applied().await;
    let mut listed = Vec::new();
    let mut path = "/creators?limit=200&q=number".to_owned();
    loop {
        let page = organization.get(&path).await.ok(200);
        listed.extend(page.list("/data").iter().map(|creator| creator["name"].as_str().unwrap().to_owned()));
        let Some(cursor) = page.at("/pagination/next_cursor").as_str() else { break };
        path = format!("/creators?limit=200&q=number&cursor={cursor}");
    }
    assert_eq!(listed, made, "what was answered with 201 is there, once, and nothing else");

    // The guard has Postgres refuse writes while there still is room.
    assert!(guard(&private, "1000000000", "2000000000").contains("is read-only"));
    wait_until("writes are refused", async || (create(&organization, "refused").await == 503).then_some(()))
        .await;
    for path in READ {
        organization.get(path).await.ok(200);
    }
    assert_eq!(guard(&private, "1000000000", "2000000000"), "", "it is said once");
    assert!(guard(&private, "0", "0").contains("accepts writes again"));
    wait_until("writes work again", async || (create(&organization, "taken").await == 201).then_some(()))
        .await;
    organization.wait_applied().await;
}
