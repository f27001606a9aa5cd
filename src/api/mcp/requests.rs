//! Requests to the routes of v2 inside the process, for a caller that is authenticated and counted already.

use std::time::Instant;

use bytes::Bytes;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::uri::Scheme;
use salvo::http::{HeaderValue, ReqBody, ResBody, StatusCode};
use salvo::{ConnCtrl, Depot, FlowCtrl, Handler, Request, Response, Router, Service, Writer, async_trait};

use super::operation::OperationRequest;
use crate::api::private;
use crate::app::App;
use crate::http::deadline::TimeBudget;
use crate::http::middleware::RequireWriteScope;
use crate::http::request_id::RequestId;
use crate::http::{self, Caller, Problem, RequireAccept};

/// What requests inherit from the one that causes them.
#[derive(Clone)]
pub(super) struct Inherited {
    app: App,
    caller: Caller,
    request_id: String,
    budget: TimeBudget,
    started: Instant,
}

impl Inherited {
    pub fn from_depot(depot: &Depot, started: Instant) -> Option<Self> {
        Some(Inherited {
            app: depot.get_typed::<App>().ok()?.clone(),
            caller: depot.get_typed::<Caller>().ok()?.clone(),
            request_id: RequestId::from_depot(depot).to_owned(),
            budget: TimeBudget::from_depot(depot),
            started,
        })
    }

    /// Returns a problem as a response would have it.
    pub async fn render(&self, problem: Problem) -> String {
        let (mut req, mut depot, mut res) = (Request::new(), Depot::new(), Response::new());
        depot.insert_typed(RequestId(self.request_id.clone()));
        problem.write(&mut req, &mut depot, &mut res).await;
        String::from_utf8_lossy(&take_body(&mut res)).into_owned()
    }
}

fn take_body(res: &mut Response) -> Bytes {
    match res.take_body() {
        ResBody::Once(body) => body,
        _ => Bytes::new(),
    }
}

/// The routes of v2, with the middleware after authentication.
pub(super) struct Routes(Service);

impl Routes {
    pub fn new() -> Self {
        let routes = http::responding(RequireAccept::Json).push(private());
        let routes = Router::with_path("v2").hoop(RequireWriteScope).push(routes);
        Routes(Service::new(routes).hoop(Inherit))
    }

    /// Sends a request, and returns the body of the response: of an error in `Err`.
    pub async fn send(&self, inherited: &Inherited, request: OperationRequest) -> Result<String, String> {
        let mut req = Request::new();
        *req.method_mut() = request.method;
        let Ok(uri) = request.uri.parse() else {
            return Err(inherited.render(Problem::bad_request("the arguments make no valid request")).await);
        };
        req.set_uri(uri);
        if let Some(body) = request.body {
            req.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            req.replace_body(ReqBody::Once(body.to_string().into()));
        }
        req.extensions_mut().insert((inherited.clone(), Route(request.route)));
        let (local, remote) = (req.local_addr().clone(), req.remote_addr().clone());
        let handler = self.0.hyper_handler(local, remote, Scheme::HTTP, None, ConnCtrl::new(), None);
        let mut res = handler.handle(req).await;
        let is_success = res.status_code.is_some_and(|status| status.is_success());
        let body = String::from_utf8_lossy(&take_body(&mut res)).into_owned();
        if is_success { Ok(body) } else { Err(body) }
    }
}

/// The path of the operation that is meant, with parameters in braces.
#[derive(Clone)]
struct Route(String);

/// Gives a request what it inherits. A value that leads to another route, as `stats` in place of an id, names no record.
struct Inherit;

#[async_trait]
impl Handler for Inherit {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let Some((inherited, route)) = req.extensions_mut().remove::<(Inherited, Route)>() else {
            res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
            return ctrl.skip_rest();
        };
        depot.insert_typed(RequestId(inherited.request_id));
        if req.matched_path() != route.0 {
            Problem::not_found("the organization has no such record").write(req, depot, res).await;
            return ctrl.skip_rest();
        }
        depot.insert_typed(inherited.budget.minus(inherited.started.elapsed()));
        depot.insert_typed(inherited.caller);
        depot.insert_typed(inherited.app);
    }
}
