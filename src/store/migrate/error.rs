//! Errors of migrations and schema checks.

use sqlx::migrate::MigrateError;

use crate::store;
use crate::store::clickhouse::cluster;
use crate::store::migrate::supported_releases::UnsupportedRelease;
use crate::store::postgres::pool::DatabaseUrlError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Release(#[from] UnsupportedRelease),
    #[error("{store} lacks {missing} migrations of this version: run `tidemark migrate`")]
    Older { store: &'static str, missing: usize },
    #[error(
        "{store} was migrated by a newer Tidemark: run that version, or restore a backup of this version's data"
    )]
    Newer { store: &'static str },
    #[error(
        "{store} was migrated by an incompatible Tidemark (migration {version} differs): export with that version \
         (`tidemark export`), then import into a new database (`tidemark import`)"
    )]
    Incompatible { store: &'static str, version: i64 },
    #[error(transparent)]
    DatabaseUrl(#[from] DatabaseUrlError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("postgres cannot be migrated: {0}")]
    Postgres(#[from] sqlx::Error),
    #[error("postgres cannot be migrated: {0}")]
    Migration(#[from] MigrateError),
    #[error(
        "migration {0} waited too long for a lock of another transaction: `tidemark doctor` names long transactions; \
         end it, then run `tidemark migrate` again"
    )]
    Locked(i64),
    #[error("clickhouse cannot be migrated: {0}")]
    Clickhouse(#[from] cluster::Error),
    #[error("clickhouse refused schemas/{file}: {reason}")]
    Statement { file: &'static str, reason: cluster::Error },
    #[error(
        "clickhouse refused schemas/views/{file}: {reason}; its user must have all rights in {database} too"
    )]
    View { file: &'static str, database: String, reason: cluster::Error },
    #[error("invalid database name {0:?}: use letters, digits and underscores")]
    DatabaseName(String),
}
