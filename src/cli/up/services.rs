//! The children of `tidemark up`: their command lines, environment and readiness checks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chdb_http::Credentials;
use chrono::{DateTime, Utc};
use sandbox::population::{Population, SimulatedAccount};
use sqlx::{Connection, PgConnection};

use super::connection::{ConnectionInfo, SandboxAccount};
use super::demo::Demo;
use super::postgres::PostgresCluster;
use super::supervisor::Service;
use crate::cli::error::CommandError;
use crate::config::{ClickhouseArgs, PostgresArgs, StoreArgs};
use crate::model::secret::Secret;
use crate::{store, tls};

const TRACKER_STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// The steps of `run_postgres` take less.
const POSTGRES_STOP_TIMEOUT: Duration = Duration::from_secs(40);

const READY_POLL_INTERVAL: Duration = Duration::from_millis(40);

const SANDBOX_SEED: u64 = 1;
const SANDBOX_ACCOUNTS: u16 = 330;

/// Accounts listed in demo.json.
const MAX_SUGGESTED_ACCOUNTS: usize = 12;

/// Folders, ports and passwords of all children.
pub(super) struct Services {
    dir: PathBuf,
    cluster: PostgresCluster,
    postgres_port: u16,
    clickhouse_port: u16,
    sandbox_port: u16,
    api_port: u16,
    libchdb: PathBuf,
    /// The read-only ClickHouse user of data teams.
    analyst_user: String,
    analyst_password: Secret,
    pub(super) sandbox_url: String,
    pub(super) stores: StoreArgs,
}

impl Services {
    pub(super) fn new(
        dir: PathBuf,
        cluster: PostgresCluster,
        libchdb: PathBuf,
        [postgres_port, clickhouse_port, sandbox_port, api_port]: [u16; 4],
    ) -> Self {
        let sandbox_url = format!("http://127.0.0.1:{sandbox_port}");
        let stores = StoreArgs {
            postgres: PostgresArgs { database_url: cluster.url(postgres_port), database_connections: 16 },
            clickhouse: ClickhouseArgs {
                clickhouse_url: format!("http://127.0.0.1:{clickhouse_port}"),
                clickhouse_user: String::new(),
                clickhouse_password: Secret::default(),
                clickhouse_database: "tidemark".into(),
                clickhouse_cluster: String::new(),
            },
            clock_url: Some(format!("{sandbox_url}/_clock")),
        };
        Services {
            dir,
            cluster,
            postgres_port,
            clickhouse_port,
            sandbox_port,
            api_port,
            libchdb,
            analyst_user: String::new(),
            analyst_password: Secret::default(),
            sandbox_url,
            stores,
        }
    }

    pub(super) fn postgres(&self) -> Service {
        let invocation = self.cluster.invocation(self.postgres_port);
        let mut arguments: Vec<OsString> =
            vec!["run-postgres".into(), "--folder".into(), invocation.folder.into()];
        arguments.extend(["--".into(), invocation.program]);
        arguments.extend(invocation.arguments);
        Service { stop_timeout: POSTGRES_STOP_TIMEOUT, ..Service::new("postgres", "Postgres", arguments) }
    }

    /// Waits until the server accepts connections to its maintenance database.
    pub(super) async fn postgres_ready(&self) -> Result<(), CommandError> {
        let mut url = url::Url::parse(self.stores.postgres.database_url.reveal())?;
        url.set_path("/postgres");
        while PgConnection::connect(url.as_str()).await.is_err() {
            tokio::time::sleep(READY_POLL_INTERVAL).await;
        }
        Ok(())
    }

    pub(super) fn clickhouse(&self) -> Service {
        let mut arguments = arguments(&["clickhouse", "--listen", &local(self.clickhouse_port)]);
        arguments.extend(["--data".into(), self.clickhouse_data().into()]);
        arguments.extend(["--libchdb".into(), self.libchdb.clone().into()]);
        arguments.extend(["--database".into(), self.stores.clickhouse.clickhouse_database.clone().into()]);
        Service::new("clickhouse", "ClickHouse", arguments)
    }

    fn clickhouse_data(&self) -> PathBuf {
        self.dir.join("clickhouse")
    }

    /// Reads the passwords that ClickHouse generated at its first start.
    pub(super) fn read_clickhouse_credentials(&mut self) -> Result<(), CommandError> {
        let credentials = Credentials::read(&self.clickhouse_data())?;
        self.stores.clickhouse.clickhouse_user = credentials.user;
        self.stores.clickhouse.clickhouse_password = Secret::new(credentials.password);
        self.analyst_user = credentials.readonly_user;
        self.analyst_password = Secret::new(credentials.readonly_password);
        Ok(())
    }

    pub(super) async fn clickhouse_ready(&self) -> Result<(), CommandError> {
        wait_for_success(&format!("{}/ping", self.stores.clickhouse.clickhouse_url)).await
    }

