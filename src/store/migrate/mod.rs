//! Brings both stores to the schema of this version: `migrations/` in Postgres, `schemas/` in ClickHouse.
//!
//! Forward only, while the version before goes on serving (CONTRIBUTING.md says what a file may do, `rules` checks it). Each
//! ClickHouse file is one numbered statement, recorded in `schema_migrations` once it has run. Any number of processes may
//! migrate at once: an advisory lock in Postgres lets one work and the others wait.
//! The views for data teams (`schemas/views/`) hold nothing, so they are made again every time, and are there again after
//! a restore.

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::migrate::{MigrateDatabase, MigrateError, Migrator};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::Instant;

use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store::clickhouse::cluster::{self, Layout};
use crate::store::clickhouse::connect;
use crate::store::postgres::diagnosis;

mod required;
#[cfg(test)]
mod rules;

pub use required::{Required, Schema, of_clickhouse, of_postgres};

static POSTGRES: Migrator = sqlx::migrate!();

/// The files of `schemas/`, by name.
static CLICKHOUSE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// The files of `schemas/views/`, by name.
static VIEWS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/views.rs"));

/// Where it is recorded what was applied.
pub const RECORDS: &str = "create table if not exists schema_migrations (
                 version UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC') default now64(3)
             ) engine = ReplacingMergeTree order by version";

/// The advisory lock that a migrating process holds in Postgres; any number will do that nothing else uses.
pub const LOCK: i64 = 0x0074_6964_656d_6172;

/// How long a migration waits for a lock that a transaction holds, in milliseconds: requests that come after it wait in
/// line behind it, and have less than five seconds.
const LOCK_MILLIS: u64 = 2_000;
const _: () = assert!(LOCK_MILLIS < 4_000, "a request waits four seconds for a lock");
/// How long others get in between before it tries again, and for how long it goes on trying.
const PAUSE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(300);

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
    #[error(
        "postgres lacks {0} of this version's migrations: run `tidemark migrate` with this version, then start it again"
    )]
    PostgresIsOlder(usize),
    #[error(
        "migration {0} waits for a lock that another transaction holds, for {minutes} minutes now: `tidemark doctor` names \
         transactions that are open for long; end it and run `tidemark migrate` again",
        minutes = PATIENCE.as_secs() / 60
    )]
    Locked(i64),
    #[error("clickhouse cannot be migrated: {0}")]
    Clickhouse(#[from] clickhouse::error::Error),
    #[error("clickhouse refused schemas/{file}: {reason}")]
    Statement { file: &'static str, reason: clickhouse::error::Error },
    #[error(
        "clickhouse refused schemas/views/{file}: {reason}; its user must be allowed everything in {database} too"
    )]
    View { file: &'static str, database: String, reason: clickhouse::error::Error },
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
    take_turn(&mut connection).await?;
    let applied = Applied {
        postgres: migrate_postgres(&mut connection).await?,
        clickhouse: migrate_clickhouse(clickhouse).await?,
    };
    // Closing the session frees the lock, as an error's drop of the connection does.
    connection.close().await?;
    Ok(applied)
}

