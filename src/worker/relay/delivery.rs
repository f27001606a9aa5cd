//! One delivery: writes the events of outbox rows to ClickHouse, and the delivery number last.
//!
//! Each step can be repeated, by this process or another, so a kill between any two loses nothing. Before each step the
//! process checks that it still holds the relay lock.

use chrono::NaiveDate;
use clickhouse::Client;

use super::plan::DeliveryPlan;
use crate::app::Databases;
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, RecomputeMode, Subject, dimensions};
use crate::store::outbox::{Delivery, RelayLock};
use crate::store::records::subjects;
use crate::worker::chunks::Chunks;
use crate::worker::timeout;

const MAX_RECOMPUTED_SUBJECTS: usize = 128;

/// Delivers. Returns false if ClickHouse's last delivery is not `previous` any more: its data was replaced meanwhile.
pub(super) async fn deliver(
    databases: &Databases,
    lock: &mut RelayLock,
    previous: i64,
    delivery: &Delivery,
    mode: RecomputeMode,
) -> Result<bool, Error> {
    let number = delivery.number;
    let client =
        &databases.clickhouse.clone().with_setting("log_comment", format!("relay delivery {number}"));
    let plan = DeliveryPlan::from_rows(&delivery.rows);
    dimensions::write_changed(&databases.pg, client, &plan.changed, number).await?;
    failpoint::reached("relay-dimensions");
    timeout::short(lock.ensure_held()).await?;
    history_writer::copy_moved_snapshots(client, &plan.moves).await?;
    failpoint::reached("relay-copied");
    timeout::short(lock.ensure_held()).await?;
    history_writer::remove_moved_snapshots(client, &plan.moved_from).await?;
    history_writer::remove_snapshots(client, &plan.removed_subjects).await?;
    dimensions::remove(client, &plan.removed, number).await?;
    failpoint::reached("relay-removed");
    timeout::short(lock.ensure_held()).await?;
    tokio::try_join!(
        history_writer::insert_account_snapshots(client, &plan.account_snapshots),
        history_writer::insert_video_snapshots(client, &plan.video_snapshots)
    )?;
    failpoint::reached("relay-snapshots");
    let (rebuilt, removed) =
        timeout::long(subjects::partition_by_existence(&databases.pg, plan.rebuilt)).await?;
    history_writer::clear_rollup(client, &removed, number).await?;
    let mode = if rebuilt.is_empty() { mode } else { RecomputeMode::AllDays };
    let subjects = plan.affected.keys().copied().chain(rebuilt).collect();
    for batch in plan.subject_moves.batches(subjects, MAX_RECOMPUTED_SUBJECTS) {
        let since = batch.iter().filter_map(|subject| plan.affected.get(subject)).min();
        let since = since.copied().unwrap_or_default();
        recompute(client, lock, &batch, since, number, mode).await?;
    }
    failpoint::reached("relay-rollup");
    timeout::short(lock.ensure_held()).await?;
    history_writer::record_delivery(client, previous, number).await
}

/// Recomputes the rollups of subjects, in their order if they are too many for one statement.
async fn recompute(
    client: &Client,
    lock: &mut RelayLock,
    subjects: &[Subject],
    since: NaiveDate,
    delivery: i64,
    mode: RecomputeMode,
) -> Result<(), Error> {
    let mut chunks = Chunks::new(subjects, MAX_RECOMPUTED_SUBJECTS);
    while let Some(chunk) = chunks.pop() {
        timeout::short(lock.ensure_held()).await?;
        let recomputed = async {
            history_writer::recompute_rollup(client, chunk, delivery, mode).await?;
            failpoint::reached("relay-account-rollup");
            timeout::short(lock.ensure_held()).await?;
            history_writer::recompute_videos(client, chunk, since, delivery, mode).await
        };
        let recomputed = recomputed.await;
        chunks.halve_if_too_large(chunk, recomputed)?;
    }
    Ok(())
}
