//! The relay: delivers the outbox to ClickHouse, in one process at a time.
//!
//! It continues after the delivery number that ClickHouse has recorded. It compares that number again while it is idle
//! and at the end of each delivery, so that deliveries which ClickHouse lost are repeated. While idle it also looks for
//! rows that another relay numbered and did not deliver.

mod batches;
mod delivery;
mod plan;

use std::pin::pin;
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::failure_log::FailureLog;
use super::telemetry::DeliveryTelemetry;
use super::timeout;
use crate::app::Databases;
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, RecomputeMode};
use crate::store::lifecycle::rewrite::Rewrite;
use crate::store::outbox::{self, BlockedOrganizations, Delivery, RelayLock};
use crate::store::postgres::notifications::{self, Topic};

/// The shortest pause after the outbox was empty.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before the next attempt to acquire the lock, or to reach a store that is down.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often at most a relay checks ClickHouse's delivery number while it is idle, and looks for unblocked organizations.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The most bytes of encoded events in one delivery, a few hundred thousand snapshots.
const MAX_DELIVERY_BYTES: i64 = 4 << 20;
/// How long the relay may deliver the rest of the outbox during shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
const PRUNE_INTERVAL: Duration = Duration::from_secs(600);

/// Runs a task whose changes have to be delivered, and a relay meanwhile in case no tracker runs one.
pub async fn run_during<T>(databases: &Databases, task: impl Future<Output = T>) -> T {
    let stop = CancellationToken::new();
    let relay = tokio::spawn(run(databases.clone(), stop.clone()));
    let output = task.await;
    stop.cancel();
    let _ = relay.await;
    output
}

/// Delivers until it is stopped, and retries while a store is down. Then it delivers the rest of the outbox, within
/// [`SHUTDOWN_GRACE`].
pub async fn run(databases: Databases, stop: CancellationToken) {
    let mut log = FailureLog::new("delivery to clickhouse failed").with_error_level();
    let mut grace_is_over = pin!(timeout::wait_for_grace_period(&stop, SHUTDOWN_GRACE));
    while !stop.is_cancelled() {
        let result = tokio::select! {
            result = relay_with_lock(&databases, &mut log, &stop) => result,
            () = &mut grace_is_over => {
                tracing::warn!("the relay stopped before the outbox was empty, the next relay continues");
                return;
            }
        };
        if let Err(error) = result {
            log.record_failure(&error);
        }
        stop.run_until_cancelled(tokio::time::sleep(RETRY_DELAY)).await;
    }
}

/// Delivers while this process holds the relay lock, the stores are up, and ClickHouse's delivery number is as
/// expected. During shutdown it returns once the outbox is empty.
async fn relay_with_lock(
    databases: &Databases,
    log: &mut FailureLog,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let pg = &databases.pg;
    let Some(started) = stop.run_until_cancelled(Relay::start(databases)).await else { return Ok(()) };
    let Some(mut relay) = started? else { return Ok(()) };
    let mut blocked = BlockedOrganizations::default();
    let mut last_check = Instant::now();
    let mut writes = notifications::subscribe(&[Topic::Writes]);
    let rewrite = timeout::short(Rewrite::start(pg)).await?;
    let mut maintenance = Maintenance { prune_at: Instant::now(), unblock_at: Instant::now(), rewrite };
    loop {
        timeout::short(relay.lock.ensure_held()).await?;
        maintenance.run_due(pg, &mut blocked).await?;
        let next = outbox::begin_delivery(relay.lock.connection(), MAX_DELIVERY_BYTES, &mut blocked);
        if let Some(delivery) = timeout::long(next).await? {
            failpoint::reached("relay-numbered");
            if !relay.deliver(databases, &delivery).await? {
                return Ok(());
            }
            last_check = Instant::now();
        } else if stop.is_cancelled() {
            return timeout::short(relay.lock.release()).await;
        } else {
            if last_check.elapsed() > CHECK_INTERVAL {
                if history_writer::last_delivery(&databases.clickhouse).await?.number != relay.last_delivery {
                    return Ok(());
                }
                // A relay behind a pooler that shares sessions may have numbered them after this one resumed.
                if timeout::short(outbox::has_unfinished_rows(pg)).await? {
                    return Ok(());
                }
                last_check = Instant::now();
            }
            stop.run_until_cancelled(writes.wait(POLL_INTERVAL, maintenance.is_work_left())).await;
        }
        log.record_success();
    }
}

