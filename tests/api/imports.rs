//! Imports over HTTP: accepted files, their reports, and the order of the queue.

use std::time::Duration;

use harness::{Organization, Response, Stack, TestApi, send, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::app::{App, UploadFolder, UploadLimits};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::worker::housekeeping;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

const MAX_BYTES: u64 = 4 << 10;

/// A row of a video of an account.
fn row(username: &str, post: u64, views: u64) -> String {
    let observed_at = (harness::now() - chrono::TimeDelta::days(2)).to_rfc3339();
    let post = 7_301_234_567_890_000_000 + post;
    json!({"platform": "tiktok", "username": username, "external_id": post.to_string(), "observed_at": observed_at,
           "view_count": views})
    .to_string()
}

fn rows(username: &str, count: u64) -> String {
    (0..count).map(|post| row(username, post, 100 + post) + "\n").collect()
}

/// Sends a file to `/import`.
async fn upload(organization: &Organization, query: &str, file: impl Into<reqwest::Body>) -> Response {
    send(request(organization, query).body(file)).await
}

fn request(organization: &Organization, query: &str) -> reqwest::RequestBuilder {
    let root = organization.stack.connection.base_url.trim_end_matches("/v2").to_owned();
    organization.stack.client.post(format!("{root}/import?{query}")).bearer_auth(&organization.key)
}

/// The import that a 202 names, once it has ended.
async fn ended(organization: &Organization, accepted: &Response) -> Value {
    let path = accepted.header("location").strip_prefix("/v2").unwrap().to_owned();
    wait_until("the import has ended", async || {
        let import = organization.get(&path).await.ok(200);
        (!import.at("/data/finished_at").is_null()).then(|| import.at("/data").clone())
    })
    .await
}

/// An API of which a process that takes no files but queues imports, with the folder of its files.
struct QueueingApi {
    api: TestApi,
    folder: UploadFolder,
    _root: TempDir,
}

impl QueueingApi {
    async fn start(min_free_bytes: u64) -> Self {
        Self::start_with(UploadLimits { min_free_bytes, ..UploadLimits::new(MAX_BYTES) }).await
    }

    async fn start_with(limits: UploadLimits) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = UploadFolder::open(root.path().join("uploads"), limits).unwrap();
        let api = TestApi::start().await;
        let app = App { uploads: Some(folder.clone()), ..api.app.clone() };
        let api = api.start_another(app).await;
        QueueingApi { api, folder, _root: root }
    }

    async fn upload(&self, query: &str, file: &str) -> Response {
        let url = format!("{}/import?{query}", self.api.url());
        send(self.api.stack.client.post(url).bearer_auth(&self.api.key).body(file.to_owned())).await
    }

    fn stored(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }

    /// Begins an upload and returns its connection.
    async fn begin(&self, headers: &str) -> TcpStream {
        let address = self.api.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /import HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{headers}\r\n\r\n",
            self.api.key
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

#[tokio::test]
async fn file_is_loaded_and_reported() {
    let organization = Stack::shared().organization().await;
    let file = rows("low.tide", 3) + "{\"platform\": \"myspace\"}\n";
    let accepted = upload(&organization, "filename=posts.jsonl&track=false", file).await.ok(202);
    assert_eq!(accepted.text("/data/type"), "import");
    assert_eq!(accepted.text("/data/filename"), "posts.jsonl");
    assert_eq!(accepted.header("location"), format!("/v2/imports/{}", accepted.text("/data/id")));
    assert!(["queued", "running"].contains(&accepted.text("/data/status")), "{accepted}");
    let import = ended(&organization, &accepted).await;
    assert_eq!(import["status"], "succeeded", "{import}");
    let counts =
        ["rows_read", "accounts", "videos", "snapshots_written", "refused"].map(|name| &import[name]);
    assert_eq!(counts, [4, 1, 3, 3, 1].map(|count| json!(count)).each_ref(), "{import}");
    assert_eq!(import["refusals"][0]["line"], 4, "{import}");
    assert!(import["refusals"][0]["reason"].as_str().unwrap().contains("myspace"), "{import}");
    assert_eq!((&import["sample"], &import["error"]), (&Value::Null, &Value::Null), "{import}");
    // It is visible in every endpoint.
    let videos = organization.get("/content?include_total=true").await.ok(200);
    assert_eq!(videos.integer("/pagination/total_count"), 3);
    let accounts = organization.get("/accounts").await.ok(200);
    assert_eq!(accounts.at("/data/0/is_active"), false);

    let second = upload(&organization, "dry_run=true", rows("high.tide", 1)).await.ok(202);
    let import = ended(&organization, &second).await;
    assert_eq!((&import["status"], &import["dry_run"]), (&json!("succeeded"), &json!(true)), "{import}");
    assert_eq!(import["sample"][0]["username"], "high.tide", "{import}");
    let accounts = organization.get("/accounts?include_total=true").await.ok(200);
    assert_eq!(accounts.integer("/pagination/total_count"), 1, "nothing was stored");
    let list = organization.get("/imports?limit=1").await.ok(200);
    assert_eq!(list.at("/data/0/id"), second.at("/data/id"), "newest first");
    let cursor = list.text("/pagination/next_cursor");
    let next = organization.get(&format!("/imports?limit=1&cursor={cursor}")).await.ok(200);
    assert_eq!(next.at("/data/0/id"), accepted.at("/data/id"));
}

#[tokio::test]
async fn file_that_is_no_table_fails_with_a_sentence() {
    let organization = Stack::shared().organization().await;
    let accepted = upload(&organization, "filename=a.png", "\u{89}PNG no table").await.ok(202);
    let import = ended(&organization, &accepted).await;
    assert_eq!(import["status"], "failed", "{import}");
    let error = import["error"].as_str().unwrap();
    assert!(error.contains("has no known columns") && !error.contains("uploads/"), "{error}");
}

#[tokio::test]
async fn accounts_beyond_the_cap_are_refused_by_row() {
    let organization = Stack::shared().organization().await;
    let change = OrganizationChange { account_cap: Some(Some(2)), ..OrganizationChange::default() };
    organizations::update(organization.pg(), organization.id, &change).await.unwrap();
    let file: String = (0..4).map(|n| row(&format!("tide.{n}"), n, 1) + "\n").collect();
    let import = ended(&organization, &upload(&organization, "", file.clone()).await.ok(202)).await;
    let counts = ["rows_read", "accounts", "videos", "refused"].map(|name| &import[name]);
    assert_eq!(counts, [4, 2, 2, 2].map(|count| json!(count)).each_ref(), "{import}");
    let reason = import["refusals"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("cap"), "{import}");
    // Rows of accounts that exist are loaded.
    let import = ended(&organization, &upload(&organization, "", file).await.ok(202)).await;
    assert_eq!((&import["videos"], &import["refused"]), (&json!(2), &json!(2)), "{import}");
    let accounts = organization.get("/accounts?include_total=true").await.ok(200);
    assert_eq!(accounts.integer("/pagination/total_count"), 2);
}

#[tokio::test]
async fn body_is_a_file_of_any_type_but_no_form() {
    let queueing = QueueingApi::start(0).await;
    let url = format!("{}/import", queueing.api.url());
    let post = || queueing.api.stack.client.post(&url).bearer_auth(&queueing.api.key).body("{}");
    for form in
        ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "Multipart/Form-Data"]
    {
        send(post().header("content-type", form)).await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    for file in ["text/csv", "application/json", "application/vnd.ms-excel", "x"] {
        send(post().header("content-type", file)).await.ok(202);
    }
    send(post().header("content-encoding", "gzip")).await.ok(202);
    send(post()).await.ok(202);
}

#[tokio::test]
async fn options_are_checked() {
    let queueing = QueueingApi::start(0).await;
    for (query, field) in [
        ("platform=myspace", "platform"),
        ("platform=tiktok&username=a%20b", "username"),
        ("username=..", "username"),
        ("observed_at=yesterday", "observed_at"),
        ("time_zone=Europe/Atlantis", "time_zone"),
        ("day_first=maybe", "day_first"),
        ("filename=", "filename"),
        (&format!("filename={}", "x".repeat(256)), "filename"),
    ] {
        assert_eq!(queueing.upload(query, "{}").await.fields(), [field], "{query}");
    }
    // A client that is still sending gets the response.
    queueing.upload("username=..", &"x".repeat(8 << 20)).await.problem(422, "VALIDATION_ERROR");
    queueing.upload("", &"x".repeat(8 << 20)).await.problem(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(queueing.stored(), 0);
    let query = "platform=instagram&username=@Some.One&observed_at=2026-01-05&time_zone=Europe/Berlin&day_first=true\
                 &track=true&dry_run=true&filename=%C3%BC.csv";
    let accepted = queueing.upload(query, "{}").await.ok(202);
    assert_eq!((accepted.text("/data/filename"), accepted.at("/data/dry_run")), ("ü.csv", &json!(true)));
    assert_eq!(queueing.stored(), 1);
}

#[tokio::test]
async fn limit_binds_declared_and_chunked_bodies() {
    let queueing = QueueingApi::start(0).await;
    let long = "x".repeat(MAX_BYTES as usize + 1);
    queueing.upload("", &long).await.problem(413, "PAYLOAD_TOO_LARGE");
    queueing.upload("", &long[1..]).await.ok(202);
    let mut chunked = queueing.begin("Transfer-Encoding: chunked").await;
    let chunk = "x".repeat(1000);
    for _ in 0..=MAX_BYTES / 1000 {
        chunked.write_all(format!("3e8\r\n{chunk}\r\n").as_bytes()).await.unwrap();
    }
    chunked.write_all(b"0\r\n\r\n").await.unwrap();
    let mut response = String::new();
    chunked.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413 ") && response.contains("exceeds 4096 bytes"), "{response}");
    // A client that asks first sends nothing.
    let mut asking = queueing.begin("Content-Length: 5000\r\nExpect: 100-continue").await;
    let mut response = String::new();
    asking.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert_eq!(queueing.stored(), 1, "only the file of the limit's length");
}

#[tokio::test]
async fn broken_upload_leaves_nothing() {
    let queueing = QueueingApi::start(0).await;
    for headers in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut broken = queueing.begin(headers).await;
        broken.write_all(b"3e8\r\nhalf of").await.unwrap();
        wait_until("a file is written", async || (queueing.stored() == 1).then_some(())).await;
        drop(broken);
        wait_until("the file is removed", async || (queueing.stored() == 0).then_some(())).await;
    }
    let list = queueing.api.get("/v2/imports").await.ok(200);
    assert_eq!(list.list("/data"), [] as [Value; 0]);
}

#[tokio::test]
async fn upload_without_progress_is_ended() {
    assert_eq!(UploadLimits::new(MAX_BYTES).idle_timeout, Duration::from_secs(30));
    let limits =
        UploadLimits { min_free_bytes: 0, idle_timeout: Duration::from_secs(1), max_bytes: MAX_BYTES };
    let queueing = QueueingApi::start_with(limits).await;
    for headers in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut idle = queueing.begin(headers).await;
        idle.write_all(b"3e8\r\nhalf of").await.unwrap();
        let mut response = String::new();
        idle.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(response.contains("arrived within 1 seconds: send it again"), "{response}");
        wait_until("the file is removed", async || (queueing.stored() == 0).then_some(())).await;
    }
    let list = queueing.api.get("/v2/imports").await.ok(200);
    assert_eq!(list.list("/data"), [] as [Value; 0]);
}

#[tokio::test]
async fn ended_imports_are_deleted_after_30_days() {
    let queueing = QueueingApi::start(0).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(queueing.upload("", "{}").await.ok(202).text("/data/id").to_owned());
    }
    for id in &ids[..2] {
        queueing.api.delete(&format!("/v2/imports/{id}")).await.ok(204);
    }
    // One that has not ended stays whatever its age.
    for (id, age) in ids.iter().zip(["30 days", "29 days 23 hours", "40 days"]) {
        let sql = "update uploads set created_at = now() - $2::interval, lease_until = now() + interval '1 day' where id = $1::uuid";
        sqlx::query(sql).bind(id).bind(age).execute(queueing.api.pg()).await.unwrap();
    }
    let stop = CancellationToken::new();
    let deleting = tokio::spawn(housekeeping::run(queueing.api.stack.databases.clone(), stop.clone()));
    wait_until("the oldest ended import is deleted", async || {
        let list = queueing.api.get("/v2/imports").await.ok(200);
        let left: Vec<_> = list.list("/data").iter().map(|import| import["id"].clone()).collect();
        (left == [json!(ids[1]), json!(ids[2])]).then_some(())
    })
    .await;
    queueing.api.get(&format!("/v2/imports/{}", ids[0])).await.problem(404, "NOT_FOUND");
    stop.cancel();
    deleting.await.unwrap();
}

