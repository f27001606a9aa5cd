//! What `tidemark up` runs: each part's command line, its secrets, and how it is known to be ready.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::supervisor::Service;
use crate::cli::Failure;
use crate::config::{ClickhouseArgs, PostgresArgs, Secret, StoreArgs};
use crate::embedded::postgres::Cluster;

/// How long a part may take to stop before it is killed. Postgres' guard has its own, shorter patience.
const GRACE: Duration = Duration::from_secs(15);
const POSTGRES_GRACE: Duration = Duration::from_secs(40);

/// The pause between two looks at whether a part is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// Who is where: all that the parts have to know of each other.
pub(super) struct Plan {
    dir: PathBuf,
    cluster: Cluster,
    postgres_port: u16,
    clickhouse_port: u16,
    clickhouse_readonly: Secret,
    pub(super) sandbox_url: String,
    pub(super) api_url: String,
    pub(super) stores: StoreArgs,
}

impl Plan {
    pub(super) fn new(
        dir: PathBuf,
        cluster: Cluster,
        [postgres_port, clickhouse_port, sandbox_port]: [u16; 3],
        api_port: u16,
        clickhouse_password: Secret,
        clickhouse_readonly: Secret,
    ) -> Self {
        let sandbox_url = format!("http://127.0.0.1:{sandbox_port}");
        let stores = StoreArgs {
            postgres: PostgresArgs { database_url: cluster.url(postgres_port), database_connections: 16 },
            clickhouse: ClickhouseArgs {
                clickhouse_url: format!("http://127.0.0.1:{clickhouse_port}"),
                clickhouse_user: "default".into(),
                clickhouse_password,
                clickhouse_database: "tidemark".into(),
            },
            clock_url: Some(format!("{sandbox_url}/_control")),
        };
        let api_url = format!("http://127.0.0.1:{api_port}");
        Plan { dir, cluster, postgres_port, clickhouse_port, clickhouse_readonly, sandbox_url, api_url, stores }
    }

    pub(super) fn postgres(&self) -> Service {
        let invocation = self.cluster.invocation(self.postgres_port);
        let mut arguments: Vec<OsString> = vec!["guard".into(), "--folder".into(), invocation.folder.into()];
        arguments.extend(["--".into(), invocation.program]);
        arguments.extend(invocation.arguments);
        Service {
            name: "postgres",
            title: "Postgres",
            arguments,
            environment: Vec::new(),
            grace: POSTGRES_GRACE,
        }
    }

    /// Resolves once the server takes connections to its maintenance database.
    pub(super) async fn postgres_is_ready(&self) -> Result<(), Failure> {
        let mut url = url::Url::parse(self.stores.postgres.database_url.expose())?;
        url.set_path("/postgres");
        while PgConnection::connect(url.as_str()).await.is_err() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    pub(super) fn clickhouse(&self) -> Service {
        let arguments = vec![
            "clickhouse".into(),
            "--data".into(),
            self.dir.join("clickhouse").into(),
            "--listen".into(),
            format!("127.0.0.1:{}", self.clickhouse_port).into(),
        ];
        let environment = vec![
            ("TIDEMARK_CLICKHOUSE_PASSWORD", self.stores.clickhouse.clickhouse_password.expose().to_owned()),
            ("TIDEMARK_CLICKHOUSE_READONLY_PASSWORD", self.clickhouse_readonly.expose().to_owned()),
        ];
        Service { name: "clickhouse", title: "ClickHouse", arguments, environment, grace: GRACE }
    }

    pub(super) async fn clickhouse_is_ready(&self) -> Result<(), Failure> {
        answers(&format!("{}/ping", self.stores.clickhouse.clickhouse_url)).await
    }
}

/// Resolves once `url` answers with success.
pub(super) async fn answers(url: &str) -> Result<(), Failure> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
    loop {
        if let Ok(response) = client.get(url).send().await
            && response.status().is_success()
        {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
