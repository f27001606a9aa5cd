//! What the parts of a tracker process share.

use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::app::Databases;
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::platforms::source::SourceError;

/// How long scrapes may run during shutdown, unless configured.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// A kind of failure of a platform is logged once per interval.
const LOG_INTERVAL: Duration = Duration::from_secs(3600);

/// A kind of failure, for throttling the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FailureKind {
    Source(Discriminant<SourceError>),
    Unrecorded,
    Panicked,
}

/// A tracker process. Cheap to clone.
#[derive(Clone)]
pub struct Tracker {
    pub databases: Databases,
    pub sources: Arc<Sources>,
    /// Identifies the process as the owner of leases.
    pub owner: Uuid,
    /// How long scrapes may run during shutdown.
    pub shutdown_grace: Duration,
    last_logged: Arc<Mutex<HashMap<(Platform, FailureKind), Instant>>>,
}

impl Tracker {
    pub fn new(databases: Databases, sources: Arc<Sources>) -> Self {
        let (owner, last_logged) = (Uuid::now_v7(), Arc::default());
        Tracker { databases, sources, owner, shutdown_grace: SHUTDOWN_GRACE, last_logged }
    }

    /// Whether this kind of failure was not logged within the last hour; if so, the caller logs it now.
    pub(super) fn should_log(&self, platform: Platform, kind: FailureKind) -> bool {
        let mut last_logged = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = last_logged.get(&(platform, kind)).is_none_or(|at| now - *at >= LOG_INTERVAL);
        if is_due {
            last_logged.insert((platform, kind), now);
        }
        is_due
    }
}
