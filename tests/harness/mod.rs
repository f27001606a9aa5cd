//! What the integration tests stand on: the stores and the service that run for the whole test run, an organization
//! of its own for each test, and a private installation for tests that move the clock or kill things.
//!
//! Nothing here sleeps for an amount of time: what takes a while is looked at until it is so or a deadline is over.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary includes this module and uses the part it needs"
)]

pub mod answer;
pub mod api;
pub mod databases;
pub mod line;
pub mod population;
pub mod private;
pub mod process;

use std::future::Future;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tidemark::app::Databases;
use tidemark::config::{ClickhouseArgs, PostgresArgs, StoreArgs};
use tidemark::model::secret::Secret;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

use answer::Answer;
pub use api::{TestApi, client, postgres, send, serve, tenant};

/// How long anything may take that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What `tidemark up` wrote into its `demo.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    pub base_url: String,
    pub api_key: Option<String>,
    pub organization_id: Option<Uuid>,
    pub database_url: String,
    pub clickhouse_url: String,
    pub clickhouse_database: String,
    pub clickhouse_user: String,
    pub clickhouse_password: String,
    pub clickhouse_readonly_user: String,
    pub clickhouse_readonly_password: String,
    pub sandbox_url: String,
    pub docs_url: String,
    pub sandbox_accounts: Vec<SandboxAccount>,
}

/// An account that the sandbox knows.
#[derive(Debug, Clone, Deserialize)]
pub struct SandboxAccount {
    pub platform: String,
    pub username: String,
}

/// A running installation.
#[derive(Clone)]
pub struct Stack {
    pub connection: Connection,
    pub stores: Databases,
    pub client: reqwest::Client,
}

impl Stack {
    /// The installation that all tests of a run share. Nothing of it may be moved or killed.
    pub fn shared() -> Self {
        let file = std::env::var("TIDEMARK_TEST_STACK").expect("no stores to test with: run `make test`");
        let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}: run `make test`"));
        Stack::new(serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    fn new(connection: Connection) -> Self {
        let args = store_args(&connection);
        // Another test of the same process may have been faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("the HTTP client can be set up");
        let stores = Databases::connect(&args).expect("the database URL is valid");
        Stack { connection, stores, client }
    }

    /// A fresh organization with a key that may do everything.
    pub async fn organization(&self) -> Organization {
        self.organization_with(OrganizationChange::default(), NewKey::named("test")).await
    }

    /// A fresh organization with options and a key of the test's choice.
    pub async fn organization_with(&self, options: OrganizationChange, key: NewKey) -> Organization {
        let pg = &self.stores.pg;
        let made = organizations::create(pg, &format!("test {}", Uuid::now_v7()), &options)
            .await
            .expect("an organization can be made");
        let key = keys::create(pg, made.id, &key).await.expect("a key can be made");
        Organization { stack: self.clone(), id: made.id, key: key.key }
    }

    /// An account of a platform that the sandbox knows.
    pub fn one_of(&self, platform: &str) -> &SandboxAccount {
        let mut accounts = self.connection.sandbox_accounts.iter();
        accounts
            .find(|account| account.platform == platform)
            .expect("the sandbox knows some of each platform")
    }

    /// What the sandbox would serve of an account now.
    pub async fn served(&self, account: &SandboxAccount) -> Value {
        let url = format!(
            "{}/_control?platform={}&username={}",
            self.connection.sandbox_url, account.platform, account.username
        );
        let response = self.client.get(url).send().await.expect("the sandbox answers");
        Answer::read("GET /_control", response).await.ok(200).at("/accounts/0").clone()
    }

    /// Asks the sandbox for something, as in `json!({"op": "advance", "hours": 24})`.
    pub async fn sandbox(&self, order: Value) -> Value {
        let url = format!("{}/_control", self.connection.sandbox_url);
        let response = self.client.post(url).json(&order).send().await.expect("the sandbox answers");
        Answer::read("POST /_control", response).await.ok(200).json
    }

    /// Begins a request to a path below the base URL, without a key.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.connection.base_url))
    }

    /// Sends a request that was begun with [`Stack::request`].
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = request.build().expect("the test's request is well-formed");
        let what = format!("{} {}", request.method(), request.url());
        let response =
            self.client.execute(request).await.unwrap_or_else(|error| panic!("{what}: no answer: {error}"));
        Answer::read(&what, response).await
    }
}

/// A tenant of a test's own, and the client that speaks with its key.
#[derive(Clone)]
pub struct Organization {
    pub stack: Stack,
    pub id: Uuid,
    pub key: String,
}

impl Organization {
    /// Begins a request with the organization's key.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.stack.request(method, path).bearer_auth(&self.key)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.stack.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.stack.send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.stack.send(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn put(&self, path: &str) -> Answer {
        self.stack.send(self.request(Method::PUT, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.stack.send(self.request(Method::DELETE, path)).await
    }

    /// Tracks an account of the sandbox and returns it once its first scrape is in.
    pub async fn track(&self, account: &SandboxAccount) -> Value {
        let body = json!({"platform": account.platform, "username": account.username});
        let made = self.post("/accounts", body).await.ok(201);
        let path = format!("/accounts/{}", made.text("/data/id"));
        let scraped = eventually("the account is scraped", || async {
            let answer = self.get(&path).await.ok(200);
            (!answer.at("/data/last_scrape_time").is_null()).then_some(answer)
        })
        .await;
        self.wait_applied().await;
        scraped.at("/data").clone()
    }

    /// Waits until everything that the organization has committed is visible in every endpoint.
    pub async fn wait_applied(&self) {
        let wait = tidemark::store::outbox::visibility::wait_for_all(&self.stack.stores.pg, self.id);
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(result) => result.expect("the outbox can be read"),
            Err(_) => panic!("what was committed is not visible after {PATIENCE:?}: does the tracker run?"),
        }
    }
}

/// Looks again and again until there is something to return.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen within {PATIENCE:?} that {what}");
        // Seldom enough that looking by HTTP stays within a key's rate limit.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn store_args(connection: &Connection) -> StoreArgs {
    StoreArgs {
        postgres: PostgresArgs {
            database_url: Secret::new(&connection.database_url),
            // Every test is a process of its own: few connections each.
            database_connections: 3,
        },
        clickhouse: ClickhouseArgs {
            clickhouse_url: connection.clickhouse_url.clone(),
            clickhouse_user: connection.clickhouse_user.clone(),
            clickhouse_password: Secret::new(&connection.clickhouse_password),
            clickhouse_database: connection.clickhouse_database.clone(),
            clickhouse_cluster: String::new(),
        },
        clock_url: Some(format!("{}/_clock", connection.sandbox_url)),
    }
}
