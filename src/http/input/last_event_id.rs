//! The `Last-Event-ID` header, with which a client continues a stream.

use salvo_oapi::{Operation, ParameterIn};
use schemars::JsonSchema;
use uuid::Uuid;

use super::reader::InputSchema;
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;

const HEADER: &str = "Last-Event-ID";

/// The position after which a stream begins, if the request names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastEventId(pub Option<Uuid>);

/// The header in the OpenAPI document.
#[derive(JsonSchema)]
struct Headers {
    /// Id after which events are sent; any UUID is a position. Without it, events are sent that become known from now on.
    #[serde(rename = "Last-Event-ID")]
    _id: Option<Uuid>,
}

impl RequestPart for LastEventId {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let mut values = context.request.headers().get_all(HEADER).iter();
        let Some(value) = values.next() else { return Some(LastEventId(None)) };
        let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        let id = id.filter(|_| values.next().is_none());
        if id.is_none() {
            violations.add(HEADER, "must be the id of an event, a UUID, given once");
        }
        id.map(|id| LastEventId(Some(id)))
    }

    fn describe(operation: &mut Operation) {
        add_parameters(operation, ParameterIn::Header, &InputSchema::of::<Headers>().fields);
    }
}

impl_extractible!([] LastEventId);
