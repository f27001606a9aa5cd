//! Brings both stores to the schema of this version: `migrations/` in Postgres, `schemas/` in ClickHouse.
//!
//! Forward only. Each ClickHouse file is one numbered statement, recorded in `schema_migrations` once it has run.
//! Any number of processes may migrate at once: an advisory lock in Postgres lets one work and the others wait.

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::migrate::{MigrateDatabase, MigrateError, Migrator};
use sqlx::{Connection, PgConnection};

use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store::cluster::{self, Layout};

static POSTGRES: Migrator = sqlx::migrate!();

/// The files of `schemas/`, by name.
static CLICKHOUSE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// Where it is recorded what was applied.
pub const RECORDS: &str = "create table if not exists schema_migrations (
                 version UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC') default now64(3)
             ) engine = ReplacingMergeTree order by version";

/// The advisory lock that a migrating process holds in Postgres; any number will do that nothing else uses.
const LOCK: i64 = 0x0074_6964_656d_6172;

/// Why the stores could not be brought to this version's schema.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("postgres cannot be migrated: {0}")]
    Postgres(#[from] sqlx::Error),
    #[error("postgres cannot be migrated: {0}")]
    Migrations(#[from] MigrateError),
    #[error(
        "postgres has the migrations of a newer Tidemark: run that version, or restore a backup of this one"
    )]
    PostgresIsNewer,
    #[error("clickhouse cannot be migrated: {0}")]
    Clickhouse(#[from] clickhouse::error::Error),
    #[error("clickhouse refused schemas/{file}: {reason}")]
    Statement { file: &'static str, reason: clickhouse::error::Error },
    #[error(
        "schemas/{0} is not what was applied to this ClickHouse: put it back and add a new file for the change"
    )]
    Changed(String),
    #[error(
        "clickhouse has schemas/{0}, which this version does not know: run the newer Tidemark that made it"
    )]
    ClickhouseIsNewer(String),
    #[error("schemas/{0} has no number of its own: name it NNNN_what_it_makes.sql")]
    Numbering(&'static str),
    #[error("{0:?} is no name for a database: use letters, digits and underscores")]
    DatabaseName(String),
    #[error("clickhouse cannot be migrated: {0}")]
    Cluster(#[from] cluster::Error),
}

/// What a migration did, for the person who asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    pub postgres: usize,
    pub clickhouse: usize,
}

/// Brings both stores to this version's schema, making their databases where they are missing.
pub async fn run(postgres: &PostgresArgs, clickhouse: &ClickhouseArgs) -> Result<Applied, Error> {
    let url = postgres.database_url.reveal();
    create_postgres_database(url).await?;
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query("select pg_advisory_lock($1)").bind(LOCK).execute(&mut connection).await?;
    let applied = Applied {
        postgres: migrate_postgres(&mut connection).await?,
        clickhouse: migrate_clickhouse(clickhouse).await?,
    };
    // Closing the session frees the lock, as an error's drop of the connection does.
    connection.close().await?;
    Ok(applied)
}

async fn create_postgres_database(url: &str) -> Result<(), Error> {
    // A role that may not look at the maintenance database gets the error of its own database, if there is one.
    if sqlx::Postgres::database_exists(url).await.unwrap_or(true) {
        return Ok(());
    }
    match sqlx::Postgres::create_database(url).await {
        // Another process was faster: 42P04 duplicate database, or 23505 when both were at it.
        Err(sqlx::Error::Database(error)) if matches!(error.code().as_deref(), Some("42P04" | "23505")) => {
            Ok(())
        }
        result => Ok(result?),
    }
}

async fn migrate_postgres(connection: &mut PgConnection) -> Result<usize, Error> {
    let before = count_applied(connection).await?;
    match POSTGRES.run(&mut *connection).await {
        Err(MigrateError::VersionMissing(_)) => return Err(Error::PostgresIsNewer),
        result => result?,
    }
    Ok(count_applied(connection).await? - before)
}

async fn count_applied(connection: &mut PgConnection) -> Result<usize, sqlx::Error> {
    let known: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(0);
    }
    let count: i64 =
        sqlx::query_scalar("select count(*) from _sqlx_migrations").fetch_one(connection).await?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// A file of `schemas/` as ClickHouse remembers it.
#[derive(Debug, clickhouse::Row, serde::Serialize, serde::Deserialize)]
struct Migration {
    version: u32,
    name: String,
    checksum: String,
}

