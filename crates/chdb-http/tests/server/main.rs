//! Drives `chdb-http` as its clients do: with the `clickhouse` crate and with plain HTTP. Each test starts its own server.

mod child;
mod client;
mod data;
mod interface;
mod lifecycle;
mod logins;
mod readonly_limits;
mod tenant_statements;

use std::time::{Duration, Instant};

use child::ChildServer;
use clickhouse::{Client, Row};
use client::HttpClient;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_chdb-http");
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server with its directory.
struct Server {
    child: ChildServer,
    directory: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(arguments: &[&str]) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        Self { child: ChildServer::start(&directory.path().join("data"), arguments), directory }
    }

    fn client(&self) -> Client {
        client(&self.child)
    }

    /// A client of the user with all rights.
    fn admin(&self) -> HttpClient {
        admin(&self.child)
    }

    /// A client of the read-only user.
    fn readonly(&self) -> HttpClient {
        let credentials = &self.child.credentials;
        HttpClient::new(&self.child.url, &credentials.readonly_user, &credentials.readonly_password)
    }
}

fn client(server: &ChildServer) -> Client {
    let credentials = &server.credentials;
    Client::default().with_url(&server.url).with_user(&credentials.user).with_password(&credentials.password)
}

fn admin(server: &ChildServer) -> HttpClient {
    HttpClient::new(&server.url, &server.credentials.user, &server.credentials.password)
}

/// Waits until `condition` holds.
#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {} s: {what}", WAIT_TIMEOUT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Debug, PartialEq, Row, Serialize, Deserialize)]
struct Item {
    id: u64,
    text: String,
}