#[tokio::test]
async fn nothing_is_taken_on_a_full_disk() {
    let full = QueueingApi::start(u64::MAX).await;
    let response = full.upload("", "{}").await.problem(503, "SERVICE_UNAVAILABLE");
    assert_eq!(response.header("retry-after"), "60");
    assert_eq!(full.stored(), 0);
    // A process without a folder.
    let api = TestApi::start().await;
    let url = format!("{}/import", api.url());
    send(api.stack.client.post(url).bearer_auth(&api.key).body("{}"))
        .await
        .problem(503, "SERVICE_UNAVAILABLE");
}

#[tokio::test]
async fn retry_with_the_same_key_and_file_is_replayed() {
    let queueing = QueueingApi::start(0).await;
    let url = format!("{}/import?filename=a.csv", queueing.api.url());
    let post = async |url: &str, file: &'static str| {
        let request = queueing.api.stack.client.post(url).bearer_auth(&queueing.api.key);
        send(request.header("idempotency-key", "once").body(file)).await
    };
    let first = post(&url, "one").await.ok(202);
    let again = post(&url, "one").await.ok(202);
    assert_eq!((again.header("idempotent-replayed"), &again.body), ("true", &first.body));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(post(&url, "two").await.fields(), ["Idempotency-Key"]);
    assert_eq!(post(&url.replace("a.csv", "b.csv"), "one").await.fields(), ["Idempotency-Key"]);
    assert_eq!(queueing.stored(), 1);
    let list = queueing.api.get("/v2/imports?include_total=true").await.ok(200);
    assert_eq!(list.integer("/pagination/total_count"), 1);
}

