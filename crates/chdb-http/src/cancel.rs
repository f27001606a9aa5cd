//! Cancels the read-only query of a disconnected client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::Engine;

/// A query that is not in `system.processes` yet is missed by the first attempts, which therefore follow quickly.
const FIRST_KILL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_KILL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
struct QueryState {
    disconnected: AtomicBool,
    /// The statement has ended, or must not be cancelled.
    done: AtomicBool,
}

/// The executing side: detects a disconnect, and marks the statement as ended when dropped.
pub(crate) struct Cancellation(Arc<QueryState>);

impl Cancellation {
    pub(crate) fn is_requested(&self) -> bool {
        self.0.disconnected.load(Ordering::SeqCst)
    }

    /// Marks the statement as ended. Returns whether a `KILL QUERY` may still arrive.
    pub(crate) fn end(&self) -> bool {
        self.disable();
        self.is_requested()
    }

    /// Lets the statement complete even if the client disconnects.
    pub(crate) fn disable(&self) {
        self.0.done.store(true, Ordering::SeqCst);
    }
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        self.disable();
    }
}

/// The connection's side: kills the query if dropped before it has ended.
pub(crate) struct KillOnDrop {
    engine: Arc<Engine>,
    marker: String,
    state: Arc<QueryState>,
}

impl KillOnDrop {
    /// Guards the query with this marker, if it has one.
    pub(crate) fn new(engine: Arc<Engine>, marker: Option<String>) -> (Self, Cancellation) {
        let state = Arc::new(QueryState { done: AtomicBool::new(marker.is_none()), ..QueryState::default() });
        let marker = marker.unwrap_or_default();
        (Self { engine, marker, state: Arc::clone(&state) }, Cancellation(state))
    }

    pub(crate) fn disarm(&self) {
        self.state.done.store(true, Ordering::SeqCst);
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if self.state.done.load(Ordering::SeqCst) {
            return;
        }
        self.state.disconnected.store(true, Ordering::SeqCst);
        let (engine, marker, state) =
            (Arc::clone(&self.engine), std::mem::take(&mut self.marker), Arc::clone(&self.state));
        let kill = move || {
            let mut interval = FIRST_KILL_INTERVAL;
            while !state.done.load(Ordering::SeqCst) {
                if let Err(exception) = engine.kill(&marker) {
                    tracing::warn!(code = exception.code, "cannot kill the query of a disconnected client");
                }
                std::thread::sleep(interval);
                interval = (interval * 2).min(MAX_KILL_INTERVAL);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("kill-query".to_owned()).spawn(kill) {
            tracing::warn!(%error, "cannot kill the query of a disconnected client");
        }
    }
}
