//! Writes history to ClickHouse for the relay: dimensions, snapshots, the rollups computed from them, removals and moves.
//!
//! Every statement may be repeated: a snapshot is replaced by the one observed later, any other row by the one with the
//! higher delivery number.

mod batch;
mod delivery;
pub mod dimensions;
mod rollup;
mod running_inserts;
mod snapshots;

pub use batch::Subject;
pub use delivery::{RecordedDelivery, last_delivery, record_delivery};
pub use dimensions::highest_id;
pub use rollup::{Recompute, RecomputeMode, clear_rollup, recompute};
pub use running_inserts::{RunningInsert, SLOW_INSERT, longest_insert, wait_for_inserts};
pub use snapshots::{
    VideoMove, copy_moved_snapshots, insert_account_snapshots, insert_video_snapshots,
    remove_moved_snapshots, remove_snapshots,
};
