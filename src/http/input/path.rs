//! The parameters of a path.

use salvo_oapi::{Operation, ParameterIn};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reader::{InputField, InputSchema, from_text, read_scalar};
use super::request_part::{RequestContext, RequestPart, impl_extractible};
use super::violations::Violations;
use crate::http::openapi::operation::add_parameters;

/// The parameters of a path, parsed into `T`.
#[derive(Serialize)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> RequestPart for Path<T> {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let read = |InputField { name, schema, .. }: &InputField, found: &mut Violations| {
            let text = context.request.params().get(name).map_or("", String::as_str);
            let value = read_scalar(schema, &from_text(schema, text));
            value.map_err(|message| found.add(name, message)).ok()
        };
        InputSchema::of::<T>().read_query(context.today, violations, read).map(Path)
    }

    fn describe(operation: &mut Operation) {
        add_parameters(operation, ParameterIn::Path, &InputSchema::of::<T>().fields);
    }
}

impl_extractible!([T: DeserializeOwned + JsonSchema + Send + 'static] Path<T>);
