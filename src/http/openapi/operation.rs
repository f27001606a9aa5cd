//! Adds parameters, bodies and responses to an operation.

use salvo_oapi::{
    Content, Operation, Parameter, ParameterIn, ParameterStyle, RefOr, RequestBody, Required, Response,
    Schema,
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::schema::schema_of;
use super::schema_recorder::{RecordedField, RecordedFields};

/// Converts a schema; tests fail if it is invalid.
fn to_salvo(schema: Value) -> RefOr<Schema> {
    let converted = serde_json::from_value(schema);
    debug_assert!(converted.is_ok(), "invalid JSON Schema: {converted:?}");
    converted.unwrap_or(RefOr::Type(Schema::Boolean(true)))
}

pub fn add_success<T: JsonSchema>(operation: &mut Operation, status: &str, description: &str) {
    let content = Content::new(to_salvo(schema_of::<T>()));
    operation.responses.insert(status, Response::new(description).add_content("application/json", content));
}

/// Adds the response of a CSV file.
pub fn add_csv(operation: &mut Operation, columns: &[&str]) {
    let description = format!("A CSV file with the columns `{}`.", columns.join("`, `"));
    let content = Content::new(to_salvo(json!({"type": "string"}))).example(columns.join(",").into());
    operation.responses.insert("200", Response::new(description).add_content("text/csv", content));
}

/// Adds an error response that does not follow from the parts; [`super::document`] adds its body.
pub fn add_failure(operation: &mut Operation, status: &str, description: &str) {
    operation.responses.insert(status, Response::new(description));
}

pub fn add_parameters(operation: &mut Operation, location: ParameterIn, recorded: RecordedFields) {
    for RecordedField { name, description, schema } in recorded.fields {
        let is_required = location == ParameterIn::Path || recorded.required.contains(&name.as_str());
        let (is_list, is_map) = (schema["type"] == "array", schema["type"] == "object");
        let mut parameter = Parameter::new(name).location(location).schema(to_salvo(schema));
        if is_list || is_map {
            // Entries and members as parameters of their own. Entries separated by commas are accepted, too.
            parameter = parameter.style(ParameterStyle::Form).explode(true);
        }
        parameter.required = if is_required { Required::True } else { Required::False };
        if !description.is_empty() {
            parameter.description = Some(description);
        }
        operation.parameters.insert(parameter);
    }
}

pub fn set_body(operation: &mut Operation, recorded: RecordedFields, example: Value) {
    let content = Content::new(to_salvo(recorded.into_schema())).example(example);
    operation.request_body =
        Some(RequestBody::new().required(Required::True).add_content("application/json", content));
}
