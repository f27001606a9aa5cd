//! Limits the exports that a process sends to an organization at a time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// How many exports of an organization a process sends at a time: each holds a batch of rows in memory.
const MAX_EXPORTS_PER_ORGANIZATION: usize = 4;

/// The exports that are being sent, by organization. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenExports(Arc<Mutex<HashMap<Uuid, usize>>>);

/// Counts one export until it is dropped.
pub struct ExportGuard(OpenExports, Uuid);

impl OpenExports {
    /// Counts an export, unless the organization has too many.
    pub fn begin(&self, organization: Uuid) -> Option<ExportGuard> {
        let mut open = self.0.lock();
        let count = open.entry(organization).or_default();
        if *count == MAX_EXPORTS_PER_ORGANIZATION {
            return None;
        }
        *count += 1;
        Some(ExportGuard(self.clone(), organization))
    }

    /// The number of exports of all organizations.
    pub fn count(&self) -> usize {
        self.0.lock().values().sum()
    }
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        let mut open = self.0.0.lock();
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}
