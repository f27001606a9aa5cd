//! Limits of concurrent statements. The service, the read-only user and `KILL QUERY` have permits of their own, so none of them
//! waits for another.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::credentials::Role;
use crate::exception::{Exception, Result};
use crate::sql;

const PERMIT_TIMEOUT: Duration = Duration::from_secs(60);
/// The read-only user has one permit for so many of the service, and for so many cores.
const STATEMENTS_PER_READONLY_PERMIT: usize = 8;
const CORES_PER_READONLY_PERMIT: usize = 2;
const KILL_PERMITS: u16 = 4;
/// Requests of the read-only user that may wait for a permit; each holds its body.
const MAX_WAITING_READONLY: u16 = 64;

/// The permits of the read-only user beside `max_queries` of the service, on a machine with `cores`.
pub(crate) fn readonly_permits(max_queries: u16, cores: usize) -> u16 {
    let permits =
        (usize::from(max_queries) / STATEMENTS_PER_READONLY_PERMIT).min(cores / CORES_PER_READONLY_PERMIT);
    u16::try_from(permits).unwrap_or(u16::MAX).max(1)
}

pub(crate) type Permit = OwnedSemaphorePermit;

/// Memory of a result, which holds its statement's permit until it is released.
pub(crate) struct PermittedMemory<T> {
    memory: T,
    _permit: Option<Arc<Permit>>,
}

impl<T> PermittedMemory<T> {
    pub(crate) fn new(memory: T, permit: Option<Arc<Permit>>) -> Self {
        Self { memory, _permit: permit }
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for PermittedMemory<T> {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref()
    }
}

struct PermitSet {
    permits: Arc<Semaphore>,
    size: u16,
}

impl PermitSet {
    fn new(size: u16) -> Self {
        Self { permits: Arc::new(Semaphore::new(size.into())), size }
    }
}

pub(crate) struct Permits {
    admin: PermitSet,
    readonly: PermitSet,
    kill: PermitSet,
    /// One permit per request of the read-only user, waiting or executing.
    readonly_requests: Arc<Semaphore>,
}

impl Permits {
    pub(crate) fn new(max_queries: u16, readonly: u16) -> Self {
        Self {
            admin: PermitSet::new(max_queries),
            readonly: PermitSet::new(readonly),
            kill: PermitSet::new(KILL_PERMITS),
            readonly_requests: Arc::new(Semaphore::new((readonly + MAX_WAITING_READONLY).into())),
        }
    }

    /// Admits a request before its body is read; the service's are always admitted.
    pub(crate) fn admit(&self, role: Role) -> Result<Option<Permit>> {
        match role {
            Role::Admin => Ok(None),
            Role::Readonly => {
                Arc::clone(&self.readonly_requests).try_acquire_owned().map(Some).map_err(|_| too_many())
            }
        }
    }

    /// Waits until the statement `text` may be executed.
    pub(crate) async fn acquire(&self, role: Role, text: &[u8]) -> Result<Permit> {
        let set = match role {
            Role::Readonly => &self.readonly,
            Role::Admin if sql::is_kill(text) => &self.kill,
            Role::Admin => &self.admin,
        };
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, Arc::clone(&set.permits).acquire_owned()).await;
        permit.ok().and_then(std::result::Result::ok).ok_or_else(too_many)
    }

    /// Waits until no statement is executed.
    pub(crate) async fn wait_idle(&self) {
        for set in [&self.admin, &self.readonly, &self.kill] {
            // Not released: nothing begins after this.
            if let Ok(permits) = set.permits.acquire_many(set.size.into()).await {
                permits.forget();
            }
        }
    }
}

fn too_many() -> Exception {
    let text = "Too many simultaneous queries: retry later, or raise max_queries";
    Exception::new(202, "TOO_MANY_SIMULTANEOUS_QUERIES", text)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn readonly_user_and_kill_have_permits_of_their_own() {
        let permits = Permits::new(16, 2);
        let acquire = |role, text: &'static str| permits.acquire(role, text.as_bytes()).now_or_never();
        let analysts: Vec<_> = (0..2).map_while(|_| acquire(Role::Readonly, "SELECT 1")).collect();
        assert!(acquire(Role::Readonly, "KILL QUERY WHERE 1").is_none());
        let services: Vec<_> = (0..16).map_while(|_| acquire(Role::Admin, "SELECT 1")).collect();
        assert_eq!((analysts.len(), services.len()), (2, 16));
        assert!(acquire(Role::Admin, "SELECT 'KILL'").is_none());
        assert!(acquire(Role::Admin, "/* now */ kill query WHERE 1").is_some_and(|permit| permit.is_ok()));
        assert!(permits.wait_idle().now_or_never().is_none());
    }

    #[tokio::test]
    async fn shutdown_waits_for_every_permit() {
        let permits = Permits::new(8, 1);
        let held = permits.acquire(Role::Readonly, b"SELECT 1").await.unwrap();
        let mut idle = Box::pin(permits.wait_idle());
        assert!(idle.as_mut().now_or_never().is_none());
        drop(held);
        assert!(idle.now_or_never().is_some());
    }

    #[test]
    fn readonly_permits_leave_half_of_the_cores() {
        let cases = [(32, 2, 1), (32, 4, 2), (32, 64, 4), (400, 64, 32), (1, 1, 1)];
        for (queries, cores, expected) in cases {
            assert_eq!(readonly_permits(queries, cores), expected, "{queries} {cores}");
        }
    }

    #[tokio::test]
    async fn unsent_result_holds_its_permit() {
        let permits = Permits::new(8, 1);
        let permit = Arc::new(permits.acquire(Role::Readonly, b"SELECT 1").await.unwrap());
        let mut result = bytes::Bytes::from_owner(PermittedMemory::new(*b"sent unsent", Some(permit)));
        drop(result.split_to(5));
        assert_eq!(permits.readonly.permits.available_permits(), 0);
        drop(result);
        assert_eq!(permits.readonly.permits.available_permits(), 1);
    }

    #[test]
    fn waiting_requests_of_the_readonly_user_are_bounded() {
        let permits = Permits::new(1, 1);
        let admitted: Vec<_> = (0..65).map(|_| permits.admit(Role::Readonly).unwrap()).collect();
        assert_eq!(permits.admit(Role::Readonly).unwrap_err().code, 202);
        assert!(permits.admit(Role::Admin).is_ok());
        drop(admitted);
        assert!(permits.admit(Role::Readonly).is_ok());
    }
}
