//! Files of rows while they are sent: memory, failures in the middle, clients that leave, and the limit per organization.

use std::io::{Seek, Write};
use std::time::{Duration, Instant};

use harness::population::Population;
use harness::{CapturedLog, IsolatedStores, Organization, ProxiedApi, anonymous_memory, send, wait_until};
use parquet::file::reader::{FileReader, SerializedFileReader};
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

    fn request(&self, file: &str) -> RequestBuilder {
        let base = self.client.stack.connection.base_url.trim_end_matches("/v2");
        let request = self.client.stack.client.get(format!("{base}/export/{file}"));
        request.bearer_auth(&self.client.key).timeout(READ_TIMEOUT)
    }

    async fn begin(&self, file: &str) -> reqwest::Response {
        let response = self.request(file).send().await.unwrap();
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
async fn read_all(large: &Large, name: &str) -> (u64, Duration) {
    // The first export fills caches and pools.
    large.begin(name).await.chunk().await.unwrap().unwrap();
    wait_until("it ends", async || (large.load() == (0, 0, 0)).then_some(())).await;
    let (before, started) = (anonymous_memory(std::process::id()), Instant::now());
    let mut response = large.begin(name).await;
    let (mut peak, mut first) = (before, None);
    let mut file = tempfile::tempfile().unwrap();
    while let Some(chunk) = response.chunk().await.unwrap() {
        first.get_or_insert(started.elapsed());
        peak = peak.max(anonymous_memory(std::process::id()));
        file.write_all(&chunk).unwrap();
    }
    file.rewind().unwrap();
    let rows = if name.ends_with(".csv") {
        csv::Reader::from_reader(file).byte_records().collect::<Result<Vec<_>, _>>().unwrap().len()
    } else {
        SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows() as usize
    };
    assert_eq!(rows, large.videos, "{name}");
    (peak - before, first.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_streamed() {
    let large = Large::create(40_000).await;
    for (name, limit) in [("content.csv", 12 << 10), ("content.parquet", 24 << 10)] {
        let (growth, _) = read_all(&large, name).await;
        eprintln!("{name}: memory grew by {growth} KiB");
        assert!(growth < limit, "{name}: memory grew by {growth} KiB");
    }
    wait_until("the export ends", async || (large.load() == (0, 0, 0)).then_some(())).await;

    // A client that leaves while a query runs.
    let mut response = large.begin("content.csv").await;
    large.api.clickhouse.hold();
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = response.chunk().await {} });
    wait_until("a query runs", async || (large.load() == (1, 0, 1)).then_some(())).await;
    reading.abort();
    wait_until("its permit is free", async || (large.load() == (0, 0, 0)).then_some(())).await;
    large.api.clickhouse.release();

    // A limit per organization: each export holds a batch.
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(large.begin("content.csv").await);
    }
    let rejected = send(large.request("content.parquet")).await.problem(503, "SERVICE_UNAVAILABLE");
    assert_eq!(rejected.header("retry-after"), "10");
    drop(open.pop());
    wait_until("another export may begin", async || {
        let response = large.request("content.csv").send().await.unwrap();
        (response.status() == 200).then_some(())
    })
    .await;
}

/// On one thread, so that the log is captured.
#[tokio::test]
async fn export_that_fails_breaks_off_and_is_logged() {
    let large = Large::create(40_000).await;
    let (log, _guard) = CapturedLog::start("tidemark=error");
    for file in ["content.csv", "content.parquet"] {
        let mut response = large.begin(file).await;
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
        assert!(received >= 4 && (error.is_body() || error.is_decode()), "{received} bytes, {error:?}");
        let lines = log.take();
        let path = format!("path=\"/export/{file}\"");
        let expected = ["ERROR", "export broke off", &request_id, &path, "video_dailx"];
        let [line] = &lines[..] else { panic!("{lines:#?}") };
        assert!(expected.iter().all(|text| line.contains(text)), "{line}");

        // A failure before the first byte is a problem.
        send(large.request(file)).await.problem(500, "INTERNAL_ERROR");
        large.api.clickhouse.replace("FROM video_dailx", "FROM video_daily");
        log.take();
    }

    // Retention removes days that were read already.
    let mut response = large.begin("content.csv").await;
    sqlx::query("update organizations set history_since = current_date - 30")
        .execute(&large.api.app.pg)
        .await
        .unwrap();
    while response.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
    let lines = log.take();
    let [line] = &lines[..] else { panic!("{lines:#?}") };
    assert!(line.contains("retention just removed history"), "{line}");

    // A key that is revoked while a query runs, which itself would fail later. Retention is as it was, because the process
    // knows the key's from before.
    sqlx::query("update organizations set history_since = null").execute(&large.api.app.pg).await.unwrap();
    let mut response = large.begin("content.csv").await;
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
    for name in ["content.csv", "content.parquet"] {
        let started = Instant::now();
        let (growth, first) = read_all(&large, name).await;
        let all = started.elapsed();
        eprintln!("{name}: memory grew by {growth} KiB, first bytes after {first:?}, all after {all:?}");
        assert!(growth < 50 << 10, "{name}: memory grew by {growth} KiB");
        assert!(first < Duration::from_millis(300), "{name}: the first bytes took {first:?}");
    }
}
