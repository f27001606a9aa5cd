//! One delivery: writes the events of outbox rows to ClickHouse, and the delivery number last.
//!
//! Each step can be repeated, by this process or another, so a kill between any two loses nothing. Before each step the
//! process checks that it still holds the relay lock.

use std::collections::HashSet;

use clickhouse::Client;
use sqlx::PgPool;

use super::plan::DeliveryPlan;
use crate::app::Databases;
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, Recompute, RecomputeMode, Subject, dimensions};
use crate::store::outbox::{Delivery, RelayLock};
use crate::store::records::subjects;
use crate::worker::chunks::Chunks;
use crate::worker::timeout;

/// Subjects per statement, where the history may be a thousand times what is delivered.
const MAX_RECOMPUTED_SUBJECTS: usize = 128;
/// Subjects per statement where the delivery is all of their history. A statement costs as much as 300 of them.
const MAX_NEW_SUBJECTS: usize = 512;
/// Snapshots per statement of new videos.
const MAX_NEW_SNAPSHOTS: usize = 100_000;

/// Delivers. Returns false if ClickHouse's last delivery is not `previous` any more: its data was replaced meanwhile.
pub(super) async fn deliver(
    databases: &Databases,
    lock: &mut RelayLock,
    previous: i64,
    delivery: &Delivery,
    mode: RecomputeMode,
) -> Result<bool, Error> {
    let number = delivery.number;
    // Rows are not compared with the types of their columns, which takes as long as reading or writing them.
    let client = databases.clickhouse.clone().with_validation(false);
    let client = &client.with_setting("log_comment", format!("relay delivery {number}"));
    let plan = DeliveryPlan::from_rows(&delivery.rows);
    dimensions::write_changed(&databases.pg, client, &plan.changed, number).await?;
    failpoint::reached("relay-dimensions");
    timeout::short(lock.ensure_held()).await?;
    history_writer::copy_moved_snapshots(client, &plan.moves).await?;
    failpoint::reached("relay-copied");
    timeout::short(lock.ensure_held()).await?;
    history_writer::remove_moved_snapshots(client, &plan.moved_from, number).await?;
    history_writer::remove_snapshots(client, &plan.removed_subjects, number).await?;
    dimensions::remove(client, &plan.removed, number).await?;
    failpoint::reached("relay-removed");
    timeout::short(lock.ensure_held()).await?;
    tokio::try_join!(
        history_writer::insert_account_snapshots(client, &plan.account_snapshots),
        history_writer::insert_video_snapshots(client, &plan.video_snapshots)
    )?;
    failpoint::reached("relay-snapshots");
    let max_subjects = max_recomputed_subjects(&plan);
    let (rebuilt, removed) =
        timeout::long(subjects::partition_by_existence(&databases.pg, plan.rebuilt)).await?;
    history_writer::clear_rollup(client, &removed, number).await?;
    let mode = if rebuilt.is_empty() { mode } else { RecomputeMode::AllDays };
    let subjects = plan.affected.keys().copied().chain(rebuilt).collect();
    for batch in plan.subject_moves.batches(subjects, max_subjects) {
        let since = batch.iter().filter_map(|subject| plan.affected.get(subject)).min();
        let since = since.copied().unwrap_or_default();
        let chunks = Chunks::new(&batch, max_subjects);
        recompute(&databases.pg, client, lock, chunks, Recompute { since, delivery: number, mode }).await?;
    }
    failpoint::reached("relay-rollup");
    timeout::short(lock.ensure_held()).await?;
    history_writer::record_delivery(client, previous, number).await
}

/// How many subjects one statement recomputes.
fn max_recomputed_subjects(plan: &DeliveryPlan) -> usize {
    let videos: HashSet<_> = plan.video_snapshots.iter().map(|(_, snapshot)| snapshot.video_id).collect();
    let is_new = (1..=plan.changed.videos.len()).contains(&videos.len());
    if !is_new || !plan.moves.is_empty() || !plan.rebuilt.is_empty() {
        return MAX_RECOMPUTED_SUBJECTS;
    }
    let snapshots = plan.video_snapshots.len().div_ceil(plan.affected.len().max(1));
    (MAX_NEW_SNAPSHOTS / snapshots).clamp(MAX_RECOMPUTED_SUBJECTS, MAX_NEW_SUBJECTS)
}

/// Recomputes the rollups of subjects, in their order if they are too many for one statement.
async fn recompute(
    pg: &PgPool,
    client: &Client,
    lock: &mut RelayLock,
    mut chunks: Chunks<'_, Subject>,
    recompute: Recompute,
) -> Result<(), Error> {
    while let Some(chunk) = chunks.pop() {
        timeout::short(lock.ensure_held()).await?;
        let recomputed = history_writer::recompute(pg, client, chunk, recompute).await;
        chunks.retry_halved(chunk, recomputed)?;
    }
    Ok(())
}
