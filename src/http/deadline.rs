//! The time that a request may wait for the databases, so that an outage is reported within five seconds. Time spent
//! waiting for a platform does not count and has a timeout of its own.

use std::time::Duration;

use salvo::Depot;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::http::output::problem::Problem;

/// The time left for the databases.
#[derive(Debug, Clone, Copy)]
pub struct TimeBudget(Duration);

const _: () =
    assert!(TimeBudget::FULL.0.as_millis() < 5_000, "an outage must be reported within five seconds");

fn timed_out() -> Problem {
    Problem::unavailable("the request timed out")
}

impl TimeBudget {
    pub const FULL: TimeBudget = TimeBudget(Duration::from_millis(4500));

    /// Returns what earlier middleware left of the budget.
    pub fn from_depot(depot: &Depot) -> Self {
        depot.get_typed::<TimeBudget>().copied().unwrap_or(Self::FULL)
    }

    pub const fn minus(self, spent: Duration) -> Self {
        TimeBudget(self.0.saturating_sub(spent))
    }

    /// Runs a future with the budget as its timeout.
    pub async fn timeout<T>(self, future: impl Future<Output = T>) -> Result<T, Problem> {
        tokio::time::timeout(self.0, future).await.map_err(|_| timed_out())
    }
}

/// The deadline of a request, which [`Deadline::await_external`] moves.
#[derive(Debug, Clone)]
pub struct Deadline(watch::Sender<Instant>);

/// An external service did not respond in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalTimeout;

impl Deadline {
    pub fn new(budget: TimeBudget) -> Self {
        Deadline(watch::Sender::new(Instant::now() + budget.0))
    }

    /// Waits for an external service, and moves the deadline by the time spent.
    pub async fn await_external<T>(
        &self,
        timeout: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, ExternalTimeout> {
        let started = Instant::now();
        self.0.send_modify(|deadline| *deadline += timeout);
        let outcome = tokio::time::timeout(timeout, future).await;
        let unused = timeout.saturating_sub(started.elapsed());
        self.0.send_modify(|deadline| *deadline -= unused);
        outcome.map_err(|_| ExternalTimeout)
    }

    /// Runs the request until the deadline, which may move meanwhile.
    pub async fn timeout<T>(&self, request: impl Future<Output = T>) -> Result<T, Problem> {
        let mut moves = self.0.subscribe();
        tokio::pin!(request);
        loop {
            let deadline = *moves.borrow_and_update();
            tokio::select! {
                biased;
                done = &mut request => return Ok(done),
                // Cannot fail: `self` holds the sender.
                _moved = moves.changed() => {}
                () = tokio::time::sleep_until(deadline) => return Err(timed_out()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: TimeBudget = TimeBudget(Duration::from_millis(200));
    const LONGER: Duration = Duration::from_millis(400);

    #[tokio::test]
    async fn external_wait_does_not_count_against_deadline() {
        let deadline = Deadline::new(BUDGET);
        let other = deadline.clone();
        let outcome = deadline.timeout(async {
            let waited = other.await_external(LONGER * 10, tokio::time::sleep(LONGER)).await;
            tokio::time::sleep(BUDGET.0 / 4).await;
            waited
        });
        assert!(matches!(outcome.await, Ok(Ok(()))));
        assert!(deadline.timeout(std::future::pending::<()>()).await.is_err(), "the deadline still applies");
        assert!(Deadline::new(BUDGET).timeout(tokio::time::sleep(LONGER)).await.is_err());
    }

    #[tokio::test]
    async fn external_wait_times_out() {
        let deadline = Deadline::new(BUDGET);
        let other = deadline.clone();
        let pending = std::future::pending::<()>();
        let outcome = deadline.timeout(async { other.await_external(LONGER, pending).await }).await;
        assert!(matches!(outcome, Ok(Err(ExternalTimeout))));
    }
}