/// Waits until no other process migrates. Asks again and again: who waits within a statement is in the way of an index that the
/// other one builds concurrently, and both wait for each other.
async fn take_turn(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut told = false;
    loop {
        let turn = sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LOCK);
        if turn.fetch_one(&mut *connection).await? {
            return Ok(());
        }
        if !std::mem::replace(&mut told, true) {
            tracing::info!("another process migrates; waiting for it");
        }
        tokio::time::sleep(PAUSE).await;
    }
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
    let known = applied(connection).await?;
    let pending: Vec<_> = POSTGRES.iter().filter(|file| !known.contains(&file.version)).collect();
    let since = Instant::now();
    for file in &pending {
        // An index that is built concurrently waits for old transactions, and nobody waits behind it.
        let limit = if file.no_tx { 0 } else { LOCK_MILLIS };
        let setting = "select set_config('lock_timeout', $1, false)";
        sqlx::query(setting).bind(limit.to_string()).execute(&mut *connection).await?;
        if file.no_tx {
            remove_broken_off(connection, file.sql.as_str()).await?;
        }
        while let Err(error) = POSTGRES.run_to(file.version, &mut *connection).await {
            match error {
                MigrateError::VersionMissing(_) => return Err(Error::PostgresIsNewer),
                error if !is_locked(&error) => return Err(error.into()),
                _ if since.elapsed() > PATIENCE => return Err(Error::Locked(file.version)),
                _ => {
                    tracing::info!(
                        migration = file.version,
                        "another transaction is in the way; trying again"
                    );
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
    // Whatever was applied is compared with the files, also when nothing is pending.
    match POSTGRES.run(&mut *connection).await {
        Err(MigrateError::VersionMissing(_)) => Err(Error::PostgresIsNewer),
        result => Ok(result.map(|()| pending.len())?),
    }
}

/// Removes the index that a file builds, where an earlier attempt was broken off: it serves nobody and is in the way.
async fn remove_broken_off(connection: &mut PgConnection, file: &str) -> Result<(), sqlx::Error> {
    for index in diagnosis::invalid_indexes(connection).await? {
        if file.contains(&format!(" {index} ")) {
            tracing::info!(index, "the building of an index was broken off; it is built anew");
            let statement = format!("drop index concurrently {index}");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

fn is_locked(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "55P03")
}

/// The migrations that a database has.
async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, sqlx::Error> {
    let known: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(Vec::new());
    }
    sqlx::query_scalar("select version from _sqlx_migrations where success").fetch_all(connection).await
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
    let client = connect::clickhouse(args);
    let server = client.clone().with_database("default");
    let layout = in_time(Layout::of(&server, database)).await?;
    for statement in layout.render(&format!("create database if not exists `{database}`"))? {
        bounded(server.query_raw(&statement)).await?;
    }
    for statement in layout.render(RECORDS)? {
        bounded(client.query_raw(&statement)).await?;
    }
    let recorded = in_time(recorded(&client)).await?;
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
        let migration =
            Migration { version: *version, name: (*file).to_owned(), checksum: checksum(statement) };
        in_time(record(&client, &migration)).await?;
        tracing::info!(file, "applied to clickhouse");
    }
    make_views(&client, &layout, args).await?;
    Ok(pending.len())
}

/// Makes the public views over the tables of the client's database, in a database of their own.
async fn make_views(
    client: &clickhouse::Client,
    layout: &Layout,
    args: &ClickhouseArgs,
) -> Result<(), Error> {
    let database = args.public_database();
    let refused = |file, reason| Error::View { file, database: database.clone(), reason };
    for statement in layout.render(&format!("create database if not exists `{database}`"))? {
        bounded(client.query_raw(&statement)).await.map_err(|reason| refused("", reason))?;
    }
    for &(file, view) in VIEWS {
        for statement in layout.render(view)? {
            let view = client.query_raw(&statement).param("public", &database);
            bounded(view).await.map_err(|reason| refused(file, reason))?;
        }
    }
    Ok(())
}

async fn recorded(client: &clickhouse::Client) -> Result<Vec<Migration>, Error> {
    let statement = "select version, name, checksum from schema_migrations final order by version";
    Ok(client.query_raw(statement).fetch_all().await?)
}

async fn record(client: &clickhouse::Client, migration: &Migration) -> clickhouse::error::Result<()> {
    let mut insert = client.insert::<Migration>("schema_migrations").await?;
    insert.write(migration).await?;
    insert.end().await
}

async fn execute(client: &clickhouse::Client, file: &'static str, statement: &str) -> Result<(), Error> {
    let statement = statement.trim_end().trim_end_matches(';');
    bounded(client.query_raw(statement)).await.map_err(|reason| Error::Statement { file, reason })
}

/// Runs a statement for ten minutes at most.
async fn bounded(statement: clickhouse::query::Query) -> clickhouse::error::Result<()> {
    in_time(statement.execute()).await
}

/// Waits for ClickHouse for ten minutes at most: others wait for the lock meanwhile.
async fn in_time<T, E: From<clickhouse::error::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let done = tokio::time::timeout(Duration::from_secs(600), work).await;
    done.unwrap_or_else(|_| Err(clickhouse::error::Error::TimedOut.into()))
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
    use super::rules::without_comments_and_strings;
    use super::*;

    #[test]
    fn the_files_of_this_version_are_numbered_and_each_holds_one_statement() {
        let files = numbered(CLICKHOUSE).unwrap();
        for (_, name, statement) in files {
            let code = without_comments_and_strings(statement);
            assert!(!code.trim().is_empty(), "{name} is empty");
            assert!(!code.trim().trim_end_matches(';').contains(';'), "{name} holds several statements");
        }
        for (name, statement) in VIEWS {
            let code = without_comments_and_strings(statement);
            let view =
                format!("CREATE OR REPLACE VIEW {{public:Identifier}}.{}\n", name.trim_end_matches(".sql"));
            assert!(code.trim_start().starts_with(&view), "{name} makes another view");
            assert!(code.contains("SQL SECURITY INVOKER"), "{name} reads as somebody else");
            assert!(!code.contains(';'), "{name} holds several statements");
        }
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
