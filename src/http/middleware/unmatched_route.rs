//! Adds the problem to 404 and 405 responses of the router.

use salvo::http::StatusCode;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::output::problem::Problem;

pub struct UnmatchedRoute;

#[async_trait]
impl Handler for UnmatchedRoute {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        if !res.body.is_none() {
            return;
        }
        let problem = match res.status_code {
            Some(StatusCode::NOT_FOUND) => Problem::not_found("no route matches this path"),
            Some(StatusCode::METHOD_NOT_ALLOWED) => {
                Problem::method_not_allowed("this path does not support the method: see the Allow header")
            }
            _ => return,
        };
        problem.write(req, depot, res).await;
    }
}
