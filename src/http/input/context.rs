//! What handlers take besides the parts of the request: the caller, the deadline and the application state.

use salvo::{Depot, Request};

use super::part::impl_extractible;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::deadline::Deadline;
use crate::http::output::problem::Problem;
use crate::http::request_id::RequestId;

impl Caller {
    pub(super) fn from_depot(depot: &Depot) -> Result<Self, Problem> {
        depot.get_typed::<Self>().cloned().map_err(|_| Problem::internal("this route has no authentication"))
    }
}

impl Deadline {
    fn from_depot(depot: &Depot) -> Result<Self, Problem> {
        depot.get_typed::<Self>().cloned().map_err(|_| Problem::internal("this route has no deadline"))
    }
}

impl App {
    /// Returns the state with a history reader for this request: its ClickHouse queries carry the request id and the
    /// endpoint, and read no more history than the organization retains.
    pub(super) fn from_request(req: &Request, depot: &Depot) -> Result<Self, Problem> {
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let comment = format!("{} {} /{}", RequestId::from_depot(depot), req.method(), req.matched_path());
        let since = depot.get_typed::<Caller>().ok().and_then(|caller| caller.history_since);
        Ok(App { history: app.history.with_log_comment(comment).with_history_since(since), ..app.clone() })
    }
}

impl_extractible!([] App, |req, depot| App::from_request(req, depot), |_operation| ());
impl_extractible!([] Caller, |_req, depot| Caller::from_depot(depot), |_operation| ());
impl_extractible!([] Deadline, |_req, depot| Deadline::from_depot(depot), |_operation| ());
