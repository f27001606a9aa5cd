//! The end of a process as requests meet it: those in hand are finished, those that come are refused, and no connection
//! is kept for another.

use salvo::http::header::CONNECTION;
use salvo::http::{HeaderValue, Version};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::output::problem::Problem;
use crate::shutdown::InFlight;

/// Counts requests in hand, and refuses those that come too late.
pub struct RefuseLate(pub InFlight);

#[async_trait]
impl Handler for RefuseLate {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let in_hand = self.0.begin();
        if in_hand.is_some() {
            ctrl.call_next(req, depot, res).await;
        } else {
            Problem::stopping().write(req, depot, res).await;
            ctrl.skip_rest();
        }
        // HTTP/2 says so by a frame of its own.
        if self.0.is_draining() && req.version() <= Version::HTTP_11 {
            res.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
