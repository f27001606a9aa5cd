//! Graceful shutdown: the first signal drains and rejects new requests while in-flight ones finish, the second exits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

pub const DEFAULT_STOP_SECONDS: u64 = 10;

#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Shutdown")]
pub struct ShutdownArgs {
    /// Seconds that in-flight work may take after a stop signal
    #[arg(long, env = "TIDEMARK_STOP_SECONDS", default_value_t = DEFAULT_STOP_SECONDS, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    pub stop_seconds: u64,
}

impl ShutdownArgs {
    pub fn grace(self) -> Duration {
        Duration::from_secs(self.stop_seconds)
    }
}

/// SIGINT, SIGTERM and SIGHUP.
pub struct ShutdownSignal {
    signals: [Signal; 3],
}

impl ShutdownSignal {
    pub fn listen() -> io::Result<Self> {
        let [interrupt, terminate, hang_up] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(ShutdownSignal { signals: [interrupt?, terminate?, hang_up?] })
    }

    /// Waits for the next signal.
    pub async fn recv(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }

    /// Starts `shutdown` at the first signal, and exits the process at the second.
    pub async fn run_on_signal(mut self, shutdown: impl Future<Output = ()> + Send + 'static) {
        self.recv().await;
        tokio::spawn(shutdown);
        self.recv().await;
        tracing::warn!("second stop signal: exiting without waiting for in-flight work");
        std::process::exit(1);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Serving,
    /// Not ready, but requests are accepted.
    Draining,
    /// New requests are rejected.
    Closed,
}

/// Counts in-flight requests. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct InFlightRequests(Arc<watch::Sender<(Phase, usize)>>);

/// Counts one request until it is dropped.
#[derive(Debug)]
pub struct InFlightGuard(InFlightRequests);

impl InFlightRequests {
    /// Counts a request; returns nothing after [`close`](Self::close).
    pub fn begin(&self) -> Option<InFlightGuard> {
        let accepted = self.0.send_if_modified(|(phase, count)| {
            let accepts = *phase != Phase::Closed;
            *count += usize::from(accepts);
            accepts
        });
        accepted.then(|| InFlightGuard(self.clone()))
    }

    /// Reports the process as not ready, so that load balancers stop sending requests.
    pub fn drain(&self) {
        self.advance(Phase::Draining);
    }

    /// Rejects new requests.
    pub fn close(&self) {
        self.advance(Phase::Closed);
    }

    fn advance(&self, to: Phase) {
        self.0.send_modify(|(phase, _)| *phase = to.max(*phase));
    }

    /// Whether shutdown has begun.
    pub fn is_draining(&self) -> bool {
        self.0.borrow().0 != Phase::Serving
    }

    /// Waits until no request is in flight.
    pub async fn wait_until_idle(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.0.subscribe().wait_for(|(_, count)| *count == 0).await;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|(_, count)| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn shutdown_finishes_in_flight_requests_only() {
        let in_flight = InFlightRequests::default();
        let first = in_flight.begin().expect("accepted while serving");
        assert!(!in_flight.is_draining());
        in_flight.drain();
        assert!(in_flight.is_draining());
        let second = in_flight.begin().expect("accepted while draining");
        in_flight.close();
        in_flight.drain();
        assert!(in_flight.begin().is_none(), "closed is final");
        drop(first);
        assert!(in_flight.wait_until_idle().now_or_never().is_none());
        drop(second);
        in_flight.wait_until_idle().await;
    }
}
