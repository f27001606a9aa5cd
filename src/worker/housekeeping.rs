//! Removes what is kept for a time only and no request looks at any more: answers under idempotency keys, and
//! windows of the rate limit; and adds up changes that were only noted. Each statement takes a bounded number of rows,
//! so that none holds locks for long.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{LONG, within};
use crate::store::Error;
use crate::store::lifecycle::vacuum;
use crate::store::records::idempotency;
use crate::store::records::post_days;
use crate::store::records::rate_limits;

/// How often there is a look for what can go.
const EVERY: Duration = Duration::from_secs(60);
/// Rows that one statement takes.
const BATCH: u64 = 5_000;

/// How often the file is vacuumed that answers were removed from: they tell of what may be deleted since, and their day is
/// over already.
const VACUUM_EVERY: Duration = Duration::from_secs(3600);

/// Cleans up regularly until told to stop. Several processes may do so at once.
pub async fn run(pg: PgPool, stop: CancellationToken) {
    let mut housekeeping = Housekeeping { pg, removed: 0, vacuumed: None };
    let mut turn = tokio::time::interval(EVERY);
    let cleaning = async {
        loop {
            turn.tick().await;
            if let Err(error) = housekeeping.clean().await {
                tracing::warn!(%error, "cannot remove what is kept no longer; trying again in a minute");
            }
        }
    };
    // Whatever it is at may be given up: each statement is for itself.
    let _: Option<()> = stop.run_until_cancelled(cleaning).await;
}

struct Housekeeping {
    pg: PgPool,
    /// Answers that were removed since the last time that their file was vacuumed.
    removed: u64,
    vacuumed: Option<Instant>,
}

impl Housekeeping {
    async fn clean(&mut self) -> Result<(), Error> {
        let Housekeeping { pg, removed, vacuumed } = self;
        let mut batch = BATCH;
        while batch == BATCH {
            batch = within(LONG, idempotency::delete_expired(pg, BATCH as i64)).await?;
            *removed += batch;
        }
        while within(LONG, rate_limits::delete_expired(pg, BATCH as i64)).await? == BATCH {}
        while within(LONG, post_days::compact(pg, BATCH as i64)).await? == BATCH {}
        if *removed > 0 && vacuumed.is_none_or(|at| at.elapsed() >= VACUUM_EVERY) {
            vacuum::vacuum_idempotency_keys(pg).await?;
            (*removed, *vacuumed) = (0, Some(Instant::now()));
        }
        Ok(())
    }
}
