//! Adds parameters, bodies and responses to an operation.

use salvo_oapi::{
    Content, Operation, Parameter, ParameterIn, ParameterStyle, RefOr, RequestBody, Required, Response,
    Schema,
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::schema::{documented, schema_of};
use crate::http::input::reader::{InputField, max_distinct};
use crate::model::limits::LIST_ENTRIES_PER_VALUE;

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

/// Adds the response of a Parquet file, whose columns have names and types.
pub fn add_parquet(operation: &mut Operation, columns: &[(&str, &str)]) {
    let columns: Vec<_> = columns.iter().map(|(name, kind)| format!("`{name}` ({kind})")).collect();
    let description = format!("A Parquet file with the columns {}.", columns.join(", "));
    let content = Content::new(to_salvo(json!({"type": "string", "format": "binary"})));
    let response = Response::new(description).add_content("application/vnd.apache.parquet", content);
    operation.responses.insert("200", response);
}

/// Adds the response of a stream of server-sent events.
pub fn add_event_stream(operation: &mut Operation) {
    let content =
        Content::new(to_salvo(json!({"type": "string"}))).example("event: data.changed\ndata: {}\n\n".into());
    let response = Response::new("Server-sent events, without end.");
    operation.responses.insert("200", response.add_content("text/event-stream", content));
}

/// Adds an error response that does not follow from the parts; [`super::document`] adds its body.
pub fn add_failure(operation: &mut Operation, status: &str, description: &str) {
    operation.responses.insert(status, Response::new(description));
}

pub fn add_parameters(operation: &mut Operation, location: ParameterIn, fields: &[InputField]) {
    for InputField { name, schema, is_required, .. } in fields {
        let mut schema = documented(schema);
        let mut description = schema["description"].take().as_str().unwrap_or_default().to_owned();
        let (is_list, is_map) = (schema["type"] == "array", schema["type"] == "object");
        if is_list {
            let max = max_distinct(&schema);
            let limit =
                format!("At most {max} different values, separated by commas or in repeated parameters.");
            description = format!("{description} {limit}");
            restrict_list(&mut schema, max * LIST_ENTRIES_PER_VALUE);
        }
        if is_map {
            let max = &schema["propertyNames"]["maxLength"];
            let pattern = format!("^{name}\\.[^\\u0000]{{1,{max}}}$");
            schema["propertyNames"] = json!({"type": "string", "pattern": pattern});
        }
        let mut parameter = Parameter::new(name.clone()).location(location).description(description);
        if is_list || is_map {
            // Entries and members as parameters of their own. Entries separated by commas are accepted, too.
            parameter = parameter.style(ParameterStyle::Form).explode(true);
        }
        parameter.required = if *is_required { Required::True } else { Required::False };
        operation.parameters.insert(parameter.schema(to_salvo(schema)));
    }
}

/// Limits a list in a query, whose repetitions do not count for its own limit, and whose entries have no commas.
fn restrict_list(list: &mut Value, max_entries: usize) {
    list["minItems"] = json!(1);
    list["maxItems"] = json!(max_entries);
    if let Some(pattern) = list["items"].get_mut("pattern") {
        *pattern = json!("^[^\\u0000,]*$");
    }
}

/// Sets a body that is a file of any type.
pub fn set_file_body(operation: &mut Operation) {
    let content = Content::new(to_salvo(json!({"type": "string", "format": "binary"})));
    operation.request_body = Some(
        RequestBody::new()
            .description("The file, of any type but those of forms.")
            .required(Required::True)
            .add_content("application/octet-stream", content),
    );
}

/// Sets the body, from the schema of its type.
pub fn set_body(operation: &mut Operation, schema: &Value, example: Value) {
    let mut schema = documented(schema);
    if let Some(members) = schema.as_object_mut() {
        members.remove("description");
    }
    let content = Content::new(to_salvo(schema)).example(example);
    operation.request_body =
        Some(RequestBody::new().required(Required::True).add_content("application/json", content));
}
