//! Builds the document: the paths of the router, completed with what all operations share, such as error responses,
//! headers and examples.

use salvo::Router;
use salvo_oapi::OpenApi;
use serde_json::{Map, Value, json};

use super::example::generate_example;
use super::headers::{add_headers, request_headers, response_headers};
use super::problems::{ProblemResponse, problem_responses, referenced_responses};
use super::schema::{named_schemas, remove_null_of_optional_fields, simplify};

/// The parts of the document that describe the service as a whole.
pub struct ApiInfo {
    pub title: &'static str,
    pub version: &'static str,
    pub description: &'static str,
    /// Names and descriptions.
    pub tags: &'static [(&'static str, &'static str)],
}

/// Routes below a base URL.
pub struct RouteGroup {
    pub router: Router,
    pub needs_key: bool,
    pub server: &'static str,
}

const SECURITY_SCHEME: &str = "api_key";

/// Builds the document of the routes. The base URL of the first group applies unless a path has its own.
pub fn build_document(groups: &[RouteGroup], info: &ApiInfo) -> Value {
    let problems = problem_responses();
    let (mut paths, server) = (Map::new(), groups.first().map(|group| group.server));
    for RouteGroup { router, needs_key, server: own_server } in groups {
        let document = serde_json::to_value(OpenApi::new(info.title, info.version).merge_router(router));
        let Ok(Value::Object(mut document)) = document else { continue };
        let Some(Value::Object(items)) = document.remove("paths") else { continue };
        for (path, mut item) in items {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                if let Some(operation) = operation.as_object_mut() {
                    complete(operation, method, *needs_key, &problems);
                }
            }
            if Some(*own_server) != server {
                item["servers"] = json!([{"url": own_server}]);
            }
            merge_path(&mut paths, path, item);
        }
    }
    let shared_responses = referenced_responses(&paths, &problems);
    let mut schemas = named_schemas();
    schemas.values_mut().for_each(remove_null_of_optional_fields);
    schemas.values_mut().for_each(simplify);
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations.filter(|operation| operation.is_object()) {
        if let Some(responses) = operation.get_mut("responses") {
            remove_null_of_optional_fields(responses);
            simplify(responses);
        }
        add_examples(operation, &schemas);
    }
    let tags: Vec<_> =
        info.tags.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": info.title, "version": info.version, "description": info.description},
        "servers": [{"url": server}],
        "security": [{SECURITY_SCHEME: []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                SECURITY_SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "tdm_<32 characters>_<checksum>",
                    "description": "The API key of an organization.",
                },
            },
            "parameters": request_headers(),
            "headers": response_headers(),
            "responses": shared_responses,
            "schemas": schemas,
        },
    })
}

fn merge_path(paths: &mut Map<String, Value>, path: String, item: Value) {
    match (paths.get_mut(&path).and_then(Value::as_object_mut), item) {
        (Some(existing), Value::Object(item)) => existing.extend(item),
        (_, item) => drop(paths.insert(path, item)),
    }
}

/// Adds what follows from an operation's method and inputs: error responses, headers and common parameters.
fn complete(operation: &mut Map<String, Value>, method: &str, needs_key: bool, problems: &[ProblemResponse]) {
    if !needs_key {
        operation.insert("security".to_owned(), json!([]));
    }
    let is_get = method == "get";
    let has_etag = is_get && !operation.get("responses").is_some_and(is_sent_in_parts);
    let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    let has_body = operation.contains_key("requestBody");
    let is_replayable = parameters
        .iter()
        .any(|parameter| parameter.get("name").is_some_and(|name| name == "Idempotency-Key"));
    let mut statuses = vec![400, 406, 500, 503];
    if needs_key {
        statuses.extend([401, 403, 429]);
    }
    if !is_get {
        statuses.extend([413, 415]);
    }
    if has_body || !parameters.is_empty() {
        statuses.push(422);
    }
    if takes_existing_id(operation, &parameters) {
        statuses.push(404);
    }
    if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
        for problem in problems {
            problem.add_to(responses, statuses.contains(&problem.status()));
        }
        if has_etag {
            responses.insert("304".to_owned(), json!({"description": "The cached response is current."}));
        }
        for (status, response) in responses.iter_mut() {
            add_headers(response, status, is_get, needs_key, is_replayable);
        }
    }
    let mut all = vec![json!({"$ref": "#/components/parameters/RequestId"})];
    if has_etag {
        all.push(json!({"$ref": "#/components/parameters/IfNoneMatch"}));
    }
    all.extend(parameters);
    operation.insert("parameters".to_owned(), all.into());
}

/// Whether the successful response is sent while it is produced, and so has no tag.
fn is_sent_in_parts(responses: &Value) -> bool {
    ["text~1csv", "application~1vnd.apache.parquet", "text~1event-stream"]
        .iter()
        .any(|content_type| responses.pointer(&format!("/200/content/{content_type}")).is_some())
}

/// Whether the operation takes an id that has to exist, also if a filter takes several. Missing ids of lists of `…_ids` are
/// reported in `not_found`.
fn takes_existing_id(operation: &Map<String, Value>, parameters: &[Value]) -> bool {
    let is_id = |schema: &Value| schema.get("format").is_some_and(|format| format == "uuid");
    let is_in_path = |parameter: &Value| parameter.get("in").is_some_and(|location| location == "path");
    let is_named_id = |parameter: &Value| {
        parameter.get("name").and_then(Value::as_str).is_some_and(|name| name.ends_with("_id"))
    };
    let body = operation.get("requestBody");
    let fields = body.and_then(|body| body.pointer("/content/application~1json/schema/properties"));
    parameters.iter().any(|parameter| is_in_path(parameter) || is_named_id(parameter))
        || fields.and_then(Value::as_object).is_some_and(|fields| fields.values().any(is_id))
}

/// Adds an example to every response of an operation.
fn add_examples(operation: &mut Value, schemas: &Map<String, Value>) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for response in responses.into_iter().flat_map(|responses| responses.values_mut()) {
        let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) else { continue };
        for media in content.values_mut() {
            if let (Some(schema), None) = (media.get("schema"), media.get("example")) {
                media["example"] = generate_example(schema, schemas);
            }
        }
    }
}
