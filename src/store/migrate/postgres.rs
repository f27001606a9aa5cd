//! Applies `migrations/` to Postgres, one file after the other, without blocking requests for long.

use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateDatabase, MigrateError, Migration, Migrator};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;

use super::error::Error;
use super::state::{Checksums, SchemaState};
use crate::store::postgres::advisory_lock::{AdvisoryLock, LockName};
use crate::store::postgres::{diagnosis, session};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!();

/// The table in which sqlx records applied migrations.
const MIGRATIONS_TABLE: &str = "_sqlx_migrations";

/// The key of the advisory lock that a migrating process holds; an arbitrary number that nothing else uses.
pub const ADVISORY_LOCK: i64 = 0x0074_6964_656d_6172;

/// The name of [`MigrationLock`].
pub enum MigrationLockName {}

impl LockName for MigrationLockName {
    const NAME: &'static str = "tidemark.migration";

    fn key() -> String {
        ADVISORY_LOCK.to_string()
    }
}

/// The lock of the process that migrates, and the connection on which it does.
pub type MigrationLock = AdvisoryLock<MigrationLockName>;

/// How long a migration waits for a lock. Requests queue behind it and time out after four seconds.
const LOCK_TIMEOUT_MILLIS: u64 = 2_000;
const _: () = assert!(LOCK_TIMEOUT_MILLIS < 4_000);
/// The pause between two attempts, in which queued requests proceed.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(500);
const MAX_LOCK_WAIT: Duration = Duration::from_secs(300);

/// Creates the database unless it exists.
pub(super) async fn create_database(url: &str) -> Result<(), Error> {
    // A role without access to the maintenance database gets the error of its own database, if there is one.
    if sqlx::Postgres::database_exists(url).await.unwrap_or(true) {
        return Ok(());
    }
    match sqlx::Postgres::create_database(url).await {
        // Another process created it meanwhile: 42P04 duplicate database, or 23505 when both did so at once.
        Err(sqlx::Error::Database(error)) if matches!(error.code().as_deref(), Some("42P04" | "23505")) => {
            Ok(())
        }
        result => Ok(result?),
    }
}

/// Waits until no other process migrates.
///
/// Polls, because a session that waits within a statement deadlocks with an index that the lock holder builds concurrently.
pub async fn lock(database_url: &str) -> Result<MigrationLock, sqlx::Error> {
    let mut lock = MigrationLock::connect(&session::parse_url(database_url)?).await?;
    let mut is_logged = false;
    while !lock.try_lock().await? {
        if !is_logged {
            tracing::info!("another process is migrating, waiting for it");
            is_logged = true;
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
    Ok(lock)
}

/// Applies the pending migrations and returns how many there were.
pub async fn migrate(lock: &mut MigrationLock, migrations: &Migrator) -> Result<usize, Error> {
    lock.connection().ensure_migrations_table(MIGRATIONS_TABLE).await?;
    let applied = fetch_applied(lock.connection()).await?;
    SchemaState::compare(&checksums(migrations), &applied).check_upgradable("postgres")?;
    let deadline = Instant::now() + MAX_LOCK_WAIT;
    let mut count = 0;
    for migration in migrations.iter().filter(|migration| !applied.contains_key(&migration.version)) {
        lock.ensure_held().await?;
        apply(lock.connection(), migration, deadline).await?;
        count += 1;
    }
    Ok(count)
}

async fn apply(connection: &mut PgConnection, migration: &Migration, deadline: Instant) -> Result<(), Error> {
    // A concurrent index build waits for open transactions, but nothing queues behind it.
    let lock_timeout = if migration.no_tx { 0 } else { LOCK_TIMEOUT_MILLIS };
    sqlx::query("select set_config('lock_timeout', $1, false)")
        .bind(lock_timeout.to_string())
        .execute(&mut *connection)
        .await?;
    if migration.no_tx {
        drop_invalid_index(connection, migration.sql.as_str()).await?;
    }
    while let Err(error) = connection.apply(MIGRATIONS_TABLE, migration).await {
        if !is_lock_conflict(&error) {
            return Err(error.into());
        }
        if Instant::now() > deadline {
            return Err(Error::Locked(migration.version));
        }
        tracing::info!(migration = migration.version, "migration waits for a lock, retrying");
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
    Ok(())
}

/// Drops the index that a migration builds, if an interrupted build left it invalid.
async fn drop_invalid_index(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    for index in diagnosis::list_invalid_indexes(connection).await? {
        if sql.contains(&format!(" {index} ")) {
            tracing::info!(index, "rebuilding an index whose build was interrupted");
            let statement = AssertSqlSafe(format!("drop index concurrently {index}"));
            sqlx::raw_sql(statement).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Whether a migration did not get its locks, and changed nothing.
fn is_lock_conflict(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(|error| error.code());
    // lock_not_available, deadlock_detected
    matches!(code.as_deref(), Some("55P03" | "40P01"))
}

/// Compares the schema of a Postgres to this version's, without changing anything.
pub async fn fetch_state(connection: &mut PgConnection) -> Result<SchemaState, sqlx::Error> {
    Ok(SchemaState::compare(&checksums(&MIGRATIONS), &fetch_applied(connection).await?))
}

fn checksums(migrations: &Migrator) -> Checksums {
    migrations.iter().map(|migration| (migration.version, migration.checksum.to_vec())).collect()
}

async fn fetch_applied(connection: &mut PgConnection) -> Result<Checksums, sqlx::Error> {
    let exists: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if !exists {
        return Ok(Checksums::new());
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("select version, checksum from _sqlx_migrations where success")
            .fetch_all(connection)
            .await?;
    Ok(applied.into_iter().collect())
}
