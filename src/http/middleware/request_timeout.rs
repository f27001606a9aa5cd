//! How long a request may wait for the stores: short enough that an outage is told as one within five seconds. What
//! a request waits for a platform is not counted, and has a bound of its own.

use std::future::Future;
use std::time::Duration;

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::http::output::problem::Problem;

/// What the steps before have left of the time for the stores.
#[derive(Debug, Clone, Copy)]
pub struct TimeLeft(Duration);

impl TimeLeft {
    pub const WHOLE: TimeLeft = TimeLeft(Duration::from_millis(4500));

    pub const fn less(self, spent: Duration) -> Self {
        TimeLeft(self.0.saturating_sub(spent))
    }
}

const _: () = assert!(TimeLeft::WHOLE.0.as_millis() < 5_000, "an outage has to be told within five seconds");

fn gave_up() -> Problem {
    Problem::unavailable("no answer within the time that a request may take")
}

/// Gives up on what takes longer.
pub async fn bounded<T>(left: TimeLeft, work: impl Future<Output = T>) -> Result<T, Problem> {
    tokio::time::timeout(left.0, work).await.map_err(|_| gave_up())
}

/// The moment at which a request is given up.
#[derive(Debug, Clone)]
pub struct Deadline(watch::Sender<Instant>);

/// What somebody else was waited for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSlow;

impl Deadline {
    fn after(left: TimeLeft) -> Self {
        Deadline(watch::Sender::new(Instant::now() + left.0))
    }

    /// Waits for somebody other than the stores, at most for `bound`; the request gets the time back afterwards.
    pub async fn outside<T>(&self, bound: Duration, work: impl Future<Output = T>) -> Result<T, TooSlow> {
        let begun = Instant::now();
        self.0.send_modify(|deadline| *deadline += bound);
        let outcome = tokio::time::timeout(bound, work).await;
        let unused = bound.saturating_sub(begun.elapsed());
        self.0.send_modify(|deadline| *deadline -= unused);
        outcome.map_err(|_| TooSlow)
    }

    /// Gives up on what is not done by then, wherever it was moved to meanwhile.
    async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T, Problem> {
        let mut moved = self.0.subscribe();
        tokio::pin!(work);
        loop {
            let deadline = *moved.borrow_and_update();
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                // The sender is this very deadline, so it is there to say more.
                _moved = moved.changed() => {}
                () = tokio::time::sleep_until(deadline) => return Err(gave_up()),
            }
        }
    }
}

/// Bounds the rest of the request. What it was doing is rolled back.
pub struct BoundTime;

#[async_trait]
impl Handler for BoundTime {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let left = depot.get_typed::<TimeLeft>().copied().unwrap_or(TimeLeft::WHOLE);
        let deadline = Deadline::after(left);
        depot.insert_typed(deadline.clone());
        let outcome = deadline.keep(ctrl.call_next(req, depot, res)).await;
        if let Err(problem) = outcome {
            problem.write(req, depot, res).await;
            ctrl.skip_rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORES: TimeLeft = TimeLeft(Duration::from_millis(200));
    const LONGER: Duration = Duration::from_millis(400);

    #[tokio::test]
    async fn only_the_time_for_the_stores_counts() {
        let deadline = Deadline::after(STORES);
        let other = deadline.clone();
        let asked = deadline.keep(async {
            let waited = other.outside(LONGER * 10, tokio::time::sleep(LONGER)).await;
            tokio::time::sleep(STORES.0 / 4).await;
            waited
        });
        assert!(matches!(asked.await, Ok(Ok(()))));
        assert!(deadline.keep(std::future::pending::<()>()).await.is_err(), "the rest is as short as before");
        assert!(Deadline::after(STORES).keep(tokio::time::sleep(LONGER)).await.is_err());
    }

    #[tokio::test]
    async fn waiting_for_somebody_else_is_bounded_too() {
        let deadline = Deadline::after(STORES);
        let other = deadline.clone();
        let asked = deadline.keep(async { other.outside(LONGER, std::future::pending::<()>()).await }).await;
        assert!(matches!(asked, Ok(Err(TooSlow))));
    }
}