async fn migrate_clickhouse(args: &ClickhouseArgs) -> Result<usize, Error> {
    let database = &args.clickhouse_database;
    if database.is_empty() || !database.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(Error::DatabaseName(database.clone()));
    }
    let client = crate::app::clickhouse(args);
    let server = client.clone().with_database("default");
    let layout = Layout::of(&server, database).await?;
    for statement in layout.render(&format!("create database if not exists `{database}`"))? {
        server.query_raw(&statement).execute().await?;
    }
    for statement in layout.render(RECORDS)? {
        client.query_raw(&statement).execute().await?;
    }
    let recorded: Vec<Migration> = client
        .query_raw("select version, name, checksum from schema_migrations final order by version")
        .fetch_all()
        .await?;
    let files = numbered(CLICKHOUSE)?;
    let pending = pending(&files, &recorded)?;
    for file in &files {
        let is_pending = pending.contains(file);
        let (version, file, statement) = file;
        if is_pending || layout.may_have_grown() {
            for statement in layout.render(statement)? {
                execute(&client, file, &statement).await?;
            }
        }
        if !is_pending {
            continue;
        }
        let mut insert = client.insert::<Migration>("schema_migrations").await?;
        let migration =
            Migration { version: *version, name: (*file).to_owned(), checksum: checksum(statement) };
        insert.write(&migration).await?;
        insert.end().await?;
        tracing::info!(file, "applied to clickhouse");
    }
    Ok(pending.len())
}

async fn execute(client: &clickhouse::Client, file: &'static str, statement: &str) -> Result<(), Error> {
    let statement = statement.trim_end().trim_end_matches(';');
    let request = client.query_raw(statement).execute();
    match tokio::time::timeout(Duration::from_secs(600), request).await {
        Ok(result) => result.map_err(|reason| Error::Statement { file, reason }),
        Err(_) => Err(Error::Statement { file, reason: clickhouse::error::Error::TimedOut }),
    }
}

type NumberedFile = (u32, &'static str, &'static str);

/// Reads the number at the start of each name; every file has one, and no two the same.
fn numbered(files: &'static [(&'static str, &'static str)]) -> Result<Vec<NumberedFile>, Error> {
    let mut numbered: Vec<NumberedFile> = Vec::new();
    for &(name, statement) in files {
        let number = name.split('_').next().and_then(|digits| digits.parse().ok());
        match number {
            Some(version) if numbered.last().is_none_or(|last| last.0 < version) => {
                numbered.push((version, name, statement));
            }
            _ => return Err(Error::Numbering(name)),
        }
    }
    Ok(numbered)
}

/// The files that are not applied yet. What is applied has to be what the files say.
fn pending(files: &[NumberedFile], recorded: &[Migration]) -> Result<Vec<NumberedFile>, Error> {
    for migration in recorded {
        match files.iter().find(|file| file.0 == migration.version) {
            None => return Err(Error::ClickhouseIsNewer(migration.name.clone())),
            Some((_, name, statement)) if checksum(statement) != migration.checksum => {
                return Err(Error::Changed((*name).to_owned()));
            }
            Some(_) => {}
        }
    }
    let is_applied = |file: &NumberedFile| recorded.iter().any(|migration| migration.version == file.0);
    Ok(files.iter().filter(|file| !is_applied(file)).copied().collect())
}

fn checksum(statement: &str) -> String {
    Sha256::digest(statement.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_version_are_numbered_and_each_holds_one_statement() {
        let files = numbered(CLICKHOUSE).unwrap();
        for (_, name, statement) in files {
            let code = without_comments_and_strings(statement);
            assert!(!code.trim().is_empty(), "{name} is empty");
            assert!(!code.trim().trim_end_matches(';').contains(';'), "{name} holds several statements");
        }
    }

    fn without_comments_and_strings(statement: &str) -> String {
        let mut code = String::new();
        for line in statement.lines() {
            for (index, part) in line.split('\'').enumerate() {
                let (part, comment) = part.split_once("--").map_or((part, false), |(part, _)| (part, true));
                if index % 2 == 0 {
                    code.push_str(part);
                    if comment {
                        break;
                    }
                }
            }
            code.push('\n');
        }
        code
    }

    #[test]
    fn only_files_that_were_not_applied_are_pending() {
        let files = numbered(&[("0001_a.sql", "a"), ("0003_b.sql", "b")]).unwrap();
        let record = |version, statement: &str| Migration {
            version,
            name: format!("{version}.sql"),
            checksum: checksum(statement),
        };
        assert_eq!(pending(&files, &[]).unwrap().len(), 2);
        assert_eq!(pending(&files, &[record(1, "a")]).unwrap(), [(3, "0003_b.sql", "b")]);
        assert!(
            matches!(pending(&files, &[record(1, "changed")]), Err(Error::Changed(name)) if name == "0001_a.sql")
        );
        assert!(matches!(pending(&files, &[record(4, "d")]), Err(Error::ClickhouseIsNewer(_))));
    }

    #[test]
    fn names_without_a_number_of_their_own_are_refused() {
        assert!(matches!(numbered(&[("a.sql", "")]), Err(Error::Numbering("a.sql"))));
        assert!(matches!(
            numbered(&[("0001_a.sql", ""), ("0001_b.sql", "")]),
            Err(Error::Numbering("0001_b.sql"))
        ));
    }
}
