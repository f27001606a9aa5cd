//! Backups of both stores as docs/backups.md takes and restores them, and an API in this process over what came of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::search::SearchIndex;
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStores, Response, Stack, http_client, send, serve};

/// The database of each store that `IsolatedStores` made, or that was restored.
fn name(own: &IsolatedStores) -> &str {
    own.connection.database_url.rsplit('/').next().unwrap()
}

/// Runs a program of Postgres, wherever this system has it.
fn postgres(program: &str, arguments: &[&str]) {
    let of_version = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let places =
        of_version.map(|version| version.path().join("bin").join(program)).filter(|path| path.exists());
    let program = places.max().unwrap_or_else(|| PathBuf::from(program));
    let output = Command::new(&program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program:?} {}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn dump(own: &IsolatedStores, file: &Path) {
    postgres("pg_dump", &["--format=custom", "--file", file.to_str().unwrap(), &own.connection.database_url]);
}

async fn clickhouse(statement: &str) {
    let server = Stack::shared().databases.clickhouse.with_database("default");
    server.query_raw(statement).execute().await.unwrap();
}

/// Returns the name of the backup. Where the relay stood is kept first, so that nothing counts as delivered which the
/// rest does not have.
pub(crate) async fn back_up(own: &IsolatedStores) -> String {
    let backup = format!("backup-{}", Uuid::now_v7().simple());
    let database = name(own);
    clickhouse(&format!("BACKUP TABLE `{database}`.relay_position TO File('{backup}-position')")).await;
    let rest =
        format!("BACKUP DATABASE `{database}` EXCEPT TABLES `{database}`.relay_position TO File('{backup}')");
    clickhouse(&rest).await;
    backup
}

/// Restores both stores under a name of their own.
pub(crate) async fn restore(own: &IsolatedStores, file: &Path, backup: &str) -> IsolatedStores {
    let fresh = format!("restored_{}", Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&own.connection.database_url).await.unwrap();
    let statement = format!("create database {fresh} template template0");
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.unwrap();
    let database_url = own.connection.database_url.replace(name(own), &fresh);
    let options = ["--exit-on-error", "--single-transaction", "--no-owner", "--dbname", &database_url];
    postgres("pg_restore", &[options.as_slice(), &[file.to_str().unwrap()]].concat());
    restore_clickhouse(own, &fresh, backup).await;
    let mut connection = own.connection.clone();
    connection.database_url = database_url;
    connection.clickhouse_database = fresh;
    IsolatedStores::open(connection)
}

/// Restores both stores in their place, under processes that go on.
pub(crate) async fn restore_in_place(own: &IsolatedStores, file: &Path, backup: &str) {
    let options = ["--clean", "--if-exists", "--exit-on-error", "--single-transaction", "--no-owner"];
    let target = ["--dbname", &own.connection.database_url, file.to_str().unwrap()];
    postgres("pg_restore", &[options.as_slice(), &target].concat());
    clickhouse(&format!("DROP DATABASE `{}` SYNC", name(own))).await;
    restore_clickhouse(own, name(own), backup).await;
}

async fn restore_clickhouse(own: &IsolatedStores, to: &str, backup: &str) {
    let from = name(own);
    clickhouse(&format!("RESTORE DATABASE `{from}` AS `{to}` FROM File('{backup}')")).await;
    let position = format!("`{from}`.relay_position AS `{to}`.relay_position");
    clickhouse(&format!("RESTORE TABLE {position} FROM File('{backup}-position')")).await;
}

/// An API in this process, with an index of its own that follows.
pub(crate) struct Api {
    url: String,
    key: String,
    stop: CancellationToken,
    _folder: Arc<TempDir>,
}

impl Api {
    pub(crate) async fn over(own: &IsolatedStores, key: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let search = SearchIndex::open(folder.path()).unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(indexer::run(own.databases.clone(), search.clone(), stop.clone()));
        let app = App::new(
            own.databases.clone(),
            search,
            ReadablePlatforms::new(Platform::ALL),
            Settings::default(),
        );
        Api { url: serve(&app).await, key: key.to_owned(), stop, _folder: folder }
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let request = http_client().request(method, format!("{}/v2{path}", self.url)).bearer_auth(&self.key);
        send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.send(Method::GET, path, None).await;
        assert_eq!(answer.status, 200, "{path}: {answer}");
        answer.json
    }

    /// Changes something, and returns the answer's `data`.
    pub(crate) async fn change(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.send(method, path, Some(body)).await;
        assert!((200..300).contains(&answer.status), "{answer}");
        answer.at("/data").clone()
    }

    /// Every total that there is, and every record.
    pub(crate) async fn answers(&self) -> Vec<(&'static str, Value)> {
        let mut answers = Vec::new();
        for path in [
            "/overview?period=30d",
            "/analytics/timeseries?period=30d",
            "/creators/top?period=30d",
            "/accounts?order_by=username",
            "/account-videos?limit=200&include_total=true",
            "/creators",
        ] {
            answers.push((path, self.get(path).await));
        }
        answers
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
