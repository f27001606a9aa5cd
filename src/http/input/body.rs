//! A JSON body.

use salvo_oapi::Operation;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::reader::InputSchema;
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::set_body;

/// A JSON body, parsed into `T`.
#[derive(Serialize)]
pub struct Body<T>(pub T);

/// A type that is read from a JSON object.
pub trait FromBody: DeserializeOwned + JsonSchema + Send + 'static {
    /// A valid body, for the OpenAPI document.
    fn example() -> Value;

    /// Checks rules that no schema of a field expresses. `fields` has those that are valid.
    fn check(_fields: &Map<String, Value>, _violations: &mut Violations) {}
}

impl<T: FromBody> RequestPart for Body<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let members =
            expect_object(context.parsed.body.as_ref().unwrap_or(&Value::Null), "body", violations)?;
        read_fields(members, violations).map(Body)
    }

    fn describe(operation: &mut Operation) {
        let example = T::example();
        let read = read_item::<T>(&example, "body").map(drop);
        debug_assert!(read.is_ok(), "invalid example of a body: {read:?}");
        set_body(operation, &InputSchema::of::<T>().schema, example);
    }
}

impl_extractible!([T: FromBody] Body<T>);

/// Reads an object of a list, whose violations are its own.
pub fn read_item<T: FromBody>(value: &Value, path: &str) -> Result<T, Violations> {
    let (mut outside, mut inside) = (Violations::default(), Violations::default());
    let members = expect_object(value, path, &mut outside);
    let item = members.and_then(|members| read_fields(members, &mut inside));
    outside.extend(inside.within(path));
    item.filter(|_| outside.is_empty()).ok_or(outside)
}

fn read_fields<T: FromBody>(members: &Map<String, Value>, violations: &mut Violations) -> Option<T> {
    InputSchema::of::<T>().read_object(members, violations, T::check)
}

fn expect_object<'a>(
    value: &'a Value,
    path: &str,
    violations: &mut Violations,
) -> Option<&'a Map<String, Value>> {
    let members = value.as_object();
    if members.is_none() {
        violations.add(path, "must be a JSON object");
    }
    members
}

/// The body of a request that needs none: absent, or an object without fields.
#[derive(Deserialize, JsonSchema)]
pub struct EmptyBody {}

impl RequestPart for EmptyBody {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        if let Some(body) = &context.parsed.body {
            let members = expect_object(body, "body", violations)?;
            return InputSchema::of::<Self>().read_object(members, violations, |_, _| {});
        }
        Some(EmptyBody {})
    }

    fn describe(_operation: &mut Operation) {}
}
