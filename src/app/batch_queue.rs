//! Queues the batches that write, by organization.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// How long a batch waits for those before it; a request has five seconds in all.
const MAX_BATCH_WAIT: Duration = Duration::from_secs(3);

/// Batches that write, one of each organization at a time. They would wait for the same locks: here they wait without a
/// connection, which other organizations need. Cheap to clone.
#[derive(Clone, Default)]
pub struct BatchQueue(Arc<Mutex<HashMap<Uuid, Arc<tokio::sync::Mutex<()>>>>>);

impl BatchQueue {
    /// Waits for the organization's batches before this one; None if they take too long.
    pub async fn wait(&self, organization: Uuid) -> Option<OwnedMutexGuard<()>> {
        let permit = {
            let mut permits = self.0.lock();
            permits.retain(|_, permit| Arc::strong_count(permit) > 1);
            Arc::clone(permits.entry(organization).or_default())
        };
        tokio::time::timeout(MAX_BATCH_WAIT, permit.lock_owned()).await.ok()
    }
}
