//! The relay: carries what Postgres committed to ClickHouse, in deliveries that may be repeated.
//!
//! One process leads at a time. It goes on where ClickHouse says that it stands, and looks there again before it
//! records a delivery and while it is idle, so that files which ClickHouse lost are brought again. What one delivery
//! does stands in `deliver`.

mod deliver;
mod plan;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::telemetry::DeliveryTelemetry;
use super::{BRIEF, LONG, within};
use crate::app::Databases;
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, RecomputeMode};
use crate::store::outbox::{self, BlockedOrganizations, RelayLock};

/// How long the relay rests when nothing waits.
const IDLE: Duration = Duration::from_millis(100);
/// How long a process waits before it tries again to lead, or to reach a store that is down.
const RETRY: Duration = Duration::from_secs(1);
/// How often an idle relay looks whether ClickHouse still stands where it was.
const LOOK: Duration = Duration::from_secs(2);
/// How much of the outbox one delivery takes: bytes of encoded events, a few hundred thousand snapshots.
const DELIVERY_BYTES: i64 = 4 << 20;
/// How long what waits may still be delivered once the relay is told to stop; another one delivers the rest.
const FLUSH: Duration = Duration::from_secs(5);
/// How often delivered rows are looked through for those that need not be kept.
const CLEANUP: Duration = Duration::from_secs(600);

/// Does work of which something has to be delivered, and relays meanwhile where no tracker runs that would; otherwise this
/// one never leads.
pub async fn run_during<T>(stores: &Databases, database_url: &str, task: impl Future<Output = T>) -> T {
    let stop = CancellationToken::new();
    let relay = tokio::spawn(run(stores.clone(), database_url.to_owned(), stop.clone()));
    let done = task.await;
    stop.cancel();
    let _ended = relay.await;
    done
}

/// Relays until told to stop; then what waits is still delivered, for a short time, which may end at any moment. A store
/// that is down is waited for, but not at the end.
pub async fn run(stores: Databases, database_url: String, stop: CancellationToken) {
    let mut failing = false;
    let end = async {
        stop.cancelled().await;
        tokio::time::sleep(FLUSH).await;
    };
    tokio::pin!(end);
    while !stop.is_cancelled() {
        let ended = tokio::select! {
            ended = lead(&stores, &database_url, &mut failing, &stop) => ended,
            () = &mut end => {
                tracing::warn!("the relay ends although something may wait: the next one delivers it");
                return;
            }
        };
        match ended {
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::error!(%error, "the relay cannot deliver; trying on until the stores are back");
            }
            Err(error) => tracing::debug!(%error, "the relay still cannot deliver"),
        }
        stop.run_until_cancelled(tokio::time::sleep(RETRY)).await;
    }
}

/// Delivers for as long as this process leads, the stores answer, and ClickHouse stands where it should.
/// Told to stop, it ends once nothing waits, and leaves its place.
async fn lead(
    stores: &Databases,
    database_url: &str,
    failing: &mut bool,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let pg = &stores.pg;
    // Nothing is in hand before it has begun.
    let Some(begun) = stop.run_until_cancelled(begin(stores, database_url)).await else { return Ok(()) };
    let Some((mut leadership, mut has, abandoned)) = begun? else { return Ok(()) };
    let mut held = BlockedOrganizations::default();
    let mut looked = Instant::now();
    let mut cleaned = None::<Instant>;
    loop {
        confirm(&mut leadership).await?;
        if let Some(delivery) = within(LONG, outbox::begin_delivery(pg, DELIVERY_BYTES, &mut held)).await? {
            failpoint::reached("relay-numbered");
            let mode = if delivery.first_position <= abandoned {
                RecomputeMode::AllDays
            } else {
                RecomputeMode::ChangedDays
            };
            let telemetry = DeliveryTelemetry::begin();
            let delivered = deliver::deliver(stores, &mut leadership, has, &delivery, mode);
            let delivered = delivered.instrument(telemetry.span.clone()).await;
            telemetry.end(&delivered, delivery.rows.len());
            if !delivered? {
                tracing::warn!(has, "clickhouse changed its files during a delivery");
                return Ok(());
            }
            failpoint::reached("relay-recorded");
            within(LONG, outbox::finish_delivery(pg, &delivery)).await?;
            failpoint::reached("relay-finished");
            has = delivery.number;
            looked = Instant::now();
        } else if stop.is_cancelled() {
            return within(BRIEF, leadership.release()).await;
        } else {
            if cleaned.is_none_or(|at| at.elapsed() > CLEANUP) {
                within(LONG, outbox::prune_delivered(pg)).await?;
                cleaned = Some(Instant::now());
            }
            if looked.elapsed() > LOOK {
                if history_writer::last_delivery(&stores.clickhouse).await?.number != has {
                    return Ok(());
                }
                within(BRIEF, held.unblock_deleted(pg)).await?;
                looked = Instant::now();
            }
            stop.run_until_cancelled(tokio::time::sleep(IDLE)).await;
        }
        if std::mem::replace(failing, false) {
            tracing::info!("the relay delivers again");
        }
    }
}

/// Takes the relay's place and finds out where to go on; nothing while another process has the place.
async fn begin(stores: &Databases, database_url: &str) -> Result<Option<(RelayLock, i64, i64)>, Error> {
    let Some(leadership) = within(BRIEF, RelayLock::try_acquire(database_url)).await? else {
        return Ok(None);
    };
    history_writer::wait_for_inserts(&stores.clickhouse, history_writer::SLOW_INSERT).await?;
    let (has, abandoned) = resume(stores).await?;
    Ok(Some((leadership, has, abandoned)))
}

/// Goes on after the delivery that ClickHouse has, and says which one that is, and up to which position rows were in an
/// attempt that nobody finished: its statements may still be at work, on what they found when they began.
async fn resume(stores: &Databases) -> Result<(i64, i64), Error> {
    let recorded = history_writer::last_delivery(&stores.clickhouse).await?;
    let has = recorded.number;
    // First of all, as it is known by the numbers of deliveries, which go on above those of ClickHouse from here on.
    if has > within(BRIEF, outbox::last_delivery_number(&stores.pg)).await? {
        let highest = history_writer::highest_id(&stores.clickhouse).await?;
        within(BRIEF, outbox::raise_id_sequence(&stores.pg, highest.max(1))).await?;
    }
    let resumed = within(LONG, outbox::resume(&stores.pg, recorded)).await?;
    if resumed.reopened > 0 {
        tracing::warn!(rows = resumed.reopened, has, "clickhouse lacks deliveries; bringing them again");
    }
    if resumed.postgres_is_older {
        tracing::warn!(
            has,
            "clickhouse has deliveries that postgres does not remember: after postgres was restored, restore a backup of \
             clickhouse that was made before that of postgres"
        );
    }
    for missing in within(BRIEF, outbox::fetch_missing_history(&stores.pg)).await? {
        tracing::error!("{missing}");
    }
    Ok((has, resumed.abandoned_position))
}

async fn confirm(leadership: &mut RelayLock) -> Result<(), Error> {
    within(BRIEF, leadership.ensure_held()).await
}
