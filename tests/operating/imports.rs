//! Imports over HTTP while processes are killed or stopped, and beside each other.

use std::fs::File;
use std::path::Path;

use chrono::TimeDelta;
use harness::{IsolatedStores, Organization, Process, WAIT_TIMEOUT, anonymous_memory, send, wait_until};
use serde_json::{Value, json};
use sqlx::{Postgres, Transaction};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const INTERRUPTED: &str = "interrupted, upload it again";

/// Rows of posts of an account.
fn rows(username: &str, posts: u64) -> String {
    let observed_at = (harness::now() - TimeDelta::days(2)).to_rfc3339();
    let row = |post: u64| {
        let id = (7_301_234_567_890_000_000 + post).to_string();
        let row = json!({"platform": "tiktok", "username": username, "external_id": id, "observed_at": observed_at,
                         "view_count": 100 + post});
        format!("{row}\n")
    };
    (0..posts).map(row).collect()
}

/// An API process with a folder that outlives it.
struct Api {
    process: Process,
    base: String,
}

impl Api {
    fn start_process(stores: &IsolatedStores, folder: &TempDir, failpoints: &Path) -> Process {
        let mut serve = stores.command(&[("TIDEMARK_FAILPOINTS", failpoints.display().to_string())]);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--search-index"]).arg(folder.path());
        Process::start(serve, None)
    }

    fn start(stores: &IsolatedStores, folder: &TempDir, failpoints: &Path) -> Self {
        let mut process = Api::start_process(stores, folder, failpoints);
        let base = process.listening_url();
        Api { process, base }
    }

    fn upload(&self, organization: &Organization, file: String) -> reqwest::RequestBuilder {
        let url = format!("{}/import", self.base.trim_end_matches("/v2"));
        organization.stack.client.post(url).bearer_auth(&organization.key).body(file)
    }

    /// Uploads a file and returns the path of its import.
    async fn accept(&self, organization: &Organization, file: String) -> String {
        let accepted = send(self.upload(organization, file)).await.ok(202);
        accepted.header("location").strip_prefix("/v2").unwrap().to_owned()
    }

    fn client(&self, organization: &Organization) -> Organization {
        let mut organization = organization.clone();
        organization.stack.connection.base_url.clone_from(&self.base);
        organization
    }

    async fn import(&self, organization: &Organization, path: &str) -> Value {
        self.client(organization).get(path).await.ok(200).at("/data").clone()
    }

    async fn wait_for(&self, organization: &Organization, path: &str, status: &str) -> Value {
        wait_until(&format!("the import is {status}"), async || {
            let import = self.import(organization, path).await;
            (import["status"] == status).then_some(import)
        })
        .await
    }
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path().join("uploads")).unwrap().count()
}

async fn wait_for_files(folder: &TempDir, count: usize) {
    wait_until("the files are removed", async || (files(folder) == count).then_some(())).await;
}

/// Keeps imports from saving rows until it is rolled back.
async fn block_imports(stores: &IsolatedStores) -> Transaction<'static, Postgres> {
    let mut lock = stores.pg().begin().await.unwrap();
    // Not accounts: a foreign key of events refers to them, and imports that end write events.
    sqlx::query("lock table scrape_targets in exclusive mode").execute(&mut *lock).await.unwrap();
    lock
}

async fn expire_leases(stores: &IsolatedStores) {
    sqlx::query(
        "update uploads set lease_until = now() - interval '1 second' where status in ('queued', 'running')",
    )
    .execute(stores.pg())
    .await
    .unwrap();
}

