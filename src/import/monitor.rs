//! Progress of a running import, and its cancellation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared with a running import: it counts, its owner reads and may cancel.
#[derive(Debug, Default)]
pub struct Monitor {
    is_cancelled: AtomicBool,
    rows_read: AtomicU64,
    rows_refused: AtomicU64,
    rows_saved: AtomicU64,
    snapshots_written: AtomicU64,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub rows_read: u64,
    pub rows_refused: u64,
    /// Rows whose transactions are committed.
    pub rows_saved: u64,
    pub snapshots_written: u64,
}

impl Monitor {
    /// Ends the import with [`super::Error::Cancelled`] at its next row or batch. What is saved stays.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub fn progress(&self) -> Progress {
        Progress {
            rows_read: self.rows_read.load(Ordering::Relaxed),
            rows_refused: self.rows_refused.load(Ordering::Relaxed),
            rows_saved: self.rows_saved.load(Ordering::Relaxed),
            snapshots_written: self.snapshots_written.load(Ordering::Relaxed),
        }
    }

    pub(super) fn count_row(&self) {
        self.rows_read.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refusal(&self) {
        self.rows_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_saved(&self, rows: u64, snapshots: u64) {
        self.rows_saved.fetch_add(rows, Ordering::Relaxed);
        self.snapshots_written.fetch_add(snapshots, Ordering::Relaxed);
    }
}
