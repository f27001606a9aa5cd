//! How long a request may wait for the stores: short enough that an outage is told as one within five seconds.

use std::future::Future;
use std::time::Duration;

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use super::problem::Problem;

/// What the steps before have left of the time for the stores.
#[derive(Debug, Clone, Copy)]
pub struct TimeLeft(Duration);

impl TimeLeft {
    pub const WHOLE: TimeLeft = TimeLeft(Duration::from_millis(4500));

    pub const fn less(self, spent: Duration) -> Self {
        TimeLeft(self.0.saturating_sub(spent))
    }
}

/// Gives up on what takes longer.
pub async fn bounded<T>(left: TimeLeft, work: impl Future<Output = T>) -> Result<T, Problem> {
    let outcome = tokio::time::timeout(left.0, work).await;
    outcome.map_err(|_| Problem::unavailable("no answer within the time that a request may take"))
}

/// Bounds the rest of the request. What it was doing is rolled back.
pub struct BoundTime;

#[async_trait]
impl Handler for BoundTime {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let left = depot.get_typed::<TimeLeft>().copied().unwrap_or(TimeLeft::WHOLE);
        let outcome = bounded(left, ctrl.call_next(req, depot, res)).await;
        if let Err(problem) = outcome {
            problem.write(req, depot, res).await;
            ctrl.skip_rest();
        }
    }
}
