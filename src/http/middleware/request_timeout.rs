//! Ends a request at its deadline. Its transaction is rolled back.

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::deadline::{Deadline, TimeBudget};

/// The deadline includes the time that earlier middleware spent.
pub struct RequestTimeout;

#[async_trait]
impl Handler for RequestTimeout {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let deadline = Deadline::new(TimeBudget::from_depot(depot));
        depot.insert_typed(deadline.clone());
        if let Err(problem) = deadline.timeout(ctrl.call_next(req, depot, res)).await {
            problem.write(req, depot, res).await;
        }
    }
}
