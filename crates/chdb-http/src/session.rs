//! Connections that last between requests with the same `session_id`. A session runs one statement at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::ffi::Connection;

/// ClickHouse's defaults for `session_timeout`.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// The least recently used session is closed first.
const MAX_SESSIONS: usize = 1000;

/// Exclusive access to a session's connection, which its first statement opens.
pub(crate) type Session = OwnedMutexGuard<Option<Connection>>;

struct SessionEntry {
    connection: Arc<tokio::sync::Mutex<Option<Connection>>>,
    last_used: Instant,
    timeout: Duration,
}

impl SessionEntry {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.connection) == 1
    }
}

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, SessionEntry>>);

impl Sessions {
    /// Waits for the session `id`, which is created unless it `must_exist`.
    pub(crate) async fn acquire(&self, id: &str, timeout: Duration, must_exist: bool) -> Option<Session> {
        let connection = {
            let mut sessions = self.0.lock();
            if must_exist && !sessions.contains_key(id) {
                return None;
            }
            if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(id) {
                let oldest = sessions.iter().filter(|(_, s)| s.is_idle()).min_by_key(|(_, s)| s.last_used);
                if let Some(oldest_id) = oldest.map(|(oldest_id, _)| oldest_id.clone()) {
                    sessions.remove(&oldest_id);
                }
            }
            let session = sessions.entry(id.to_owned()).or_insert_with(|| SessionEntry {
                connection: Arc::default(),
                last_used: Instant::now(),
                timeout,
            });
            session.last_used = Instant::now();
            session.timeout = timeout;
            Arc::clone(&session.connection)
        };
        Some(connection.lock_owned().await)
    }

    /// Closes sessions that were idle for their timeout.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.0.lock().retain(|_, session| {
            if !session.is_idle() {
                session.last_used = now;
            }
            now.duration_since(session.last_used) < session.timeout
        });
    }

    /// Closes all sessions; those in use close when their statement ends.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn idle_sessions_expire_and_held_ones_stay() {
        let sessions = Sessions::default();
        assert!(sessions.acquire("a", Duration::ZERO, true).await.is_none());
        let held = sessions.acquire("a", Duration::ZERO, false).await;
        drop(sessions.acquire("b", Duration::from_secs(60), false).await);
        sessions.expire();
        assert!(sessions.acquire("b", Duration::from_secs(60), true).await.is_some());
        drop(held);
        sessions.expire();
        assert!(sessions.acquire("a", Duration::ZERO, true).await.is_none());
    }
}
