//! Applies `schemas/` to ClickHouse, file by file, recorded in `schema_migrations`.
//!
//! The views for data teams hold no data, so every run replaces them; a restore that lacks them gets them back.

use std::time::Duration;

use clickhouse::{Client, Row};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::Error;
use super::state::{Checksums, SchemaState};
use crate::config::ClickhouseArgs;
use crate::store::clickhouse::cluster::{self, Layout};
use crate::store::clickhouse::{client, diagnosis};
use crate::store::migrate::supported_releases::CLICKHOUSE;

/// The files of `schemas/`, as (version, name, statements).
static MIGRATIONS: &[(u32, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// The files of `schemas/views/`, as (name, statement).
static VIEWS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/views.rs"));

/// The table of applied migrations.
pub const CREATE_SCHEMA_MIGRATIONS: &str = "
CREATE TABLE IF NOT EXISTS schema_migrations/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    version UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/schema_migrations', '{replica}'*/)
ORDER BY version;
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.schema_migrations ON CLUSTER `{cluster}`
AS `{database}`.schema_migrations_local
ENGINE = Distributed('{cluster}', '{database}', 'schema_migrations_local', cityHash64(version) % {shards});*/
";

/// How long a statement may take, while other processes wait for the migration lock.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Applies the pending migrations and returns how many there were.
pub(super) async fn migrate(args: &ClickhouseArgs) -> Result<usize, Error> {
    let database = &args.clickhouse_database;
    if database.is_empty() || !database.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(Error::DatabaseName(database.clone()));
    }
    let client = client::connect(args);
    let server = client.clone().with_database("default");
    CLICKHOUSE.require(&within_timeout(diagnosis::fetch_version(&server)).await?)?;
    let layout = within_timeout(Layout::detect(&server, database)).await?;
    execute(&server, &layout, &create_database(database)).await?;
    execute(&client, &layout, CREATE_SCHEMA_MIGRATIONS).await?;
    let applied = within_timeout(fetch_applied(&client)).await?;
    SchemaState::compare(&checksums(), &applied).check_upgradable("clickhouse")?;
    let mut count = 0;
    for &(version, file, sql) in MIGRATIONS {
        let is_pending = !applied.contains_key(&version.into());
        // Nodes that have joined a cluster since need the table, too.
        if is_pending || layout.is_sharded() {
            let executed = execute(&client, &layout, sql).await;
            executed.map_err(|reason| Error::Statement { file, reason })?;
        }
        if is_pending {
            let migration = Migration { version, name: file.to_owned(), checksum: checksum(sql) };
            within_timeout(record(&client, &migration)).await?;
            tracing::info!(file, "clickhouse migration applied");
            count += 1;
        }
    }
    create_views(client, &layout, args.public_database()).await?;
    Ok(count)
}

/// Replaces the views for data teams, which have a database of their own.
async fn create_views(client: Client, layout: &Layout, database: String) -> Result<(), Error> {
    // The parameter of the views' statements.
    let client = client.with_setting("param_public", &database);
    let create_database = create_database(&database);
    for &(file, statement) in [("", create_database.as_str())].iter().chain(VIEWS) {
        let executed = execute(&client, layout, statement).await;
        executed.map_err(|reason| Error::View { file, database: database.clone(), reason })?;
    }
    Ok(())
}

fn create_database(name: &str) -> String {
    format!("create database if not exists `{name}` /*cluster:ON CLUSTER `{{cluster}}`*/;\n")
}

/// Runs the statements of a file, in their form for the layout.
async fn execute(client: &Client, layout: &Layout, file: &str) -> Result<(), cluster::Error> {
    for statement in layout.statements(file) {
        within_timeout(client.query_raw(&statement).execute()).await?;
    }
    Ok(())
}

async fn within_timeout<T, E>(statement: impl Future<Output = Result<T, E>>) -> Result<T, cluster::Error>
where
    cluster::Error: From<E>,
{
    match tokio::time::timeout(STATEMENT_TIMEOUT, statement).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(clickhouse::error::Error::TimedOut.into()),
    }
}

/// A row of `schema_migrations`.
#[derive(Row, Serialize, Deserialize)]
struct Migration {
    version: u32,
    name: String,
    checksum: String,
}

async fn record(client: &Client, migration: &Migration) -> clickhouse::error::Result<()> {
    let mut insert = client.insert::<Migration>("schema_migrations").await?;
    insert.write(migration).await?;
    insert.end().await
}

/// Compares the schema of a ClickHouse to this version's, without changing anything.
pub async fn fetch_state(client: &Client) -> clickhouse::error::Result<SchemaState> {
    let exists = client
        .query_raw("select count() from system.tables where database = currentDatabase() and name = 'schema_migrations'")
        .fetch_one::<u64>()
        .await?
        > 0;
    let applied = if exists { fetch_applied(client).await? } else { Checksums::new() };
    Ok(SchemaState::compare(&checksums(), &applied))
}

fn checksums() -> Checksums {
    let checksums = MIGRATIONS.iter();
    checksums.map(|(version, _, sql)| ((*version).into(), checksum(sql).into_bytes())).collect()
}

async fn fetch_applied(client: &Client) -> clickhouse::error::Result<Checksums> {
    let statement = "select version, name, checksum from schema_migrations final";
    let applied: Vec<Migration> = client.query_raw(statement).fetch_all().await?;
    Ok(applied.into_iter().map(|row| (row.version.into(), row.checksum.into_bytes())).collect())
}

/// The SHA-256 of a file, in hexadecimal.
fn checksum(sql: &str) -> String {
    Sha256::digest(sql).iter().map(|byte| format!("{byte:02x}")).collect()
}
