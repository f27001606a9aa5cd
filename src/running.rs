//! How a process ends. Asked once, it takes nothing new and finishes what it has in hand, within a bound; asked twice, it
//! ends at once. What is in hand is counted here, and so is told who looks whether the process may be given work.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Seconds that what is in hand may take unless the operator says otherwise.
pub const STOP_SECONDS: u64 = 10;

/// How patient a process is with what it has in hand.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Shutdown")]
pub struct StopArgs {
    /// Seconds that what is in hand may still take once the process is asked to stop
    #[arg(long, env = "TIDEMARK_STOP_SECONDS", default_value_t = STOP_SECONDS, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    pub stop_seconds: u64,
}

impl StopArgs {
    pub fn bound(self) -> Duration {
        Duration::from_secs(self.stop_seconds)
    }
}

/// Ctrl-C, SIGTERM and SIGHUP, from the moment of listening on.
pub struct StopRequest {
    signals: [Signal; 3],
}

impl StopRequest {
    pub fn listen() -> io::Result<Self> {
        let [interrupt, terminate, hang_up] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(StopRequest { signals: [interrupt?, terminate?, hang_up?] })
    }

    /// Waits until this process is asked to stop, or asked again.
    pub async fn received(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }

    /// Begins to stop when asked, and ends the process at once when asked again.
    pub async fn obey(mut self, stop: impl Future<Output = ()> + Send + 'static) {
        self.received().await;
        tokio::spawn(stop);
        self.received().await;
        tracing::warn!("asked to stop again: ending at once, with what is in hand unfinished");
        std::process::exit(1);
    }
}

/// How far a process is on its way to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Serving,
    /// Whoever asks whether it is ready is told no; what comes is still taken.
    Leaving,
    /// Nothing new is taken.
    Closed,
}

/// What a process has in hand, and whether it takes more. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Running(Arc<watch::Sender<(Phase, usize)>>);

/// Something in hand, until it is dropped.
#[derive(Debug)]
pub struct InHand(Running);

impl Running {
    /// Takes something in hand, unless nothing is taken any more.
    pub fn take(&self) -> Option<InHand> {
        let taken = self.0.send_if_modified(|(phase, in_hand)| {
            let takes = *phase != Phase::Closed;
            *in_hand += usize::from(takes);
            takes
        });
        taken.then(|| InHand(self.clone()))
    }

    /// Tells from now on that the process is not ready for more.
    pub fn leave(&self) {
        self.reach(Phase::Leaving);
    }

    /// Takes nothing from now on.
    pub fn close(&self) {
        self.reach(Phase::Closed);
    }

    fn reach(&self, phase: Phase) {
        self.0.send_modify(|(reached, _)| *reached = phase.max(*reached));
    }

    pub fn is_leaving(&self) -> bool {
        self.0.borrow().0 != Phase::Serving
    }

    /// Waits until nothing is in hand.
    pub async fn finished(&self) {
        // The sender is this very value, so it does not go away meanwhile.
        let _ = self.0.subscribe().wait_for(|(_, in_hand)| *in_hand == 0).await;
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.0.send_modify(|(_, in_hand)| *in_hand -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_is_in_hand_is_finished_and_nothing_new_is_taken() {
        let running = Running::default();
        let first = running.take().expect("it serves");
        assert!(!running.is_leaving());
        running.leave();
        assert!(running.is_leaving());
        let second = running.take().expect("it still takes what comes");
        running.close();
        running.leave();
        assert!(running.take().is_none(), "what is closed stays closed");
        drop(first);
        assert!(running.finished().now_or_never().is_none());
        drop(second);
        running.finished().await;
    }
}
