//! Checks at run time that the servers are supported and have this version's schema, without changing it.

use std::sync::Arc;
use std::time::Duration;

use clickhouse::Client;
use sqlx::PgPool;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::postgres;
use super::state::SchemaState;
use crate::store;
use crate::store::clickhouse::diagnosis;
use crate::store::migrate::supported_releases::{CLICKHOUSE, POSTGRES};
use crate::store::postgres::diagnosis::fetch_version;
use crate::store::postgres::{session, with_timeout};

const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Passes once Postgres is supported and has this version's schema, and stays passed. Runs once at a time, because it opens
/// connections outside of the pool. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SchemaCheck(Arc<OnceCell<()>>);

impl SchemaCheck {
    /// Fails if a server is too old, if Postgres lacks migrations or is behind a pooler that shares sessions, or if a store
    /// has an incompatible schema. An unreachable store, or a ClickHouse that lacks migrations, is only logged: records work
    /// without ClickHouse.
    pub async fn at_start(pg: &PgPool, client: &Client) -> Result<Self, Error> {
        let check = SchemaCheck::default();
        let clickhouse = tokio::time::timeout(CHECK_TIMEOUT, fetch_clickhouse(client));
        let (postgres, clickhouse) = tokio::join!(check_postgres(pg), clickhouse);
        match clickhouse {
            Ok(Ok((version, state))) => check_clickhouse(&version, state)?,
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the schema version of clickhouse"),
            Err(_) => tracing::warn!("cannot read the schema version of clickhouse in time"),
        }
        match postgres {
            Ok(result) => {
                result?;
                _ = check.0.set(());
            }
            Err(error @ store::Error::SharedSession) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "cannot read the schema version of postgres, waiting for it")
            }
        }
        Ok(check)
    }

    /// Whether the check has passed.
    pub fn has_passed(&self) -> bool {
        self.0.initialized()
    }

    /// Fails while Postgres is not supported, has another schema or is unreachable.
    pub async fn check(&self, pg: &PgPool) -> Result<(), store::Error> {
        let check =
            || async { check_postgres(pg).await?.map_err(|error| store::Error::Schema(error.to_string())) };
        self.0.get_or_try_init(check).await.copied()
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

/// Fetches the version of the server and the state of the schema.
async fn fetch_clickhouse(client: &Client) -> clickhouse::error::Result<(String, SchemaState)> {
    let server = client.clone().with_database("default");
    tokio::try_join!(diagnosis::fetch_version(&server), super::clickhouse::fetch_state(client))
}

fn check_clickhouse(version: &str, state: SchemaState) -> Result<(), Error> {
    CLICKHOUSE.require(version)?;
    match state.check_usable("clickhouse") {
        Err(error @ Error::Older { .. }) => {
            tracing::error!(%error, "analytics and the relay do not work until clickhouse is migrated");
            Ok(())
        }
        result => result,
    }
}

/// Checks Postgres. The outer error means that it is unreachable, or behind a pooler that shares sessions. A role that may not
/// read the applied migrations is assumed to have the right schema, because a retry would not help.
async fn check_postgres(pg: &PgPool) -> Result<Result<(), Error>, store::Error> {
    let check = async {
        session::ensure_unshared(&pg.connect_options()).await?;
        let mut connection = pg.acquire().await?;
        if let Err(error) = POSTGRES.require(&fetch_version(&mut connection).await?) {
            return Ok(Err(error.into()));
        }
        let state = postgres::fetch_state(&mut connection).await?;
        Ok::<_, store::Error>(state.check_usable("postgres"))
    };
    match with_timeout(CHECK_TIMEOUT, check).await {
        Err(error) if !error.is_unavailable() && !error.is_canceled() => {
            tracing::warn!(%error, "cannot read the schema version of postgres, assuming this one's");
            Ok(Ok(()))
        }
        result => result,
    }
}
