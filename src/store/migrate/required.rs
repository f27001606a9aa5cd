//! Of which version the schemas of the stores are, and that nothing works on a Postgres which lacks what this version needs.
//! It changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::{CLICKHOUSE, Error, POSTGRES, applied, numbered, pending, recorded};
use crate::store;

/// How long a store may take to say of which version its schema is.
const BRIEF: Duration = Duration::from_secs(3);
/// How long a process waits before it looks again.
const AGAIN: Duration = Duration::from_secs(1);

/// How the schema of a store stands to this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    Current,
    /// It lacks so many files.
    Older(usize),
    /// A newer version was here: what it added is in nobody's way.
    Newer,
}

impl Schema {
    fn new(lacking: usize, unknown: usize) -> Self {
        match (lacking, unknown) {
            (0, 0) => Schema::Current,
            (0, _) => Schema::Newer,
            (lacking, _) => Schema::Older(lacking),
        }
    }
}

/// How the schema of a Postgres stands to this version.
pub async fn of_postgres(connection: &mut PgConnection) -> Result<Schema, sqlx::Error> {
    let applied = applied(connection).await?;
    let lacking = POSTGRES.iter().filter(|file| !applied.contains(&file.version)).count();
    let unknown = applied.iter().filter(|version| !POSTGRES.version_exists(**version)).count();
    Ok(Schema::new(lacking, unknown))
}

/// How the schema of a ClickHouse stands to this version.
pub async fn of_clickhouse(client: &clickhouse::Client) -> Result<Schema, Error> {
    let known = client
        .query_raw("select count() from system.tables where database = currentDatabase() and name = 'schema_migrations'")
        .fetch_one::<u64>()
        .await?;
    let recorded = if known == 0 { Vec::new() } else { recorded(client).await? };
    let files = numbered(CLICKHOUSE)?;
    let lacking = pending(&files, &recorded);
    let lacking = match lacking {
        Err(Error::ClickhouseIsNewer(_)) => return Ok(Schema::Newer),
        lacking => lacking?.len(),
    };
    Ok(Schema::new(lacking, 0))
}

/// Whether Postgres was seen to have what this version needs; once it was, nobody looks again. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Required(Arc<AtomicBool>);

impl Required {
    /// Refuses to work with a Postgres that lacks something; one that does not answer now is no reason to end. What ClickHouse
    /// lacks is told, and records go on without it.
    pub async fn at_start(pg: &PgPool, clickhouse: &clickhouse::Client) -> Result<Self, Error> {
        let required = Required::default();
        let (postgres, clickhouse) =
            tokio::join!(required.look(pg), tokio::time::timeout(BRIEF, of_clickhouse(clickhouse)));
        match clickhouse {
            Ok(Ok(Schema::Older(lacking))) => tracing::error!(
                lacking,
                "clickhouse lacks tables of this version: run `tidemark migrate`; until then nothing reaches it"
            ),
            Ok(Err(error)) => {
                tracing::warn!(%error, "it cannot be told of which version clickhouse's tables are")
            }
            Err(_) => {
                tracing::warn!("clickhouse does not say in time of which version its tables are")
            }
            Ok(Ok(_)) => {}
        }
        match postgres {
            Err(store::Error::Schema(lacking)) => Err(Error::PostgresIsOlder(lacking)),
            Err(error) => {
                tracing::warn!(%error, "postgres does not say of which version its tables are; nothing is done before it does");
                Ok(required)
            }
            Ok(()) => Ok(required),
        }
    }

    /// Looks, unless it was seen before. Fails while Postgres lacks something or does not answer.
    pub async fn look(&self, pg: &PgPool) -> Result<(), store::Error> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(());
        }
        let of_postgres = async { Ok(of_postgres(&mut *pg.acquire().await?).await?) };
        match tokio::time::timeout(BRIEF, of_postgres).await {
            Ok(Ok(Schema::Older(lacking))) => return Err(store::Error::Schema(lacking)),
            Ok(Ok(Schema::Current | Schema::Newer)) => {}
            Ok(Err(error)) if is_temporary(&error) => return Err(error),
            // It would say the same again, to a role that may not look for one.
            Ok(Err(error)) => {
                tracing::warn!(%error, "it cannot be told of which version postgres' tables are")
            }
            Err(_) => {
                return Err(store::Error::Postgres(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())));
            }
        }
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until Postgres has what this version needs. Says whether it came to that before the process was told to stop.
    pub async fn wait(&self, pg: &PgPool, stop: &CancellationToken) -> bool {
        let mut told = false;
        let seen = async {
            while let Err(error) = self.look(pg).await {
                if matches!(error, store::Error::Schema(_)) && !std::mem::replace(&mut told, true) {
                    tracing::error!("{error}; waiting for it");
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        stop.run_until_cancelled(seen).await.is_some()
    }
}

fn is_temporary(error: &store::Error) -> bool {
    error.is_outage() || error.is_broken_off()
}
