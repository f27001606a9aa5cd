//! Ends the query of a client that went away: a mark in the query's text by which the engine's list of processes is searched.
//! Only reads are ended so; an insert whose whole body has arrived runs to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::engine::Engine;

/// How often a query that does not end yet is killed again, and how long is waited in between.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct State {
    client_gone: AtomicBool,
    done: AtomicBool,
}

/// Held by whoever runs the statement: tells when it is no longer wanted, and that it has ended when dropped.
pub(super) struct Run(Arc<State>);

impl Run {
    pub(super) fn unwanted(&self) -> bool {
        self.0.client_gone.load(Ordering::Acquire)
    }

    /// The statement changes something: it runs to its end, whether the client stays or not.
    pub(super) fn let_it_finish(&self) {
        self.0.done.store(true, Ordering::Release);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Release);
    }
}

/// Held by whoever waits for the client; dropped before the end, it kills the query.
pub(super) struct Watch {
    engine: Arc<Engine>,
    mark: String,
    state: Arc<State>,
}

impl Watch {
    /// A watch over the query that carries `mark`, and the other end for its runner.
    pub(super) fn new(engine: Arc<Engine>, mark: String) -> (Self, Run) {
        let state = Arc::new(State::default());
        (Self { engine, mark, state: Arc::clone(&state) }, Run(state))
    }

    /// The query has ended by itself.
    pub(super) fn finished(&self) {
        self.state.done.store(true, Ordering::Release);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.state.done.load(Ordering::Acquire) {
            return;
        }
        self.state.client_gone.store(true, Ordering::Release);
        let (engine, mark, state) =
            (Arc::clone(&self.engine), std::mem::take(&mut self.mark), Arc::clone(&self.state));
        // a query that has not reached the list of processes yet is missed by the first attempts
        let end = move || {
            for _ in 0..ATTEMPTS {
                if state.done.load(Ordering::Acquire) {
                    return;
                }
                if let Err(failure) = engine.kill(&mark) {
                    tracing::warn!(
                        code = failure.code,
                        "a query of a client that went away could not be ended"
                    );
                }
                std::thread::sleep(PAUSE);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("kill-query".to_owned()).spawn(end) {
            tracing::warn!(%error, "a query of a client that went away could not be ended");
        }
    }
}
