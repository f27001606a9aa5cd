//! The addresses of running databases and services, and connections to them.

use std::process::Command;

use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use sqlx::PgPool;
use tidemark::app::Databases;
use tidemark::config::{ClickhouseArgs, PostgresArgs, StoreArgs};
use tidemark::model::platform::Platform;
use tidemark::model::secret::Secret;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::clock::wait_past_midnight;
use super::organization::create_organization_with_key;
use super::{Organization, Process, command, http_client, send};

/// The content of `demo.json`, which `tidemark up` writes.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    /// The URL of the API, with its version.
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

/// An account of the sandbox.
#[derive(Debug, Clone, Deserialize)]
pub struct SandboxAccount {
    pub platform: String,
    pub username: String,
}

/// Databases, an API and a sandbox.
#[derive(Clone)]
pub struct Stack {
    pub connection: Connection,
    pub databases: Databases,
    pub client: reqwest::Client,
    /// The environment of the program on these databases.
    pub environment: Vec<(&'static str, String)>,
}

impl Connection {
    /// The variables that name the databases.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("TIDEMARK_DATABASE_URL", self.database_url.clone()),
            ("TIDEMARK_CLICKHOUSE_URL", self.clickhouse_url.clone()),
            ("TIDEMARK_CLICKHOUSE_USER", self.clickhouse_user.clone()),
            ("TIDEMARK_CLICKHOUSE_PASSWORD", self.clickhouse_password.clone()),
            ("TIDEMARK_CLICKHOUSE_DATABASE", self.clickhouse_database.clone()),
        ]
    }

    /// The program on these databases.
    pub fn command(&self) -> Command {
        let mut command = command();
        command.envs(self.environment()).stdin(std::process::Stdio::null());
        command
    }

    pub fn clickhouse_args(&self) -> ClickhouseArgs {
        ClickhouseArgs {
            clickhouse_url: self.clickhouse_url.clone(),
            clickhouse_user: self.clickhouse_user.clone(),
            clickhouse_password: Secret::new(&self.clickhouse_password),
            clickhouse_database: self.clickhouse_database.clone(),
            clickhouse_cluster: String::new(),
        }
    }

    pub(super) fn clock_url(&self) -> String {
        format!("{}/_clock", self.sandbox_url)
    }

    /// Replaces the database in `database_url`.
    pub fn set_database(&mut self, name: &str) {
        let (server, _) = self.database_url.rsplit_once('/').expect("the URL names a database");
        self.database_url = format!("{server}/{name}");
    }
}

/// The sandbox's word for a platform.
pub fn sandbox_platform(platform: Platform) -> sandbox::Platform {
    platform.as_str().parse().expect("the sandbox imitates every platform")
}

impl Stack {
    /// The installation that all tests of a run share. Do not stop anything in it or move its clock.
    pub fn shared() -> Self {
        wait_past_midnight();
        let file = std::env::var("TIDEMARK_TEST_STACK").expect("no databases to test with: run `make test`");
        let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}: run `make test`"));
        Stack::connect(serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
    }

    /// Connects to an installation, with the sandbox's clock.
    pub fn connect(connection: Connection) -> Self {
        let args = StoreArgs {
            postgres: PostgresArgs {
                database_url: Secret::new(&connection.database_url),
                // Each test is a process: few connections each.
                database_connections: 3,
            },
            clickhouse: connection.clickhouse_args(),
            clock_url: Some(connection.clock_url()),
        };
        Stack::with_args(connection, &args)
    }

    pub(super) fn with_args(connection: Connection, args: &StoreArgs) -> Self {
        let client = http_client();
        let databases = Databases::connect(args).expect("the database URL is valid");
        let mut environment = connection.environment();
        environment.extend(sandbox::server::environment(&connection.sandbox_url));
        Stack { connection, databases, client, environment }
    }

    pub fn pg(&self) -> &PgPool {
        &self.databases.pg
    }

    pub fn clickhouse(&self) -> &clickhouse::Client {
        &self.databases.clickhouse
    }

    /// A new organization with a key of all scopes.
    pub async fn organization(&self) -> Organization {
        self.organization_with(OrganizationChange::default(), NewKey::named("test key")).await
    }

    pub async fn organization_with(&self, options: OrganizationChange, key: NewKey) -> Organization {
        let (id, key) = create_organization_with_key(self.pg(), options, key).await;
        Organization { stack: self.clone(), id, key }
    }

    /// An organization without a noticeable rate limit.
    pub async fn unlimited_organization(&self) -> Organization {
        let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
        self.organization_with(options, NewKey::named("test")).await
    }

    /// An account of the sandbox on a platform.
    pub fn sandbox_account(&self, platform: &str) -> &SandboxAccount {
        let mut accounts = self.connection.sandbox_accounts.iter();
        accounts
            .find(|account| account.platform == platform)
            .expect("the sandbox has accounts on each platform")
    }

    /// Returns what the sandbox serves for an account now.
    pub async fn sandbox_state(&self, account: &SandboxAccount) -> Value {
        let url = format!(
            "{}/_control?platform={}&username={}",
            self.connection.sandbox_url, account.platform, account.username
        );
        send(self.client.get(url)).await.ok(200).at("/accounts/0").clone()
    }

    /// Returns the posts of an account that have views now, newest first: pictures have none, and neither has a post of this minute.
    pub async fn viewed_posts(&self, account: &SandboxAccount) -> Vec<Value> {
        let state = self.sandbox_state(account).await;
        let posts = state["posts"].as_array().expect("an account has posts").iter();
        posts.filter(|post| post["view_count"].as_i64() > Some(0)).cloned().collect()
    }

    /// Returns what the sandbox has served since the operation `record`.
    pub async fn fetch_served(&self) -> Value {
        let url = format!("{}/_control/served", self.connection.sandbox_url);
        send(self.client.get(url)).await.ok(200).at("/served").clone()
    }

    /// Controls the sandbox, as in `json!({"op": "advance", "hours": 24})`.
    pub async fn control_sandbox(&self, operation: Value) -> Value {
        let url = format!("{}/_control", self.connection.sandbox_url);
        send(self.client.post(url).json(&operation)).await.ok(200).json
    }

    /// A request without a key to a path below the base URL.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.connection.base_url))
    }

    /// Starts `tidemark serve` and returns it with its base URL.
    pub fn serve(&self, environment: &[(&str, String)]) -> (Process, String) {
        let index = tempfile::tempdir().unwrap();
        let mut serve = self.command(environment);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--search-index"]).arg(index.path());
        let mut process = Process::start(serve, Some(index));
        let url = process.listening_url();
        (process, url)
    }

    /// Starts `tidemark track`.
    pub fn track(&self, environment: &[(&str, String)]) -> Process {
        let mut track = self.command(environment);
        track.arg("track");
        Process::start(track, None)
    }

    /// The program on these databases and the sandbox, with a metrics port and JSON logs.
    pub fn command(&self, environment: &[(&str, String)]) -> Command {
        let mut command = command();
        command.env("TIDEMARK_METRICS_LISTEN", "127.0.0.1:0").env("TIDEMARK_LOG_FORMAT", "json");
        command.envs(self.environment.clone()).envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