#[tokio::test]
async fn queued_import_is_cancelled_once() {
    let queueing = QueueingApi::start(0).await;
    let location = queueing.upload("", "{}").await.ok(202).header("location").to_owned();
    queueing.api.delete(&location).await.ok(204);
    let import = queueing.api.get(&location).await.ok(200);
    assert_eq!(import.text("/data/status"), "cancelled");
    assert!(!import.at("/data/finished_at").is_null(), "{import}");
    queueing.api.delete(&location).await.problem(409, "CONFLICT");
    queueing.api.delete(&format!("/v2/imports/{}", uuid::Uuid::nil())).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn ended_imports_are_events_except_dry_runs() {
    let organization = Stack::shared().organization().await;
    let mut expected = Vec::new();
    for (query, file, status) in [
        ("filename=posts.jsonl&track=false", rows("low.tide", 2), "succeeded"),
        ("track=false&dry_run=true", rows("low.tide", 2), ""),
        ("", "no table".to_owned(), "failed"),
    ] {
        let accepted = upload(&organization, query, file).await.ok(202);
        let import = ended(&organization, &accepted).await;
        let names =
            ["id", "type", "status", "filename", "rows_read", "snapshots_written", "refused", "error"];
        if import["dry_run"] == false {
            assert_eq!(import["status"], status, "{import}");
            let fields = names.map(|name| (name.to_owned(), import[name].clone()));
            expected.insert(0, json!({"import": serde_json::Map::from_iter(fields)}));
        }
    }
    let events = organization.get("/events").await.ok(200);
    let data: Vec<_> = events.list("/data").iter().map(|event| event["data"].clone()).collect();
    assert_eq!(data, expected);
    assert!(events.list("/data").iter().all(|event| event["type"] == "import.ended"), "{events}");

    let queueing = QueueingApi::start(0).await;
    let location = queueing.upload("", "{}").await.ok(202).header("location").to_owned();
    queueing.api.delete(&location).await.ok(204);
    let events = queueing.api.get("/v2/events").await.ok(200);
    assert_eq!(events.list("/data").len(), 1, "{events}");
    assert_eq!(events.text("/data/0/data/import/status"), "cancelled");
}

#[tokio::test]
async fn organization_has_a_limit_of_imports_that_wait() {
    let queueing = QueueingApi::start(0).await;
    for _ in 0..19 {
        queueing.upload("", "{}").await.ok(202);
    }
    let url = format!("{}/import", queueing.api.url());
    let post = async |file: &'static str| {
        let request = queueing.api.stack.client.post(&url).bearer_auth(&queueing.api.key);
        send(request.header("idempotency-key", "last").body(file)).await
    };
    let last = post("{}").await.ok(202);
    queueing.upload("", "{}").await.problem(409, "CONFLICT");
    // A retry whose first response was lost gets it.
    let again = post("{}").await.ok(202);
    assert_eq!((again.header("idempotent-replayed"), &again.body), ("true", &last.body));
    assert_eq!(post("[]").await.fields(), ["Idempotency-Key"]);
    assert_eq!(queueing.stored(), 20);
    queueing.api.delete(last.header("location")).await.ok(204);
    queueing.upload("", "{}").await.ok(202);
}
