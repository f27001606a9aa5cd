//! An API process on the benchmark's database, its memory, and its index size.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use harness::{anonymous_memory, http_client, wait_until};
use sqlx::PgPool;
use tidemark::store::search::changes;

pub struct Api {
    process: Child,
    url: String,
    client: reqwest::Client,
}

impl Drop for Api {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Api {
    /// Starts it on the existing index and waits until the index is current.
    pub async fn start(folder: &Path) -> Self {
        let database = std::env::var("TIDEMARK_TEST_DATABASE_URL").expect("scripts/bench sets the database");
        let mut process = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["serve", "--listen", "127.0.0.1:0", "--search-index"])
            .arg(folder)
            .env("TIDEMARK_DATABASE_URL", format!("{database}_api"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).expect("the API prints its URL");
        let api = Api { process, url: ready["url"].as_str().unwrap().to_owned(), client: http_client() };
        wait_until("the search index is current", || async {
            let response = api.client.get(format!("{}/health", api.url)).send().await.unwrap();
            let health: serde_json::Value = response.json().await.unwrap();
            (health["data"]["checks"]["search"]["status"] == "ok").then_some(())
        })
        .await;
        api
    }

    pub async fn search(&self, key: &str, query: &str, limit: usize) {
        let request = self.client.get(format!("{}/search", self.url)).bearer_auth(key);
        let response = request.query(&[("q", query), ("limit", &limit.to_string())]).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.bytes().await.unwrap();
    }

    /// Private memory in megabytes.
    pub fn memory(&self) -> f64 {
        anonymous_memory(self.process.id()) as f64 * 1.024 / 1_000.0
    }

    /// Rebuilds the index during queries; returns the peak memory and the duration.
    pub async fn reindex(&self, pg: &PgPool, key: &str) -> (f64, Duration) {
        let began = Instant::now();
        let generation = changes::request_rebuild(pg).await.unwrap();
        let mut peak = self.memory();
        while changes::count_followers(pg, generation).await.unwrap().1 > 0 {
            self.search(key, "a", 25).await;
            peak = peak.max(self.memory());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        (peak, began.elapsed())
    }
}

pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => folder_bytes(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}
