//! Rejects requests during shutdown.

use salvo::http::header::CONNECTION;
use salvo::http::{HeaderValue, Version};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::output::problem::Problem;
use crate::shutdown::InFlightRequests;

/// Counts requests in flight, which shutdown waits for.
pub struct RejectDuringShutdown(pub InFlightRequests);

#[async_trait]
impl Handler for RejectDuringShutdown {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let in_flight = self.0.begin();
        if in_flight.is_some() {
            ctrl.call_next(req, depot, res).await;
        } else {
            Problem::shutting_down().write(req, depot, res).await;
            ctrl.skip_rest();
        }
        if self.0.is_draining() {
            close_connection(req, res);
        }
    }
}

/// Closes an HTTP/1 connection after the response. On HTTP/2 the server sends GOAWAY.
pub(super) fn close_connection(req: &Request, res: &mut Response) {
    if req.version() <= Version::HTTP_11 {
        res.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
