//! The kept connections of clients that name a `session_id`: one statement at a time each, and closed when unused.
//! What runs on them is decided elsewhere; a request without a session has a connection of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::ffi::Connection;

/// ClickHouse's default and longest time that an unused session is kept.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);
/// How many sessions are kept; the one unused for longest makes room.
const MOST: usize = 1000;

/// A session's connection, opened when it is first needed.
pub(super) type Slot = OwnedMutexGuard<Option<Connection>>;

struct Session {
    connection: Arc<tokio::sync::Mutex<Option<Connection>>>,
    used: Instant,
    timeout: Duration,
}

impl Session {
    /// Nobody holds or awaits the connection.
    fn idle(&self) -> bool {
        Arc::strong_count(&self.connection) == 1
    }
}

/// All sessions of the process.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

impl Sessions {
    /// Waits for the connection of the session `id`, a new one unless it `must_exist`.
    pub(super) async fn take(&self, id: &str, timeout: Duration, must_exist: bool) -> Option<Slot> {
        let connection = {
            let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if must_exist && !sessions.contains_key(id) {
                return None;
            }
            if sessions.len() >= MOST && !sessions.contains_key(id) {
                let oldest = sessions.iter().filter(|(_, s)| s.idle()).min_by_key(|(_, s)| s.used);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    sessions.remove(&oldest);
                }
            }
            let session = sessions.entry(id.to_owned()).or_insert_with(|| Session {
                connection: Arc::default(),
                used: Instant::now(),
                timeout,
            });
            session.used = Instant::now();
            session.timeout = timeout;
            Arc::clone(&session.connection)
        };
        Some(connection.lock_owned().await)
    }

    /// Closes the sessions that were unused for longer than they asked for.
    pub(super) fn expire(&self) {
        let now = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, session| {
            if !session.idle() {
                session.used = now;
            }
            now.duration_since(session.used) < session.timeout
        });
    }

    /// Forgets every session; those in use close when their statements end.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unused_sessions_go_and_used_ones_stay() {
        let sessions = Sessions::default();
        assert!(sessions.take("a", Duration::ZERO, true).await.is_none());
        let held = sessions.take("a", Duration::ZERO, false).await;
        drop(sessions.take("b", Duration::from_secs(60), false).await);
        sessions.expire();
        assert!(sessions.take("b", Duration::from_secs(60), true).await.is_some());
        drop(held);
        sessions.expire();
        assert!(sessions.take("a", Duration::ZERO, true).await.is_none());
    }
}
