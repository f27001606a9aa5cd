//! Helpers that back up and restore both stores as docs/backups.md describes, and an API in this process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use harness::{IsolatedStores, Response, Stack, http_client, send, serve};
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

/// The name that the databases of both stores have.
fn database_name(stores: &IsolatedStores) -> &str {
    stores.connection.database_url.rsplit('/').next().unwrap()
}

fn run_program(program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program:?} {}", String::from_utf8_lossy(&output.stderr));
}

/// A dump of Postgres, which is deleted with its folder.
pub(crate) struct Dump {
    clients: PathBuf,
    folder: TempDir,
}

impl Dump {
    pub(crate) fn create(stores: &IsolatedStores, clients: PathBuf) -> Self {
        let dump = Dump { clients, folder: tempfile::tempdir().unwrap() };
        let options = ["--format=custom", "--file", &dump.file(), &stores.connection.database_url];
        run_program(&dump.clients.join("pg_dump"), &options);
        dump
    }

    fn file(&self) -> String {
        self.folder.path().join("postgres.dump").to_str().unwrap().to_owned()
    }

    fn restore(&self, options: &[&str], database_url: &str) {
        let file = self.file();
        let always =
            ["--exit-on-error", "--single-transaction", "--no-owner", "--dbname", database_url, &file];
        run_program(&self.clients.join("pg_restore"), &[options, &always].concat());
    }
}

async fn execute_clickhouse(statement: &str) {
    let server = Stack::shared().databases.clickhouse.with_database("default");
    server.query_raw(statement).execute().await.unwrap();
}

/// Backs up ClickHouse and returns the name of the backup. Backs up the relay position first, so that it does not cover
/// deliveries that the other tables lack.
pub(crate) async fn back_up_clickhouse(stores: &IsolatedStores) -> String {
    let backup = format!("backup-{}", Uuid::now_v7().simple());
    let database = database_name(stores);
    execute_clickhouse(&format!("BACKUP TABLE `{database}`.relay_position TO File('{backup}-position')"))
        .await;
    let tables =
        format!("BACKUP DATABASE `{database}` EXCEPT TABLES `{database}`.relay_position TO File('{backup}')");
    execute_clickhouse(&tables).await;
    backup
}

/// Restores both stores into new databases.
pub(crate) async fn restore(stores: &IsolatedStores, dump: &Dump, backup: &str) -> IsolatedStores {
    let new_name = format!("restored_{}", Uuid::now_v7().simple());
    let mut admin = PgConnection::connect(&stores.connection.database_url).await.unwrap();
    let statement = format!("create database {new_name} template template0");
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.unwrap();
    let database_url = stores.connection.database_url.replace(database_name(stores), &new_name);
    dump.restore(&[], &database_url);
    restore_clickhouse(stores, &new_name, backup).await;
    let mut connection = stores.connection.clone();
    connection.database_url = database_url;
    connection.clickhouse_database = new_name;
    IsolatedStores::open(connection)
}

/// Restores both stores over the existing databases while processes use them.
pub(crate) async fn restore_in_place(stores: &IsolatedStores, dump: &Dump, backup: &str) {
    dump.restore(&["--clean", "--if-exists"], &stores.connection.database_url);
    execute_clickhouse(&format!("DROP DATABASE `{}` SYNC", database_name(stores))).await;
    restore_clickhouse(stores, database_name(stores), backup).await;
}

async fn restore_clickhouse(stores: &IsolatedStores, target: &str, backup: &str) {
    let source = database_name(stores);
    execute_clickhouse(&format!("RESTORE DATABASE `{source}` AS `{target}` FROM File('{backup}')")).await;
    let position = format!("`{source}`.relay_position AS `{target}`.relay_position");
    execute_clickhouse(&format!("RESTORE TABLE {position} FROM File('{backup}-position')")).await;
}

/// An API in this process, with its own search index.
pub(crate) struct Api {
    url: String,
    key: String,
    stop: CancellationToken,
    _folder: Arc<TempDir>,
}

impl Api {
    pub(crate) async fn start(stores: &IsolatedStores, key: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let search = SearchIndex::open(folder.path()).unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(indexer::run(stores.databases.clone(), search.clone(), stop.clone()));
        let app = App::new(
            stores.databases.clone(),
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
        let response = self.send(Method::GET, path, None).await;
        assert_eq!(response.status, 200, "{path}: {response}");
        response.json
    }

    /// The body of a response: JSON, or the text of an export, which is outside of `/v2`.
    pub(crate) async fn fetch(&self, path: &str) -> Value {
        let version = if path.starts_with("/export/") { "" } else { "/v2" };
        let request = http_client().get(format!("{}{version}{path}", self.url)).bearer_auth(&self.key);
        let response = send(request).await.ok(200);
        match response.json {
            Value::Null => String::from_utf8(response.body).unwrap().into(),
            json => json,
        }
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, None).await.ok(204);
    }

    /// Sends a write request, and returns the response's `data`.
    pub(crate) async fn change(&self, method: Method, path: &str, body: Value) -> Value {
        let response = self.send(method, path, Some(body)).await;
        assert!((200..300).contains(&response.status), "{response}");
        response.at("/data").clone()
    }

    /// The responses with all totals and all records, by path.
    pub(crate) async fn fetch_all(&self) -> Vec<(&'static str, Value)> {
        let mut responses = Vec::new();
        for path in [
            "/overview?period=30d",
            "/analytics/timeseries?period=30d",
            "/creators/top?period=30d",
            "/accounts?order_by=username",
            "/account-videos?limit=200&include_total=true",
            "/creators",
        ] {
            responses.push((path, self.get(path).await));
        }
        responses
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
