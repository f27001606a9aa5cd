//! CSV files while they are sent: memory, failures in the middle, clients that leave, and the limit per organization.

use std::time::{Duration, Instant};

use harness::population::Population;
use harness::{CapturedLog, IsolatedStores, Organization, ProxiedApi, anonymous_memory, send, wait_until};
use reqwest::RequestBuilder;
use tidemark::app::Settings;
use tidemark::model::organization::KeyStatus;
use tidemark::store::records::keys;

/// In which a client reads a whole file.
const READ_TIMEOUT: Duration = Duration::from_secs(600);

/// An organization with many videos and no history, on databases of its own.
struct Large {
    api: ProxiedApi,
    client: Organization,
    videos: usize,
}

impl Large {
    async fn create(videos: i32) -> Self {
        let stores = IsolatedStores::create().await;
        let organization = stores.unlimited_organization().await;
        let population = Population { accounts: videos / 150, videos, on_first_account: 0 };
        population.insert(stores.pg(), organization.id).await;
        let connection = stores.connection.clone();
        let api = ProxiedApi::start_on(connection, Settings::default(), |_| {}).await;
        let client = api.client_for(&organization);
        Large { api, client, videos: videos as usize }
    }

    fn request(&self) -> RequestBuilder {
        let base = self.client.stack.connection.base_url.trim_end_matches("/v2");
        let request = self.client.stack.client.get(format!("{base}/export/content.csv"));
        request.bearer_auth(&self.client.key).timeout(READ_TIMEOUT)
    }

    async fn begin(&self) -> reqwest::Response {
        let response = self.request().send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// The numbers of running queries, waiting queries and exports.
    fn load(&self) -> (usize, usize, usize) {
        let (running, waiting) = self.api.app.history.load();
        (running, waiting, self.api.app.exports.count())
    }
}

/// Reads a whole export. Returns how far memory grew in KiB, and the time until the first bytes.
async fn read_all(large: &Large) -> (u64, Duration) {
    // The first export fills caches and pools.
    large.begin().await.chunk().await.unwrap().unwrap();
    wait_until("it ends", async || (large.load() == (0, 0, 0)).then_some(())).await;
    let (before, started) = (anonymous_memory(std::process::id()), Instant::now());
    let mut response = large.begin().await;
    let (mut peak, mut lines, mut first) = (before, 0, None);
    while let Some(chunk) = response.chunk().await.unwrap() {
        first.get_or_insert(started.elapsed());
        peak = peak.max(anonymous_memory(std::process::id()));
        lines += chunk.windows(2).filter(|end| end == b"\r\n").count();
    }
    // A line end may be cut by the end of a chunk.
    assert!((large.videos - 50..=large.videos + 1).contains(&lines), "{lines} lines");
    (peak - before, first.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_streamed() {
    let large = Large::create(40_000).await;
    let (growth, _) = read_all(&large).await;
    eprintln!("memory grew by {growth} KiB");
    assert!(growth < 12 << 10, "memory grew by {growth} KiB");
    wait_until("the export ends", async || (large.load() == (0, 0, 0)).then_some(())).await;

    // A client that leaves while a query runs.
    let mut response = large.begin().await;
    large.api.clickhouse.hold();
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = response.chunk().await {} });
    wait_until("a query runs", async || (large.load() == (1, 0, 1)).then_some(())).await;
    reading.abort();
    wait_until("its permit is free", async || (large.load() == (0, 0, 0)).then_some(())).await;
    large.api.clickhouse.release();

    // A limit per organization: each export holds a batch.
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(large.begin().await);
    }
    let rejected = send(large.request()).await.problem(503, "SERVICE_UNAVAILABLE");
    assert_eq!(rejected.header("retry-after"), "10");
    drop(open.pop());
    wait_until("another export may begin", async || {
        let response = large.request().send().await.unwrap();
        (response.status() == 200).then_some(())
    })
    .await;
}

/// On one thread, so that the log is captured.
#[tokio::test]
async fn export_that_fails_breaks_off_and_is_logged() {
    let large = Large::create(40_000).await;
    let (log, _guard) = CapturedLog::start("tidemark=error");
    let mut response = large.begin().await;
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let mut received = response.chunk().await.unwrap().unwrap().len();
    // ClickHouse rejects the queries of later batches.
    large.api.clickhouse.replace("FROM video_daily", "FROM video_dailx");
    let error = loop {
        match response.chunk().await {
            Ok(chunk) => received += chunk.expect("the file is not complete").len(),
            Err(error) => break error,
        }
    };
    assert!(received > 1_000 && (error.is_body() || error.is_decode()), "{received} bytes, {error:?}");
    let lines = log.take();
    let expected = ["ERROR", "export broke off", &request_id, "path=\"/export/content.csv\"", "video_dailx"];
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert!(expected.iter().all(|text| line.contains(text)), "{line}");

    // A failure before the first byte is a problem.
    send(large.request()).await.problem(500, "INTERNAL_ERROR");
    large.api.clickhouse.replace("FROM video_dailx", "FROM video_daily");

    // Retention removes days that were read already.
    let mut response = large.begin().await;
    sqlx::query("update organizations set history_since = current_date - 30")
        .execute(&large.api.app.pg)
        .await
        .unwrap();
    while response.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
    let [line] = &log.take()[1..] else { panic!("a second export broke off") };
    assert!(line.contains("retention just removed history"), "{line}");

    // A key that is revoked while a query runs, which itself would fail later. Retention is as it was, because the process
    // knows the key's from before.
    sqlx::query("update organizations set history_since = null").execute(&large.api.app.pg).await.unwrap();
    let mut response = large.begin().await;
    large.api.clickhouse.hold();
    let pg = &large.api.app.pg;
    let key = keys::list(pg, large.client.id).await.unwrap()[0].id;
    keys::set_status(pg, key, KeyStatus::Disabled).await.unwrap();
    while response.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
    let lines = log.take();
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert!(line.contains("no longer accepted"), "{line}");
    large.api.clickhouse.release();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: make test-deep"]
async fn export_of_a_million_videos_takes_constant_memory() {
    let large = Large::create(1_000_000).await;
    let started = Instant::now();
    let (growth, first) = read_all(&large).await;
    eprintln!("memory grew by {growth} KiB, first bytes after {first:?}, all after {:?}", started.elapsed());
    assert!(growth < 50 << 10, "memory grew by {growth} KiB");
    assert!(first < Duration::from_millis(300), "the first bytes took {first:?}");
}
