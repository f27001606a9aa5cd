//! One delivery: makes everything that its rows say visible in ClickHouse, and the record of the delivery last.
//!
//! Each step may be repeated, by this process or another, so a kill between any two of them loses nothing. Before each
//! of them the process makes sure that it still leads, and none begins while a predecessor's statement still runs.

use super::confirm;
use super::plan::Plan;
use crate::app::Databases;
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, RecomputeMode, Subject, dimensions};
use crate::store::clickhouse::rollup;
use crate::store::outbox::{Delivery, RelayLock};
use crate::worker::{LONG, within};

/// Subjects whose gains are computed by one statement, unless that turns out to be too much for it.
const SUBJECTS: usize = 128;

/// Delivers; false when ClickHouse no longer stood after the delivery `before` in the end. `mode` says how much of the
/// rollup of what is touched has to be written.
pub(super) async fn deliver(
    stores: &Databases,
    leadership: &mut RelayLock,
    before: i64,
    delivery: &Delivery,
    mode: RecomputeMode,
) -> Result<bool, Error> {
    let number = delivery.number;
    let client = &stores.clickhouse.clone().with_setting("log_comment", format!("relay delivery {number}"));
    let plan = Plan::of(&delivery.rows);
    dimensions::write_changed(&stores.pg, client, &plan.changed, number).await?;
    failpoint::reached("relay-dimensions");
    confirm(leadership).await?;
    history_writer::copy_moved_snapshots(client, &plan.moves).await?;
    failpoint::reached("relay-copied");
    confirm(leadership).await?;
    history_writer::remove_moved_snapshots(client, &plan.left).await?;
    history_writer::remove_snapshots(client, &plan.removed_subjects).await?;
    dimensions::remove(client, &plan.removed, number).await?;
    failpoint::reached("relay-removed");
    confirm(leadership).await?;
    tokio::try_join!(
        history_writer::insert_account_snapshots(client, &plan.account_snapshots),
        history_writer::insert_video_snapshots(client, &plan.video_snapshots)
    )?;
    failpoint::reached("relay-facts");
    recompute(client, leadership, &plan.touched, number, mode).await?;
    let (there, gone) = within(LONG, rollup::partition_by_existence(&stores.pg, plan.rebuilt)).await?;
    recompute(client, leadership, &there, number, RecomputeMode::AllDays).await?;
    history_writer::clear_rollup(client, &gone, number).await?;
    failpoint::reached("relay-rollup");
    confirm(leadership).await?;
    history_writer::record_delivery(client, before, number).await
}

/// Computes the gains of subjects again; fewer at a time where so many are too much for one statement.
async fn recompute(
    client: &clickhouse::Client,
    leadership: &mut RelayLock,
    subjects: &[Subject],
    delivery: i64,
    mode: RecomputeMode,
) -> Result<(), Error> {
    let mut waiting: Vec<&[Subject]> = subjects.chunks(SUBJECTS).rev().collect();
    while let Some(some) = waiting.pop() {
        confirm(leadership).await?;
        match history_writer::recompute_rollup(client, some, delivery, mode).await {
            Err(error) if error.exceeds_query_limit() && some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                waiting.extend([second, first]);
            }
            done => done?,
        }
    }
    Ok(())
}
