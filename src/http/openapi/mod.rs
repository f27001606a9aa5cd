//! The API's document (OpenAPI 3.1), made from the code that serves it: readers note their parameters and bodies,
//! answers derive their schemas, the router knows the paths. What all operations share is added in [`document`].

mod document;
mod example;
mod problems;
pub mod schema_recorder;

use std::sync::{LazyLock, Mutex, PoisonError};

use salvo_oapi::{
    Content, Operation, Parameter, ParameterIn, ParameterStyle, RefOr, RequestBody, Required, Response,
    Schema,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub use document::{Info, document};

use crate::http::openapi::schema_recorder::{Field, Page};

/// The schemas of all types that answers are made of; one generator for all, so that no two share a name.
static SCHEMAS: LazyLock<Mutex<SchemaGenerator>> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    Mutex::new(settings.into_generator())
});

/// The schema of a type, by reference where the type has a name.
fn schema_of<T: JsonSchema>() -> Value {
    SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner).subschema_for::<T>().to_value()
}

/// The schemas that were referred to so far.
fn definitions() -> Map<String, Value> {
    SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner).definitions().clone()
}

/// A schema in the library's own form, which keeps every keyword.
fn schema(value: Value) -> RefOr<Schema> {
    serde_json::from_value(value).unwrap_or_else(|_| RefOr::Type(Schema::Boolean(true)))
}

/// Adds an answer of a type.
pub fn success<T: JsonSchema>(operation: &mut Operation, status: &str, description: &str) {
    let content = Content::new(schema(schema_of::<T>()));
    operation.responses.insert(status, Response::new(description).add_content("application/json", content));
}

/// Adds a way in which a request can fail that does not follow from its parts; the document gives it its form.
pub fn failure(operation: &mut Operation, status: &str, description: &str) {
    operation.responses.insert(status, Response::new(description));
}

/// Adds the parameters that a reader noted.
pub(super) fn parameters(operation: &mut Operation, place: ParameterIn, page: Page) {
    for Field { name, about, schema: value } in page.fields {
        let required = place == ParameterIn::Path || page.required.iter().any(|required| *required == name);
        let is_list = value["type"] == "array";
        let mut parameter = Parameter::new(name).location(place).schema(schema(value));
        if is_list {
            // One parameter with commas between the values.
            parameter = parameter.style(ParameterStyle::Form).explode(false);
        }
        parameter.required = if required { Required::True } else { Required::False };
        if !about.is_empty() {
            parameter.description = Some(about.to_owned());
        }
        operation.parameters.insert(parameter);
    }
}

/// Adds the body that a reader noted.
pub(super) fn body(operation: &mut Operation, page: Page, example: Value) {
    let mut properties = Map::new();
    for Field { name, about, schema: mut value } in page.fields {
        if let Some(value) = value.as_object_mut().filter(|_| !about.is_empty()) {
            value.insert("description".to_owned(), about.into());
        }
        properties.insert(name, value);
    }
    let mut object = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !page.required.is_empty() {
        object["required"] = json!(page.required);
    }
    if !page.cases.is_empty() {
        object["oneOf"] = page.cases.into();
    }
    let content = Content::new(schema(object)).example(example);
    operation.request_body =
        Some(RequestBody::new().required(Required::True).add_content("application/json", content));
}
