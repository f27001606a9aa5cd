//! Checks at run time that the stores have this version's schema, without changing it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::state::SchemaState;
use super::{clickhouse, postgres};
use crate::store;
use crate::store::postgres::{session, with_timeout};

const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Passes once Postgres has this version's schema, and stays passed. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SchemaCheck(Arc<AtomicBool>);

impl SchemaCheck {
    /// Fails if Postgres lacks migrations or is behind a pooler that shares sessions, or if a store has an incompatible
    /// schema. An unreachable store, or a ClickHouse that lacks migrations, is only logged: records work without
    /// ClickHouse.
    pub async fn at_start(pg: &PgPool, client: &::clickhouse::Client) -> Result<Self, Error> {
        let check = SchemaCheck::default();
        let clickhouse = tokio::time::timeout(CHECK_TIMEOUT, clickhouse::fetch_state(client));
        let (postgres, clickhouse) = tokio::join!(fetch_postgres_state(pg), clickhouse);
        match clickhouse {
            Ok(Ok(state)) => check_clickhouse(state)?,
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the schema version of clickhouse"),
            Err(_) => tracing::warn!("cannot read the schema version of clickhouse in time"),
        }
        match postgres {
            Ok(state) => {
                state.check_usable("postgres")?;
                check.0.store(true, Ordering::Relaxed);
            }
            Err(error @ store::Error::SharedSession) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "cannot read the schema version of postgres, waiting for it")
            }
        }
        Ok(check)
    }

    /// Fails while Postgres has another schema or is unreachable.
    pub async fn check(&self, pg: &PgPool) -> Result<(), store::Error> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(());
        }
        let state = fetch_postgres_state(pg).await?;
        state.check_usable("postgres").map_err(|error| store::Error::Schema(error.to_string()))?;
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the check passes. Returns false if the process is stopped first.
    pub async fn wait(&self, pg: &PgPool, stop: &CancellationToken) -> bool {
        let mut is_logged = false;
        let passed = async {
            while let Err(error) = self.check(pg).await {
                if matches!(error, store::Error::Schema(_) | store::Error::SharedSession) && !is_logged {
                    tracing::error!(%error, "waiting for the schema of this version");
                    is_logged = true;
                }
                tokio::time::sleep(RECHECK_INTERVAL).await;
            }
        };
        stop.run_until_cancelled(passed).await.is_some()
    }
}

fn check_clickhouse(state: SchemaState) -> Result<(), Error> {
    match state.check_usable("clickhouse") {
        Err(error @ Error::Older { .. }) => {
            tracing::error!(%error, "analytics and the relay do not work until clickhouse is migrated");
            Ok(())
        }
        result => result,
    }
}

/// Reads the state of Postgres. An error means that it is unreachable, or behind a pooler that shares sessions. A role that may not read the applied migrations is
/// assumed to have the right schema, because a retry would not help.
async fn fetch_postgres_state(pg: &PgPool) -> Result<SchemaState, store::Error> {
    let state = async {
        session::ensure_unshared(&pg.connect_options()).await?;
        Ok::<_, store::Error>(postgres::fetch_state(&mut *pg.acquire().await?).await?)
    };
    match with_timeout(CHECK_TIMEOUT, state).await {
        Err(error) if !error.is_unavailable() && !error.is_canceled() => {
            tracing::warn!(%error, "cannot read the schema version of postgres, assuming this one's");
            Ok(SchemaState::Current)
        }
        result => result,
    }
}
