//! Ends a transfer that takes longer than a request soon after its key is revoked.

use std::time::Duration;

use salvo::Depot;
use sqlx::PgPool;
use tokio::time::Instant;

use super::problem::Problem;
use crate::app::App;
use crate::http::caller::Caller;
use crate::store::records::keys;

const CHECK_INTERVAL: Duration = Duration::from_secs(2);
const _: () = assert!(CHECK_INTERVAL.as_millis() < 5_000, "key changes must take effect within five seconds");

/// The key of a request, checked while its body is received or its response sent.
pub(in crate::http) struct KeyWatch {
    pg: PgPool,
    caller: Caller,
    next_check: Instant,
}

impl KeyWatch {
    pub(in crate::http) fn from_depot(depot: &Depot) -> Result<Self, Problem> {
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let next_check = Instant::now() + CHECK_INTERVAL;
        Ok(KeyWatch { pg: app.pg.clone(), caller: Caller::from_depot(depot)?, next_check })
    }

    /// Runs a part of the work, which fails when the key is no longer accepted.
    pub(in crate::http) async fn run<T>(
        &mut self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                // First, because work that is always done at once leaves no time for the check.
                () = tokio::time::sleep_until(self.next_check) => self.check().await?,
                done = &mut work => return done,
            }
        }
    }

    async fn check(&mut self) -> Result<(), Problem> {
        let Caller { organization, key, .. } = self.caller;
        let is_accepted = keys::is_accepted(&self.pg, organization, key).await;
        self.next_check = Instant::now() + CHECK_INTERVAL;
        match is_accepted {
            Ok(false) => Err(Problem::forbidden("this API key is no longer accepted")),
            Ok(true) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "cannot check the key of a transfer");
                Ok(())
            }
        }
    }
}
