//! Calls a tool: checks its arguments, sends the requests of its operations, and fits the answer into its limit.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{self, MAX_ANSWER_BYTES};
use super::operation::{Location, Operation, Parameter};
use super::requests::{Inherited, Routes};
use super::schema::MAX_WRITE_ENTRIES;
use super::tools::Definition;
use crate::http::Problem;
use crate::http::input::violations::Violations;

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    content: [TextContent; 1],
    /// Not of errors, which have no schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    is_error: bool,
}

/// The answer or the problem, for clients without structured content.
#[derive(Serialize)]
struct TextContent {
    r#type: &'static str,
    text: String,
}

impl ToolResult {
    pub fn new(answer: Result<String, String>) -> Self {
        let is_error = answer.is_err();
        let (Ok(text) | Err(text)) = answer;
        let structured_content = RawValue::from_string(text.clone()).ok().filter(|_| !is_error);
        ToolResult { content: [TextContent { r#type: "text", text }], structured_content, is_error }
    }
}

/// Returns the answer; the problem in `Err`.
pub(super) async fn call(
    routes: &Routes,
    inherited: &Inherited,
    definition: &Definition,
    mut arguments: Map<String, Value>,
) -> Result<String, String> {
    let violations = check(definition, &arguments);
    if !violations.is_empty() {
        return Err(inherited.render(Problem::invalid(violations)).await);
    }
    let mut bodies = Vec::with_capacity(definition.operations.len());
    for operation in &definition.operations {
        bodies.push(send(routes, inherited, operation, &arguments).await?);
    }
    let (Some(last), Some(operation)) = (bodies.len().checked_sub(1), definition.operations.last()) else {
        return Err(inherited.render(Problem::internal("a tool without operations")).await);
    };
    loop {
        let joined = answer::join(definition.tool.answer, &bodies);
        let joined = match joined {
            Ok(joined) if joined.len() <= MAX_ANSWER_BYTES => return Ok(joined),
            Ok(joined) => joined,
            Err(error) => return Err(inherited.render(Problem::from(error)).await),
        };
        let fitting = if operation.is_paged() { answer::fitting_entries(&joined, &bodies[last]) } else { 0 };
        if fitting == 0 {
            return Err(inherited.render(too_large(operation, joined.len())).await);
        }
        // A page of fewer entries has the cursor that continues after them.
        arguments.insert("limit".to_owned(), fitting.into());
        bodies[last] = send(routes, inherited, operation, &arguments).await?;
    }
}

async fn send(
    routes: &Routes,
    inherited: &Inherited,
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<String, String> {
    match operation.request(arguments) {
        Some(request) => routes.send(inherited, request).await,
        None => Err(inherited.render(Problem::bad_request("the arguments make no valid request")).await),
    }
}

/// Checks what the operations do not: they ignore unknown parameters, a path without an id is another path, and values in
/// paths and queries reach them as texts.
fn check(definition: &Definition, arguments: &Map<String, Value>) -> Violations {
    let mut violations = Violations::default();
    let takes = |name: &String| definition.operations.iter().any(|operation| operation.takes(name));
    for name in arguments.keys().filter(|name| !takes(name)) {
        violations.add(name, "is no parameter of this tool");
    }
    let parameters = definition.operations.iter().flat_map(|operation| &operation.parameters);
    let mut checked = HashSet::new();
    for parameter in parameters.filter(|parameter| checked.insert(parameter.name.as_str())) {
        let value = arguments.get(&parameter.name);
        let is_missing = value.is_none_or(|value| value.is_null() || value == "");
        if parameter.location == Location::Path && is_missing {
            violations.add(&parameter.name, "is required");
        }
        let entries = value.and_then(Value::as_array).map_or(0, Vec::len);
        if parameter.location == Location::Body && entries > MAX_WRITE_ENTRIES {
            violations.add(&parameter.name, format!("must have at most {MAX_WRITE_ENTRIES} entries"));
        }
        if let Some(value) = value.filter(|_| parameter.location != Location::Body) {
            check_shape(parameter, value, &mut violations);
        }
    }
    violations
}

/// Checks what gets lost when the value becomes text. Null counts as absent.
fn check_shape(parameter: &Parameter, value: &Value, violations: &mut Violations) {
    let name = &parameter.name;
    match (parameter.schema["type"].as_str(), value) {
        (_, Value::Null) => {}
        (Some("object"), Value::Object(tags)) => {
            for (key, _) in tags.iter().filter(|(_, tag)| !tag.is_string()) {
                violations.add(format!("{name}.{key}"), "must be a string");
            }
        }
        (Some("object"), _) => violations.add(name, "must be an object"),
        (Some("array"), Value::Array(entries)) => {
            for (index, entry) in entries.iter().enumerate() {
                check_scalar(entry, || format!("{name}[{index}]"), violations);
            }
        }
        _ => check_scalar(value, || name.clone(), violations),
    }
}

fn check_scalar(value: &Value, path: impl Fn() -> String, violations: &mut Violations) {
    match value {
        Value::Null => violations.add(path(), "must not be null"),
        Value::Array(_) => violations.add(path(), "must not be a list"),
        Value::Object(_) => violations.add(path(), "must not be an object"),
        _ => {}
    }
}

/// The problem of an answer that cannot be cut.
fn too_large(operation: &Operation, length: usize) -> Problem {
    let size = format!("the answer has {length} bytes, more than {MAX_ANSWER_BYTES}");
    if !operation.method.is_safe() {
        return Problem::bad_request(format!("done, but {size}: send fewer entries at once"));
    }
    if operation.takes("granularity") {
        return Problem::invalid_field(
            "granularity",
            format!("must be coarser, or the window shorter: {size}"),
        );
    }
    if operation.takes("limit") {
        return Problem::invalid_field("limit", format!("must be lower: {size}"));
    }
    Problem::bad_request(format!("{size}: use the REST API"))
}
