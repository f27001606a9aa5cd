//! Test harness: databases, a running service, a tenant per test and its HTTP client.
//!
//! ```ignore
//! use harness::{Stack, wait_until};
//!
//! #[tokio::test]
//! async fn created_account_is_listed() {
//!     let organization = Stack::shared().organization().await;
//!     let created = organization.post("/accounts", json!({"platform": "tiktok", "username": "dance"})).await.ok(201);
//!     let list = organization.get("/accounts").await.ok(200);
//!     assert_eq!(list.at("/data/0/id"), created.at("/data/id"));
//! }
//! ```
//!
//! Every test creates its own organization, so all run in parallel. Choose the smallest of these:
//!
//! - [`TestApi`]: the API in this process on a Postgres database without a tracker, ClickHouse unreachable.
//! - [`Stack::shared`]: the `tidemark up` of this test run: API, tracker, Postgres, ClickHouse and the sandbox.
//! - [`IsolatedStores`]: empty databases of one test on the shared servers, and processes on them.
//! - [`IsolatedStack`]: a `tidemark up` of one test, which may move its clock, kill its processes and change its files.
//!   The name of such a test begins with `isolated_`: .config/nextest.toml runs one of them at a time.
//!
//! Nothing sleeps for a fixed time: [`wait_until`] polls for a state.
//!
//! A crate, so that it is compiled once and not with each test binary.

mod api;
mod derived_tables;
mod clock;
mod isolated_stack;
mod isolated_stores;
mod log;
mod organization;
pub mod population;
mod postgres_clients;
mod process;
mod proxy;
pub mod relay;
mod response;
mod slow_reads;
mod skipped;
mod stack;
mod template;

use std::future::Future;
use std::time::{Duration, Instant};

pub use api::{ProxiedApi, TestApi, api_database, serve, serve_with_limits};
pub use clock::{clock_offset, now};
pub use derived_tables::{assert_derived_tables, rebuild_derived_tables, wake_trackers};
pub use isolated_stack::{IsolatedStack, Up};
pub use isolated_stores::IsolatedStores;
pub use log::CapturedLog;
pub use organization::{Organization, create_organization};
pub use postgres_clients::postgres_clients;
pub use process::{Process, anonymous_memory, command, cpu_seconds, processes_in};
pub use proxy::{ClickhouseProxy, TcpProxy};
pub use response::{Response, http_client, send};
pub use skipped::report_skipped;
pub use slow_reads::{query_seconds, slow_reads};
pub use stack::{Connection, SandboxAccount, Stack, sandbox_platform};

/// How long a test waits for anything.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How often [`wait_until`] polls; polls over HTTP stay within an API key's rate limit.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Polls until there is a value, and returns it. `state` completes the message "timed out waiting until …".
pub async fn wait_until<T, F>(state: &str, mut poll: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out after {WAIT_TIMEOUT:?} waiting until {state}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
