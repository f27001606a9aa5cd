//! Runs reads of records with a permit of their organization, so that one organization's lists leave connections to Postgres
//! to all others, and to writes and authentication.

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::app::App;
use crate::http::caller::Caller;
use crate::http::output::problem::Problem;
use crate::store::fair_limiter::Permit;

pub struct LimitReads;

impl LimitReads {
    async fn acquire(depot: &Depot) -> Result<Permit, Problem> {
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        Ok(app.reads.acquire(Caller::from_depot(depot)?.organization).await?)
    }
}

#[async_trait]
impl Handler for LimitReads {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        match Self::acquire(depot).await {
            Ok(_permit) => {
                ctrl.call_next(req, depot, res).await;
            }
            Err(problem) => {
                problem.write(req, depot, res).await;
                ctrl.skip_rest();
            }
        }
    }
}
