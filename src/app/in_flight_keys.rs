//! Idempotency keys of requests that wait before the transaction that claims their key.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::store::records::idempotency::IdempotentRequest;

/// The organization, method, path and idempotency key of a request.
type RequestKey = (Uuid, &'static str, String, String);

/// The keys of requests in flight in this process. Cheap to clone.
#[derive(Clone, Default)]
pub struct InFlightKeys(Arc<Mutex<HashSet<RequestKey>>>);

/// A key whose request is in flight until this is dropped.
pub struct InFlightKey(InFlightKeys, RequestKey);

impl InFlightKeys {
    /// Adds the key of a request, unless another request with this key is in flight.
    pub fn begin(&self, organization: Uuid, request: &IdempotentRequest) -> Option<InFlightKey> {
        let IdempotentRequest { method, path, key, .. } = request;
        let request_key = (organization, *method, path.clone(), key.clone());
        self.0.lock().insert(request_key.clone()).then(|| InFlightKey(self.clone(), request_key))
    }
}

impl Drop for InFlightKey {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}
