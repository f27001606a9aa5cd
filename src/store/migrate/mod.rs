//! Migrates Postgres (`migrations/`) and ClickHouse (`schemas/`) to this version's schema.
//!
//! Migrations only go forward, and run while the previous version serves (CONTRIBUTING.md has the rules). Any number of
//! processes may migrate at once: one works, the others wait for an advisory lock in Postgres.

mod backfill;
mod check;
mod clickhouse;
mod error;
mod postgres;
mod state;
pub mod supported_releases;

use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store::migrate::supported_releases::POSTGRES;
use crate::store::postgres::{diagnosis, pool, session};

pub use check::SchemaCheck;
pub use clickhouse::{CREATE_SCHEMA_MIGRATIONS, fetch_state as fetch_clickhouse_state};
pub use error::Error;
pub use postgres::{
    ADVISORY_LOCK, fetch_state as fetch_postgres_state, lock as lock_postgres, migrate as migrate_postgres,
};
pub use state::SchemaState;

/// How many migrations were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppliedCounts {
    pub postgres: usize,
    pub clickhouse: usize,
}

/// Migrates both stores, creates their databases where they are missing, and rewrites the rows that earlier versions stored in
/// another form.
pub async fn run(
    postgres_args: &PostgresArgs,
    clickhouse_args: &ClickhouseArgs,
) -> Result<AppliedCounts, Error> {
    let url = postgres_args.database_url.reveal();
    postgres::create_database(url).await?;
    session::ensure_unshared(&session::parse_url(url)?).await?;
    let mut lock = postgres::lock(url).await?;
    POSTGRES.require(&diagnosis::fetch_version(lock.connection()).await?)?;
    let postgres = postgres::migrate(&mut lock, &postgres::MIGRATIONS).await?;
    lock.ensure_held().await?;
    let pg = pool::connect(postgres_args)?;
    backfill::run(&pg).await?;
    pg.close().await;
    lock.ensure_held().await?;
    let clickhouse = clickhouse::migrate(clickhouse_args).await?;
    // The lock ends with the session, also when an error drops the connection.
    lock.release().await?;
    Ok(AppliedCounts { postgres, clickhouse })
}
