//! Reads the parts of a request, so that one response names the violations of all of them. The same code describes the
//! parts in the OpenAPI document. Handlers also take the caller, the deadline and the application state.

use std::sync::LazyLock;

use chrono::NaiveDate;
use salvo::extract::Metadata;
use salvo::{Depot, Request};
use salvo_oapi::Operation;
use serde::Serialize;
use serde_json::Value;

use super::violations::Violations;
use crate::app::App;
use crate::http::caller::Caller;
use crate::http::deadline::Deadline;
use crate::http::output::problem::Problem;
use crate::http::request_id::RequestId;
use crate::store::records::collections::shares::ShareGrant;

/// The query string and the body of a request, decoded but not validated.
#[derive(Debug, Default)]
pub struct ParsedRequest {
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

/// The request that parts are read from.
pub struct RequestContext<'a> {
    pub request: &'a Request,
    pub parsed: &'a ParsedRequest,
    pub caller: Option<&'a Caller>,
    /// The share whose report is requested.
    pub share: Option<&'a ShareGrant>,
    /// The day of the service clock, if the request has dates that depend on it.
    pub today: NaiveDate,
}

/// A part of a request, such as its path or its body.
pub trait RequestPart: Sized + Send {
    /// Reads the part, and reports all violations; `None` only with some.
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self>;

    /// Adds this part to an operation of the OpenAPI document.
    fn describe(operation: &mut Operation);
}

/// Several parts, read together.
#[derive(Serialize)]
pub struct Args<T>(pub T);

impl<A: RequestPart, B: RequestPart> RequestPart for Args<(A, B)> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let (first, second) = (A::read(context, violations), B::read(context, violations));
        Some(Args((first?, second?)))
    }

    fn describe(operation: &mut Operation) {
        A::describe(operation);
        B::describe(operation);
    }
}

impl<A: RequestPart, B: RequestPart, C: RequestPart> RequestPart for Args<(A, B, C)> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let (first, second) = (A::read(context, violations), B::read(context, violations));
        let third = C::read(context, violations);
        Some(Args((first?, second?, third?)))
    }

    fn describe(operation: &mut Operation) {
        A::describe(operation);
        B::describe(operation);
        C::describe(operation);
    }
}

/// Reads a part; the error lists all violations.
pub(super) async fn read_part<T: RequestPart>(request: &Request, depot: &Depot) -> Result<T, Problem> {
    static EMPTY: ParsedRequest = ParsedRequest { query: Vec::new(), body: None };
    let parsed = depot.get_typed::<ParsedRequest>().unwrap_or(&EMPTY);
    let today = match depot.get_typed::<App>() {
        // Not for every request: the clock of a sandbox is a request away.
        Ok(app) if parsed.query.iter().any(|(name, _)| name == "start_date") => {
            app.clock.now().await.date_naive()
        }
        _ => NaiveDate::default(),
    };
    let (caller, share) = (depot.get_typed::<Caller>().ok(), depot.get_typed::<ShareGrant>().ok());
    let context = RequestContext { request, parsed, caller, share, today };
    let mut violations = Violations::default();
    let part = T::read(&context, &mut violations);
    part.filter(|_| violations.is_empty()).ok_or_else(|| Problem::invalid(violations))
}

/// Implements salvo's extraction and the registration in the OpenAPI document for a type, which is a [`RequestPart`] unless
/// other code is given.
macro_rules! impl_extractible {
    ([$($generics:tt)*] $part:ty) => {
        $crate::http::input::request_part::impl_extractible!(
            [$($generics)*] $part,
            |req, depot| $crate::http::input::request_part::read_part(req, depot).await,
            |operation| <Self as $crate::http::input::request_part::RequestPart>::describe(operation)
        );
    };
    (
        [$($generics:tt)*] $value:ty,
        |$req:ident, $depot:ident| $extract:expr,
        |$operation:ident| $describe:expr
    ) => {
        impl<'ex, $($generics)*> salvo::Extractible<'ex> for $value {
            fn metadata() -> &'static salvo::extract::Metadata {
                &$crate::http::input::request_part::METADATA
            }

            #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
            async fn extract(
                $req: &'ex mut salvo::Request,
                $depot: &'ex mut salvo::Depot,
            ) -> Result<Self, $crate::http::output::problem::Problem> {
                $extract
            }
        }

        impl<$($generics)*> salvo_oapi::EndpointArgRegister for $value {
            fn register(
                _components: &mut salvo_oapi::Components,
                $operation: &mut salvo_oapi::Operation,
                _name: &str,
            ) {
                $describe
            }
        }
    };
}
pub(in crate::http) use impl_extractible;

/// Required by salvo, which otherwise reads the fields itself.
pub(in crate::http) static METADATA: LazyLock<Metadata> = LazyLock::new(|| Metadata::new("request"));

impl_extractible!([A: RequestPart, B: RequestPart] Args<(A, B)>);
impl_extractible!([A: RequestPart, B: RequestPart, C: RequestPart] Args<(A, B, C)>);

impl Caller {
    pub(in crate::http) fn from_depot(depot: &Depot) -> Result<Self, Problem> {
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
    pub(in crate::http) fn from_request(req: &Request, depot: &Depot) -> Result<Self, Problem> {
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let comment = format!("{} {} /{}", RequestId::from_depot(depot), req.method(), req.matched_path());
        let since = depot.get_typed::<Caller>().ok().and_then(|caller| caller.history_since);
        Ok(App { history: app.history.with_log_comment(comment).with_history_since(since), ..app.clone() })
    }
}

impl_extractible!([] App, |req, depot| App::from_request(req, depot), |_operation| {});
impl_extractible!([] Caller, |_req, depot| Caller::from_depot(depot), |_operation| {});
impl_extractible!([] Deadline, |_req, depot| Deadline::from_depot(depot), |_operation| {});
