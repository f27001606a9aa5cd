//! What handlers take: the application, the caller, and the checked parts of the request. Everything that is wrong
//! with the parts is answered at once, so several of them are taken together, as [`Args`]. Each part also tells the
//! API's document what it reads.

pub mod batch;
pub mod fields;
pub mod idempotency;
pub(in crate::http) mod json;
pub mod window;
pub mod windowed;

use std::sync::LazyLock;

use salvo::extract::Metadata;
use salvo::{Depot, Extractible, Request};
use salvo_oapi::{Components, EndpointArgRegister, Operation, ParameterIn};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::app::App;
use crate::http::input::fields::{Object, Params, Violations, uuid};
use crate::http::middleware::authenticate::Caller;
use crate::http::middleware::request_id::RequestId;
use crate::http::middleware::request_timeout::Deadline;
use crate::http::openapi;
use crate::http::openapi::schema_recorder::{self, Notes, Page};
use crate::http::output::problem::Problem;

/// The query string and the body of a request, decoded but not yet understood.
#[derive(Debug, Default)]
pub struct Received {
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    /// The members of the body that an object names more than once, by their dotted paths.
    pub repeated: Vec<String>,
}

/// A request whose parts can be read.
pub struct Parts<'a> {
    pub request: &'a Request,
    pub received: &'a Received,
    pub caller: Option<&'a Caller>,
}

/// A part of a request that is read with everything that is wrong with it.
pub trait Part: Sized + Send {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self;

    /// Says what it reads.
    fn describe(operation: &mut Operation);
}

/// The parameters of a path.
pub struct PathParams<'a> {
    request: &'a Request,
    violations: &'a mut Violations,
    notes: Notes<'a>,
}

impl<'a> PathParams<'a> {
    /// Says what the parameter that is read next means.
    pub const fn about(&mut self, text: &'static str) -> &mut Self {
        self.notes.about(text);
        self
    }

    /// A parameter that is read by a rule of its own.
    pub fn text(&mut self, name: &str, schema: impl FnOnce() -> Value) -> &'a str {
        self.notes.note(name, schema);
        self.request.params().get(name).map_or("", String::as_str)
    }

    pub fn uuid(&mut self, name: &str) -> Uuid {
        uuid(self.text(name, schema_recorder::uuid)).unwrap_or_else(|message| {
            self.violations.add(name, message);
            Uuid::nil()
        })
    }

    pub fn violation(&mut self, name: &str, message: impl Into<String>) {
        self.violations.add(name, message);
    }
}

/// What can be read from a path.
pub trait FromPath: Send {
    fn read(path: &mut PathParams<'_>) -> Self;
}

/// What can be read from a query string.
pub trait FromQuery: Send {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self;
}

/// What can be read from a JSON object.
pub trait FromBody: Send {
    /// A body that is read without violations.
    fn example() -> Value;

    fn read(body: &mut Object<'_>) -> Self;
}

#[derive(Serialize)]
pub struct Path<T>(pub T);
#[derive(Serialize)]
pub struct Query<T>(pub T);
#[derive(Serialize)]
pub struct Body<T>(pub T);

impl<T: FromPath> Part for Path<T> {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        Path(T::read(&mut PathParams { request: parts.request, violations, notes: Notes::none() }))
    }

    fn describe(operation: &mut Operation) {
        let (mut page, mut violations, request) = (Page::default(), Violations::default(), Request::new());
        let notes = Notes::on(&mut page);
        T::read(&mut PathParams { request: &request, violations: &mut violations, notes });
        openapi::parameters(operation, ParameterIn::Path, page);
    }
}

impl<T: FromQuery> Part for Query<T> {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        Query(T::read(&mut Params::new(&parts.received.query, violations), parts))
    }

    fn describe(operation: &mut Operation) {
        let (mut page, mut violations, request) = (Page::default(), Violations::default(), Request::new());
        let parts = Parts { request: &request, received: &Received::default(), caller: None };
        T::read(&mut Params::noted(&mut page, &mut violations), &parts);
        openapi::parameters(operation, ParameterIn::Query, page);
    }
}

impl<T: FromBody> Part for Body<T> {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        static ABSENT: Value = Value::Null;
        let mut object = Object::new(parts.received.body.as_ref().unwrap_or(&ABSENT), violations);
        let body = T::read(&mut object);
        object.finish();
        for field in &parts.received.repeated {
            violations.add(field, "must be given once");
        }
        Body(body)
    }

    fn describe(operation: &mut Operation) {
        let (mut page, mut violations, example) = (Page::default(), Violations::default(), T::example());
        T::read(&mut Object::noted(&mut page, &mut violations));
        let mut violations = Violations::default();
        T::read(&mut Object::new(&example, &mut violations));
        debug_assert!(violations.is_empty(), "an example is not valid: {violations:?}");
        openapi::body(operation, page, example);
    }
}

