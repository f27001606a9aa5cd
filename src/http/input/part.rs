//! Reads the parts of a request, so that one response names the violations of all of them. The same code describes the
//! parts in the OpenAPI document.

use std::sync::LazyLock;

use salvo::extract::Metadata;
use salvo::{Depot, Request};
use salvo_oapi::Operation;
use serde::Serialize;
use serde_json::Value;

use super::violations::Violations;
use crate::http::caller::Caller;
use crate::http::output::problem::Problem;

/// The query string and the body of a request, decoded but not validated.
#[derive(Debug, Default)]
pub struct ParsedRequest {
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

/// A request whose parts can be read.
pub struct Parts<'a> {
    pub request: &'a Request,
    pub parsed: &'a ParsedRequest,
    pub caller: Option<&'a Caller>,
}

/// A part of a request, such as its path or its body.
pub trait Part: Sized + Send {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self;

    /// Adds this part to an operation of the OpenAPI document.
    fn describe(operation: &mut Operation);
}

/// Several parts, read together.
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

pub(super) fn read<T: Part>(request: &Request, depot: &Depot) -> Result<T, Problem> {
    static EMPTY: ParsedRequest = ParsedRequest { query: Vec::new(), body: None };
    let parsed = depot.get_typed::<ParsedRequest>().unwrap_or(&EMPTY);
    let parts = Parts { request, parsed, caller: depot.get_typed::<Caller>().ok() };
    let mut violations = Violations::default();
    let part = T::read(&parts, &mut violations);
    if violations.is_empty() { Ok(part) } else { Err(Problem::invalid(violations)) }
}

/// Implements salvo's extraction and the registration in the OpenAPI document for a type, which is a [`Part`] unless
/// other code is given.
macro_rules! impl_extractible {
    ([$($generics:tt)*] $part:ty) => {
        $crate::http::input::part::impl_extractible!(
            [$($generics)*] $part,
            |req, depot| $crate::http::input::part::read(req, depot),
            |operation| <Self as $crate::http::input::part::Part>::describe(operation)
        );
    };
    (
        [$($generics:tt)*] $value:ty,
        |$req:ident, $depot:ident| $extract:expr,
        |$operation:ident| $describe:expr
    ) => {
        impl<'ex, $($generics)*> salvo::Extractible<'ex> for $value {
            fn metadata() -> &'static salvo::extract::Metadata {
                &$crate::http::input::part::METADATA
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
pub(super) use impl_extractible;

/// Required by salvo, which otherwise reads the fields itself.
pub(super) static METADATA: LazyLock<Metadata> = LazyLock::new(|| Metadata::new("request"));

impl_extractible!([A: Part, B: Part] Args<(A, B)>);
impl_extractible!([A: Part, B: Part, C: Part] Args<(A, B, C)>);
