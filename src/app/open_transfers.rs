//! Limits the files that a process sends to an organization, or receives from it, at a time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// How many at a time: each holds rows or bytes in memory.
const MAX_PER_ORGANIZATION: usize = 4;

/// The files that are being sent or received, by organization. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenTransfers(Arc<Mutex<HashMap<Uuid, usize>>>);

/// Counts one file until it is dropped.
pub struct TransferGuard(OpenTransfers, Uuid);

impl OpenTransfers {
    /// Counts a file, unless the organization has too many.
    pub fn begin(&self, organization: Uuid) -> Option<TransferGuard> {
        let mut open = self.0.lock();
        let count = open.entry(organization).or_default();
        if *count == MAX_PER_ORGANIZATION {
            return None;
        }
        *count += 1;
        Some(TransferGuard(self.clone(), organization))
    }

    /// The number of files of all organizations.
    pub fn count(&self) -> usize {
        self.0.lock().values().sum()
    }
}

impl Drop for TransferGuard {
    fn drop(&mut self) {
        let mut open = self.0.0.lock();
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}