/// Several parts that are read together.
#[derive(Serialize)]
pub struct Args<T>(pub T);

impl<A: Part, B: Part> Part for Args<(A, B)> {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        Args((A::read(parts, violations), B::read(parts, violations)))
    }

    fn describe(operation: &mut Operation) {
        A::describe(operation);
        B::describe(operation);
    }
}

impl<A: Part, B: Part, C: Part> Part for Args<(A, B, C)> {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        Args((A::read(parts, violations), B::read(parts, violations), C::read(parts, violations)))
    }

    fn describe(operation: &mut Operation) {
        A::describe(operation);
        B::describe(operation);
        C::describe(operation);
    }
}

fn read<T: Part>(request: &Request, depot: &Depot) -> Result<T, Problem> {
    static NOTHING: Received = Received { query: Vec::new(), body: None, repeated: Vec::new() };
    let received = depot.get_typed::<Received>().unwrap_or(&NOTHING);
    let parts = Parts { request, received, caller: depot.get_typed::<Caller>().ok() };
    let mut violations = Violations::default();
    let part = T::read(&parts, &mut violations);
    if violations.is_empty() { Ok(part) } else { Err(Problem::invalid(violations)) }
}

/// Salvo asks every extractor where its fields come from; ours read the request themselves.
static METADATA: LazyLock<Metadata> = LazyLock::new(|| Metadata::new("request"));

macro_rules! extractible {
    ($($part:ident: $bound:ident),*) => {$(
        impl<'ex, T: $bound> Extractible<'ex> for $part<T> {
            fn metadata() -> &'static Metadata {
                &METADATA
            }

            #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
            async fn extract(req: &'ex mut Request, depot: &'ex mut Depot) -> Result<Self, Problem> {
                read(req, depot)
            }
        }

        impl<T: $bound> EndpointArgRegister for $part<T> {
            fn register(_components: &mut Components, operation: &mut Operation, _name: &str) {
                Self::describe(operation);
            }
        }
    )*};
}
extractible!(Path: FromPath, Query: FromQuery, Body: FromBody);

impl<'ex, T: Send> Extractible<'ex> for Args<T>
where
    Args<T>: Part,
{
    fn metadata() -> &'static Metadata {
        &METADATA
    }

    #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
    async fn extract(req: &'ex mut Request, depot: &'ex mut Depot) -> Result<Self, Problem> {
        read(req, depot)
    }
}

impl<T: Send> EndpointArgRegister for Args<T>
where
    Args<T>: Part,
{
    fn register(_components: &mut Components, operation: &mut Operation, _name: &str) {
        Self::describe(operation);
    }
}

macro_rules! from_depot {
    ($($what:ty: $absence:literal),*) => {$(
        impl<'ex> Extractible<'ex> for $what {
            fn metadata() -> &'static Metadata {
                &METADATA
            }

            #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
            async fn extract(_req: &'ex mut Request, depot: &'ex mut Depot) -> Result<Self, Problem> {
                depot.get_typed::<$what>().cloned().map_err(|_| Problem::internal($absence))
            }
        }

        impl EndpointArgRegister for $what {
            fn register(_components: &mut Components, _operation: &mut Operation, _name: &str) {}
        }
    )*};
}
from_depot!(
    Caller: "a route without a key asks for its caller",
    Deadline: "a route without a deadline asks for it"
);

/// The application, whose questions to ClickHouse carry the request's name and endpoint, and ask for no more history than
/// the caller's organization keeps.
impl<'ex> Extractible<'ex> for App {
    fn metadata() -> &'static Metadata {
        &METADATA
    }

    #[expect(refining_impl_trait, reason = "the error of our extractors is always a problem")]
    async fn extract(req: &'ex mut Request, depot: &'ex mut Depot) -> Result<Self, Problem> {
        let app = depot.get_typed::<App>();
        let app = app.map_err(|_| Problem::internal("the application was not handed to the request"))?;
        let comment = format!("{} {} /{}", RequestId::of(depot), req.method(), req.matched_path());
        let since = depot.get_typed::<Caller>().ok().and_then(|caller| caller.history_since);
        Ok(App { history: app.history.with_log_comment(comment).with_history_since(since), ..app.clone() })
    }
}

impl EndpointArgRegister for App {
    fn register(_components: &mut Components, _operation: &mut Operation, _name: &str) {}
}