async fn count_videos(stores: &IsolatedStores, organization: &Organization) -> (i64, i64) {
    sqlx::query_as(
        "select count(*), coalesce(sum(view_count), 0)::bigint from videos where organization_id = $1",
    )
    .bind(organization.id)
    .fetch_one(stores.pg())
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_process_leaves_what_a_repetition_mends() {
    let stores = IsolatedStores::create().await;
    let _relay = stores.start_relay();
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut api = Api::start(&stores, &folder, armed.path());
    for step in ["write-committed", "upload-claimed", "batch-committed", "upload-finished"] {
        let organization = stores.organization().await;
        let mut lock = None;
        let point = if step == "batch-committed" {
            // The commit of the import's rows instead of the upload's.
            lock = Some(block_imports(&stores).await);
            "write-committed"
        } else {
            File::create(armed.path().join(step)).unwrap();
            step
        };
        // The process may end before it responds.
        let _ = api.upload(&organization, rows("low.tide", 3)).send().await;
        if let Some(lock) = lock {
            wait_until("the import runs", async || {
                let running: i64 =
                    sqlx::query_scalar("select count(*) from uploads where status = 'running'")
                        .fetch_one(stores.pg())
                        .await
                        .unwrap();
                (running == 1).then_some(())
            })
            .await;
            File::create(armed.path().join(point)).unwrap();
            lock.rollback().await.unwrap();
        }
        assert_eq!(api.process.wait().await, None, "{step}: {}", api.process.log());
        assert!(!armed.path().join(point).exists(), "{step}");
        expire_leases(&stores).await;

        api = Api::start(&stores, &folder, armed.path());
        assert_eq!(files(&folder), 0, "{step}: the next start removes the file");
        let list = api.client(&organization).get("/imports").await.ok(200);
        let path = format!("/imports/{}", list.text("/data/0/id"));
        if step == "upload-finished" {
            api.wait_for(&organization, &path, "succeeded").await;
        } else {
            let import = api.wait_for(&organization, &path, "failed").await;
            assert_eq!(import["error"], INTERRUPTED, "{step}: {import}");
            assert!(!import["finished_at"].is_null(), "{step}: {import}");
        }
        let again = api.accept(&organization, rows("low.tide", 3)).await;
        api.wait_for(&organization, &again, "succeeded").await;
        assert_eq!(count_videos(&stores, &organization).await, (3, 303), "{step}");
        wait_for_files(&folder, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_process_fails_its_imports() {
    let stores = IsolatedStores::create().await;
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organization = stores.organization().await;
    let mut api = Api::start(&stores, &folder, armed.path());
    let lock = block_imports(&stores).await;
    let running = api.accept(&organization, rows("low.tide", 3)).await;
    let queued = api.accept(&organization, rows("low.tide", 3)).await;
    api.wait_for(&organization, &running, "running").await;
    assert_eq!(api.process.stop().await, Some(0), "{}", api.process.log());
    assert_eq!(files(&folder), 0);
    let api = Api::start(&stores, &tempfile::tempdir().unwrap(), armed.path());
    for path in [running, queued] {
        let import = api.import(&organization, &path).await;
        assert_eq!(
            (&import["status"], &import["error"]),
            (&json!("failed"), &json!(INTERRUPTED)),
            "{import}"
        );
    }
    lock.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_interrupted_import_ends_with_its_event() {
    let stores = IsolatedStores::create().await;
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organizations = [stores.organization().await, stores.organization().await];
    let mut api = Api::start(&stores, &folder, armed.path());
    let lock = block_imports(&stores).await;
    let mut imports = Vec::new();
    for organization in &organizations {
        let running = api.accept(organization, rows("low.tide", 3)).await;
        imports.push((organization, running));
        imports.push((organization, api.accept(organization, rows("high.tide", 3)).await));
    }
    api.process.kill();
    expire_leases(&stores).await;
    let ended = "select (select count(*) from uploads where status = 'failed'),
                        (select count(*) from events where type = 'import.ended'),
                        (select count(distinct data -> 'import' ->> 'id') from events)";
    // Each time, a process is killed after it failed one of them.
    for failed in 1..=3_i64 {
        File::create(armed.path().join("upload-failed")).unwrap();
        let mut killed = Api::start_process(&stores, &folder, armed.path());
        assert_eq!(killed.wait().await, None, "{}", killed.log());
        let counts: (i64, i64, i64) = sqlx::query_as(ended).fetch_one(stores.pg()).await.unwrap();
        assert_eq!(counts, (failed, failed, failed));
    }
    lock.rollback().await.unwrap();
    let api = Api::start(&stores, &folder, armed.path());
    for (organization, path) in &imports {
        assert_eq!(api.wait_for(organization, path, "failed").await["error"], INTERRUPTED);
    }
    let counts: (i64, i64, i64) = sqlx::query_as(ended).fetch_one(stores.pg()).await.unwrap();
    assert_eq!(counts, (4, 4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_of_an_organization_run_one_after_the_other_in_all_processes() {
    let stores = IsolatedStores::create().await;
    let _relay = stores.start_relay();
    let armed = tempfile::tempdir().unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = folders.each_ref().map(|folder| Api::start(&stores, folder, armed.path()));
    let [a, b, c] = [stores.organization().await, stores.organization().await, stores.organization().await];
    let lock = block_imports(&stores).await;
    let of_a = first.accept(&a, rows("low.tide", 1)).await;
    first.wait_for(&a, &of_a, "running").await;
    let waiting =
        [first.accept(&a, rows("high.tide", 1)).await, second.accept(&a, rows("new.tide", 1)).await];
    let of_b = first.accept(&b, rows("low.tide", 1)).await;
    first.wait_for(&b, &of_b, "running").await;
    let of_c = first.accept(&c, rows("low.tide", 1)).await;
    let other_of_b = second.accept(&b, rows("high.tide", 1)).await;
    // The second process has two places, and may begin only what no other process does.
    let of_c_elsewhere = second.accept(&c, rows("high.tide", 1)).await;
    second.wait_for(&c, &of_c_elsewhere, "running").await;
    for (organization, path) in [(&a, &waiting[0]), (&a, &waiting[1]), (&b, &other_of_b), (&c, &of_c)] {
        assert_eq!(first.import(organization, path).await["status"], "queued");
    }
    lock.rollback().await.unwrap();
    for (organization, path) in [(&a, of_a), (&b, of_b), (&c, of_c), (&b, other_of_b), (&c, of_c_elsewhere)]
        .into_iter()
        .chain(waiting.into_iter().map(|path| (&a, path)))
    {
        second.wait_for(organization, &path, "succeeded").await;
    }
    for folder in &folders {
        wait_for_files(folder, 0).await;
    }
    let accounts = sqlx::query_scalar::<_, i64>("select count(*) from accounts where organization_id = $1");
    assert_eq!(accounts.bind(a.id).fetch_one(stores.pg()).await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_import_is_cancelled_from_any_process() {
    let stores = IsolatedStores::create().await;
    let _relay = stores.start_relay();
    let armed = tempfile::tempdir().unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [owner, other] = folders.each_ref().map(|folder| Api::start(&stores, folder, armed.path()));
    let organization = stores.organization().await;
    let lock = block_imports(&stores).await;
    let running = owner.accept(&organization, rows("low.tide", 3)).await;
    let queued = owner.accept(&organization, rows("high.tide", 3)).await;
    let next = owner.accept(&organization, rows("new.tide", 3)).await;
    owner.wait_for(&organization, &running, "running").await;
    for path in [&running, &queued] {
        other.client(&organization).delete(path).await.ok(204);
        assert_eq!(owner.import(&organization, path).await["status"], "cancelled");
        other.client(&organization).delete(path).await.problem(409, "CONFLICT");
    }
    lock.rollback().await.unwrap();
    owner.wait_for(&organization, &next, "succeeded").await;
    assert_eq!(owner.import(&organization, &running).await["status"], "cancelled");
    wait_for_files(&folders[0], 0).await;
    let usernames: Vec<String> =
        sqlx::query_scalar("select username from accounts where organization_id = $1 order by username")
            .bind(organization.id)
            .fetch_all(stores.pg())
            .await
            .unwrap();
    assert!(!usernames.contains(&"high.tide".to_owned()), "{usernames:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_stops_an_import_that_another_failed() {
    let stores = IsolatedStores::create().await;
    let _relay = stores.start_relay();
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organization = stores.organization().await;
    let paused = Api::start(&stores, &folder, armed.path());
    let lock = block_imports(&stores).await;
    let path = paused.accept(&organization, rows("low.tide", 3)).await;
    paused.wait_for(&organization, &path, "running").await;
    let signal = |name: &str| {
        let pid = paused.process.pid().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    expire_leases(&stores).await;
    let other = Api::start(&stores, &tempfile::tempdir().unwrap(), armed.path());
    assert_eq!(other.wait_for(&organization, &path, "failed").await["error"], INTERRUPTED);
    signal("-CONT");
    lock.rollback().await.unwrap();
    wait_for_files(&folder, 0).await;
    assert_eq!(paused.import(&organization, &path).await["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_of_an_erased_organization_is_removed() {
    let stores = IsolatedStores::create().await;
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organization = stores.organization().await;
    let api = Api::start(&stores, &folder, armed.path());
    let lock = block_imports(&stores).await;
    for _ in 0..2 {
        api.accept(&organization, rows("low.tide", 3)).await;
    }
    // As an erasure does.
    let deleted = sqlx::query("delete from uploads where organization_id = $1");
    deleted.bind(organization.id).execute(stores.pg()).await.unwrap();
    lock.rollback().await.unwrap();
    wait_for_files(&folder, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_import_without_its_file_fails() {
    let stores = IsolatedStores::create().await;
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organization = stores.organization().await;
    let api = Api::start(&stores, &folder, armed.path());
    let lock = block_imports(&stores).await;
    let running = api.accept(&organization, rows("low.tide", 3)).await;
    api.wait_for(&organization, &running, "running").await;
    let queued = api.accept(&organization, rows("high.tide", 3)).await;
    // As of a client that left during the commit.
    std::fs::remove_file(folder.path().join("uploads").join(queued.rsplit('/').next().unwrap())).unwrap();
    let import = api.wait_for(&organization, &queued, "failed").await;
    assert_eq!(import["error"], INTERRUPTED, "{import}");
    lock.rollback().await.unwrap();
}

/// Uploads `bytes` of rows, and asserts that the process needs little memory until the import has ended.
async fn upload_in_bounded_memory(bytes: usize) {
    let stores = IsolatedStores::create().await;
    let _relay = stores.start_relay();
    let (folder, armed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let organization = stores.organization().await;
    let api = Api::start(&stores, &folder, armed.path());
    let address = api.base.trim_start_matches("http://").trim_end_matches("/v2").to_owned();
    let before = anonymous_memory(api.process.pid());
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /import HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Length: {bytes}\r\n\
         Connection: close\r\n\r\n",
        organization.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Few posts and many observations: the test is about the file.
    let block = rows("low.tide", 500).into_bytes();
    let mut left = bytes;
    let mut peak = before;
    while left > 0 {
        let length = left.min(block.len());
        stream.write_all(&block[..length]).await.unwrap();
        left -= length;
        peak = peak.max(anonymous_memory(api.process.pid()));
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 202 "), "{response}");
    let uploaded = peak;
    let ended = async {
        loop {
            peak = peak.max(anonymous_memory(api.process.pid()));
            let list = api.client(&organization).get("/imports").await.ok(200);
            if !list.at("/data/0/finished_at").is_null() {
                return list;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let list = tokio::time::timeout(WAIT_TIMEOUT * 20, ended).await.unwrap();
    // The last row is cut off.
    assert_eq!((list.text("/data/0/status"), list.integer("/data/0/videos")), ("succeeded", 500), "{list}");
    assert!(list.integer("/data/0/rows_read") as usize > bytes / 200, "{list}");
    eprintln!("{bytes} bytes: {before} KiB before, {uploaded} KiB when uploaded, {peak} KiB at most");
    assert!(uploaded - before < 16 << 10, "{before} KiB, {uploaded} KiB while uploading");
    assert!(peak - before < 80 << 10, "{before} KiB, {peak} KiB at most");
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_needs_little_memory() {
    upload_in_bounded_memory(24 << 20).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: make test-deep"]
async fn large_upload_needs_little_memory() {
    upload_in_bounded_memory(200 << 20).await;
}