    /// A sandbox whose clock is the machine's or, if it is new, starts at another time.
    pub(super) fn sandbox(&self, start: Option<DateTime<Utc>>) -> Service {
        let (listen, seed) = (local(self.sandbox_port), SANDBOX_SEED.to_string());
        let size = SANDBOX_ACCOUNTS.to_string();
        let mut arguments = arguments(&["sandbox", "--listen", &listen, "--seed", &seed, "--size", &size]);
        arguments.extend(["--state".into(), self.dir.join("sandbox.json").into()]);
        if let Some(start) = start {
            arguments.extend(["--start".into(), start.to_rfc3339().into()]);
        }
        Service::new("sandbox", "the sandbox", arguments)
    }

    pub(super) async fn sandbox_ready(&self) -> Result<(), CommandError> {
        wait_for_success(&format!("{}/_clock", self.sandbox_url)).await
    }

    pub(super) fn tracker(&self) -> Service {
        Service {
            environment: self.environment(),
            stop_timeout: TRACKER_STOP_TIMEOUT,
            ..Service::new("track", "the tracker", arguments(&["track"]))
        }
    }

    /// Waits until the tracker holds the relay lock, which it takes once it has reached both stores.
    pub(super) async fn tracker_ready(&self) -> Result<(), CommandError> {
        let url = self.stores.postgres.database_url.reveal();
        let mut connection = PgConnection::connect(url).await?;
        while !store::outbox::RelayLock::is_held(&mut connection).await? {
            tokio::time::sleep(READY_POLL_INTERVAL).await;
        }
        Ok(())
    }

    pub(super) fn api(&self) -> Service {
        let mut arguments = arguments(&["serve", "--listen", &local(self.api_port)]);
        arguments.extend(["--search-index".into(), self.dir.join("search").into()]);
        Service { environment: self.environment(), ..Service::new("serve", "the API", arguments) }
    }

    pub(super) async fn api_ready(&self) -> Result<(), CommandError> {
        wait_for_success(&format!("{}/v2/health", self.api_url())).await
    }

    pub(super) fn api_url(&self) -> String {
        format!("http://{}", local(self.api_port))
    }

    /// The variables by which processes find the stores and the sandbox.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let StoreArgs { postgres, clickhouse, .. } = &self.stores;
        let mut environment = vec![
            ("TIDEMARK_DATABASE_URL", postgres.database_url.reveal().to_owned()),
            ("TIDEMARK_CLICKHOUSE_URL", clickhouse.clickhouse_url.clone()),
            ("TIDEMARK_CLICKHOUSE_USER", clickhouse.clickhouse_user.clone()),
            ("TIDEMARK_CLICKHOUSE_PASSWORD", clickhouse.clickhouse_password.reveal().to_owned()),
            ("TIDEMARK_CLICKHOUSE_DATABASE", clickhouse.clickhouse_database.clone()),
            ("TIDEMARK_CLICKHOUSE_CLUSTER", clickhouse.clickhouse_cluster.clone()),
        ];
        environment.push(("TIDEMARK_MEDIA_DIR", self.dir.join("media").display().to_string()));
        environment.push(("TIDEMARK_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1".to_owned()));
        environment.extend(sandbox::server::environment(&self.sandbox_url));
        // The sandbox has no daily quota, and the demo would exceed the real one.
        environment.push(("TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", u32::MAX.to_string()));
        environment
    }

    pub(super) fn connection_info(
        &self,
        demo: Option<&Demo>,
        untracked: &[SimulatedAccount],
    ) -> ConnectionInfo {
        let StoreArgs { postgres, clickhouse, .. } = &self.stores;
        let api_url = self.api_url();
        ConnectionInfo {
            base_url: format!("{api_url}/v2"),
            api_key: demo.map(|demo| demo.api_key.clone()),
            organization_id: demo.map(|demo| demo.organization_id),
            database_url: postgres.database_url.reveal().to_owned(),
            clickhouse_url: clickhouse.clickhouse_url.clone(),
            clickhouse_database: clickhouse.clickhouse_database.clone(),
            clickhouse_user: clickhouse.clickhouse_user.clone(),
            clickhouse_password: clickhouse.clickhouse_password.reveal().to_owned(),
            clickhouse_readonly_user: self.analyst_user.clone(),
            clickhouse_readonly_password: self.analyst_password.reveal().to_owned(),
            sandbox_url: self.sandbox_url.clone(),
            docs_url: format!("{api_url}/docs"),
            sandbox_accounts: untracked
                .iter()
                .take(MAX_SUGGESTED_ACCOUNTS)
                .map(|account| SandboxAccount {
                    platform: account.platform.as_str(),
                    username: account.username.clone(),
                })
                .collect(),
        }
    }
}

/// The population of the sandbox.
pub(super) fn sandbox_population() -> Population {
    Population::new(SANDBOX_SEED, usize::from(SANDBOX_ACCOUNTS))
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Waits until `url` responds with success.
async fn wait_for_success(url: &str) -> Result<(), CommandError> {
    let client = tls::client_builder()?.no_proxy().timeout(Duration::from_secs(2)).build()?;
    while !client.get(url).send().await.is_ok_and(|response| response.status().is_success()) {
        tokio::time::sleep(READY_POLL_INTERVAL).await;
    }
    Ok(())
}