/// Periodic work between deliveries, in small steps.
struct Maintenance {
    prune_at: Instant,
    unblock_at: Instant,
    rewrite: Option<Rewrite>,
}

impl Maintenance {
    fn is_work_left(&self) -> bool {
        self.rewrite.is_some() || self.prune_at <= Instant::now()
    }

    async fn run_due(&mut self, pg: &PgPool, blocked: &mut BlockedOrganizations) -> Result<(), Error> {
        let now = Instant::now();
        if self.unblock_at <= now {
            timeout::short(blocked.unblock_deleted(pg)).await?;
            self.unblock_at = now + CHECK_INTERVAL;
        }
        if self.prune_at <= now && timeout::long(outbox::prune_delivered(pg)).await? < outbox::PRUNED_ROWS {
            self.prune_at = now + PRUNE_INTERVAL;
        }
        if let Some(rewrite) = &mut self.rewrite
            && !timeout::long(rewrite.step(pg)).await?
        {
            self.rewrite = None;
        }
        Ok(())
    }
}

/// The relay of this process.
struct Relay {
    lock: RelayLock,
    /// The last delivery that ClickHouse has.
    last_delivery: i64,
    /// Rows up to this position were in an attempt that was not finished. Its statements may still run in ClickHouse,
    /// on what they read when they began.
    abandoned_position: i64,
}

impl Relay {
    /// Acquires the relay lock and determines where to continue; `None` while another process holds the lock.
    async fn start(databases: &Databases) -> Result<Option<Self>, Error> {
        let Databases { pg, clickhouse, .. } = databases;
        let Some(lock) = timeout::short(RelayLock::try_acquire(pg)).await? else { return Ok(None) };
        history_writer::wait_for_inserts(clickhouse, history_writer::SLOW_INSERT).await?;
        let recorded = history_writer::last_delivery(clickhouse).await?;
        let last_delivery = recorded.number;
        timeout::long(outbox::unknown_history::detect(pg, clickhouse, recorded)).await?;
        let resumed = timeout::long(outbox::resume(pg, recorded)).await?;
        if resumed.reopened > 0 {
            tracing::warn!(
                rows = resumed.reopened,
                last_delivery,
                "clickhouse lacks deliveries, repeating them"
            );
        }
        if let Some(reason) = timeout::short(outbox::unknown_history::describe(pg)).await? {
            tracing::error!(last_delivery, reason, "clickhouse has unknown history");
        }
        for missing in timeout::short(outbox::fetch_missing_history(pg)).await? {
            tracing::error!(reason = %missing, "clickhouse lacks history");
        }
        Ok(Some(Relay { lock, last_delivery, abandoned_position: resumed.abandoned_position }))
    }

    /// Delivers and marks the rows applied. Returns false if ClickHouse's data was replaced during the delivery.
    async fn deliver(&mut self, databases: &Databases, delivery: &Delivery) -> Result<bool, Error> {
        let mode = if delivery.first_position <= self.abandoned_position {
            RecomputeMode::AllDays
        } else {
            RecomputeMode::ChangedDays
        };
        let telemetry = DeliveryTelemetry::begin();
        let delivered = delivery::deliver(databases, &mut self.lock, self.last_delivery, delivery, mode);
        let delivered = delivered.instrument(telemetry.span.clone()).await;
        telemetry.end(&delivered, delivery.rows.len());
        if !delivered? {
            tracing::warn!(
                last_delivery = self.last_delivery,
                "clickhouse's data was replaced during a delivery"
            );
            return Ok(false);
        }
        failpoint::reached("relay-recorded");
        timeout::long(outbox::finish_delivery(&databases.pg, delivery)).await?;
        failpoint::reached("relay-finished");
        self.last_delivery = delivery.number;
        Ok(true)
    }
}
