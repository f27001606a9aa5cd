//! Drives `tidemark clickhouse` as its clients do: the `clickhouse` crate, clickhouse-connect, and plain HTTP.
//! Every test starts a process of its own on a folder of its own, so that they neither wait for nor see each other.

mod data;
mod interface;
mod life;
mod raw_http;

use std::time::{Duration, Instant};

use clickhouse::{Client, Row};
use raw_http::Caller;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tidemark::embedded::clickhouse::{SpawnOptions, Spawned};

const EXE: &str = env!("CARGO_BIN_EXE_tidemark");
/// How long anything may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with its folder.
struct Server {
    spawned: Spawned,
    folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder for the data");
        let mut options = SpawnOptions::new(EXE, folder.path().join("data"));
        options.more = more.iter().map(Into::into).collect();
        Self { spawned: Spawned::spawn(options).await.expect("the embedded ClickHouse starts"), folder }
    }

    fn client(&self) -> Client {
        let known = &self.spawned.credentials;
        Client::default().with_url(&self.spawned.url).with_user(&known.user).with_password(&known.password)
    }

    fn service(&self) -> Caller {
        let known = &self.spawned.credentials;
        Caller::new(&self.spawned.url, &known.user, &known.password)
    }

    fn analyst(&self) -> Caller {
        let known = &self.spawned.credentials;
        Caller::new(&self.spawned.url, &known.readonly_user, &known.readonly_password)
    }
}

/// Waits until `condition` is true.
#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {} s: {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Debug, PartialEq, Row, Serialize, Deserialize)]
struct Item {
    id: u64,
    text: String,
}
