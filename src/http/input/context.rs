//! What handlers take besides the parts of the request: the caller, the deadline and the application state.

use salvo::extract::Metadata;
use salvo::{Depot, Extractible, Request};
use salvo_oapi::{Components, EndpointArgRegister, Operation};

use super::part::METADATA;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::deadline::Deadline;
use crate::http::output::problem::Problem;
use crate::http::request_id::RequestId;

impl Caller {
    fn from_request(_req: &Request, depot: &Depot) -> Result<Self, Problem> {
        depot.get_typed::<Self>().cloned().map_err(|_| Problem::internal("this route has no authentication"))
    }
}

impl Deadline {
    fn from_request(_req: &Request, depot: &Depot) -> Result<Self, Problem> {
        depot.get_typed::<Self>().cloned().map_err(|_| Problem::internal("this route has no deadline"))
    }
}

impl App {
    /// Returns the state with a history reader for this request: its ClickHouse queries carry the request id and the
    /// endpoint, and read no more history than the organization retains.
    fn from_request(req: &Request, depot: &Depot) -> Result<Self, Problem> {
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let comment = format!("{} {} /{}", RequestId::from_depot(depot), req.method(), req.matched_path());
        let since = depot.get_typed::<Caller>().ok().and_then(|caller| caller.history_since);
        Ok(App { history: app.history.with_log_comment(comment).with_history_since(since), ..app.clone() })
    }
}

macro_rules! impl_extractible {
    ($($value:ident),*) => {$(
        impl<'ex> Extractible<'ex> for $value {
            fn metadata() -> &'static Metadata {
                &METADATA
            }

            #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
            async fn extract(req: &'ex mut Request, depot: &'ex mut Depot) -> Result<Self, Problem> {
                $value::from_request(req, depot)
            }
        }

        impl EndpointArgRegister for $value {
            fn register(_components: &mut Components, _operation: &mut Operation, _name: &str) {}
        }
    )*};
}
impl_extractible!(App, Caller, Deadline);
