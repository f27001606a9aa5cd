//! What `tidemark up` runs: each part's command line, its secrets, and how it is known to be ready.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::supervisor::Service;
use crate::cli::Failure;
use crate::config::{ClickhouseArgs, Secret};
use crate::embedded::postgres::Cluster;

/// How long a part may take to stop before it is killed. Postgres' guard has its own, shorter patience.
const GRACE: Duration = Duration::from_secs(15);
const POSTGRES_GRACE: Duration = Duration::from_secs(40);

/// The pause between two looks at whether a part is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

pub(super) fn postgres(cluster: &Cluster, port: u16) -> Service {
    let invocation = cluster.invocation(port);
    let mut arguments: Vec<OsString> = vec!["guard".into(), "--folder".into(), invocation.folder.into()];
    arguments.extend(["--".into(), invocation.program]);
    arguments.extend(invocation.arguments);
    Service { name: "postgres", title: "Postgres", arguments, environment: Vec::new(), grace: POSTGRES_GRACE }
}

/// Resolves once the server takes connections to its maintenance database.
pub(super) async fn postgres_is_ready(url: Secret) -> Result<(), Failure> {
    let mut url = url::Url::parse(url.expose())?;
    url.set_path("/postgres");
    while PgConnection::connect(url.as_str()).await.is_err() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

pub(super) fn clickhouse(dir: &Path, port: u16, args: &ClickhouseArgs) -> Service {
    let arguments = vec![
        "clickhouse".into(),
        "--data".into(),
        dir.join("clickhouse").into(),
        "--listen".into(),
        format!("127.0.0.1:{port}").into(),
    ];
    let environment = vec![
        ("TIDEMARK_CLICKHOUSE_USER", args.clickhouse_user.clone()),
        ("TIDEMARK_CLICKHOUSE_PASSWORD", args.clickhouse_password.expose().to_owned()),
    ];
    Service { name: "clickhouse", title: "ClickHouse", arguments, environment, grace: GRACE }
}

/// Resolves once `url` answers with success.
pub(super) async fn answers(url: String) -> Result<(), Failure> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
    loop {
        if let Ok(response) = client.get(&url).send().await
            && response.status().is_success()
        {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
