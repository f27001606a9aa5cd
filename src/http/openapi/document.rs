//! Puts the document together: the paths as the router has them, and around them what every operation shares: the
//! ways in which it can fail, its headers, conditional requests, and examples.

use salvo::Router;
use salvo_oapi::OpenApi;
use serde_json::{Map, Value, json};

use super::definitions;
use super::example::example;
use super::problems::{PROBLEMS, Shared, referenced};

/// What the document says about the service as a whole.
pub struct Info {
    pub title: &'static str,
    pub version: &'static str,
    pub description: &'static str,
    /// Each group of operations with what it is about.
    pub tags: &'static [(&'static str, &'static str)],
    /// Where the paths begin.
    pub server: &'static str,
}

const KEY: &str = "api_key";

/// Makes the document of the routes below the server's path. Routes that ask for a key are told by `private`.
pub fn document(public: &Router, private: &Router, info: &Info) -> Value {
    let mut paths = Map::new();
    for (routes, needs_key) in [(public, false), (private, true)] {
        let part = serde_json::to_value(OpenApi::new(info.title, info.version).merge_router(routes));
        let Ok(Value::Object(mut part)) = part else { continue };
        let Some(Value::Object(part)) = part.remove("paths") else { continue };
        for (path, mut item) in part {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                if let Some(operation) = operation.as_object_mut() {
                    complete(operation, method, needs_key);
                }
            }
            merge(&mut paths, path, item);
        }
    }
    let failures = referenced(&paths);
    let schemas = definitions();
    for operation in operations(&mut paths) {
        add_examples(operation, &schemas);
    }
    let tags: Vec<_> =
        info.tags.iter().map(|(name, about)| json!({"name": name, "description": about})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": info.title, "version": info.version, "description": info.description},
        "servers": [{"url": info.server}],
        "security": [{KEY: []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                KEY: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "tdm_<32 characters>_<checksum>",
                    "description": "The API key of an organization.",
                },
            },
            "parameters": request_headers(),
            "headers": response_headers(),
            "responses": failures,
            "schemas": schemas,
        },
    })
}

fn merge(paths: &mut Map<String, Value>, path: String, item: Value) {
    match (paths.get_mut(&path).and_then(Value::as_object_mut), item) {
        (Some(known), Value::Object(item)) => known.extend(item),
        (_, item) => drop(paths.insert(path, item)),
    }
}

fn operations(paths: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    paths.values_mut().filter_map(Value::as_object_mut).flat_map(|item| item.values_mut())
}

/// Adds to an operation what follows from its method and its parts.
fn complete(operation: &mut Map<String, Value>, method: &str, needs_key: bool) {
    if !needs_key {
        operation.insert("security".to_owned(), json!([]));
    }
    let reads = method == "get";
    let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    let has_body = operation.contains_key("requestBody");
    let mut statuses = vec!["400", "406", "500", "503"];
    if needs_key {
        statuses.extend(["401", "403", "429"]);
    }
    if !reads {
        statuses.extend(["413", "415"]);
    }
    if has_body || !parameters.is_empty() {
        statuses.push("422");
    }
    if names_a_resource(operation, &parameters) {
        statuses.push("404");
    }
    if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
        for shared in PROBLEMS {
            fail(responses, shared, statuses.contains(&shared.status));
        }
        if reads {
            responses.insert("304".to_owned(), json!({"description": "The client has it already."}));
        }
        for (status, response) in responses.iter_mut() {
            add_headers(response, status, reads, needs_key);
        }
    }
    let mut all = vec![json!({"$ref": "#/components/parameters/RequestId"})];
    if reads {
        all.push(json!({"$ref": "#/components/parameters/IfNoneMatch"}));
    }
    all.extend(parameters);
    operation.insert("parameters".to_owned(), all.into());
}

/// Whether an id in the path, in a filter or in the body may be none of the organization's. Ids in lists are told
/// as not found in the answer instead.
fn names_a_resource(operation: &Map<String, Value>, parameters: &[Value]) -> bool {
    let single = |schema: &Value| schema.get("format").is_some_and(|format| format == "uuid");
    let in_path = |parameter: &Value| parameter.get("in").is_some_and(|place| place == "path");
    let body = operation.get("requestBody");
    let body = body.and_then(|body| body.pointer("/content/application~1json/schema/properties"));
    parameters.iter().any(|parameter| in_path(parameter) || parameter.get("schema").is_some_and(single))
        || body.and_then(Value::as_object).is_some_and(|body| body.values().any(single))
}

/// Gives a status its problem, unless the operation has an answer of its own under it.
fn fail(responses: &mut Map<String, Value>, shared: &Shared, applies: bool) {
    match responses.get_mut(shared.status) {
        Some(own) if own.get("content").is_some() => {}
        // Its own words, the common form.
        Some(own) => {
            let detail = own.get("description").and_then(Value::as_str).unwrap_or(shared.detail);
            own["content"] = shared.content(detail);
        }
        None if applies => {
            drop(responses.insert(shared.status.to_owned(), json!({"$ref": shared.reference()})))
        }
        None => {}
    }
}

pub(super) fn header(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}

fn add_headers(response: &mut Value, status: &str, reads: bool, needs_key: bool) {
    if response.get("$ref").is_some() {
        return;
    }
    let mut headers = Map::new();
    headers.insert("X-Request-ID".to_owned(), header("RequestId"));
    if needs_key {
        for (name, own) in RATE_HEADERS {
            headers.insert((*name).to_owned(), header(own));
        }
    }
    if reads && matches!(status, "200" | "304") {
        headers.insert("ETag".to_owned(), header("ETag"));
        headers.insert("Cache-Control".to_owned(), header("CacheControl"));
    }
    if reads && response.pointer("/content/application~1json/schema/properties/pagination").is_some() {
        headers.insert("Link".to_owned(), header("Link"));
    }
    match status {
        "201" => drop(headers.insert("Location".to_owned(), header("Location"))),
        "429" | "503" => drop(headers.insert("Retry-After".to_owned(), header("RetryAfter"))),
        _ => {}
    }
    response["headers"] = headers.into();
}

const RATE_HEADERS: &[(&str, &str)] = &[
    ("X-RateLimit-Limit", "RateLimitLimit"),
    ("X-RateLimit-Remaining", "RateLimitRemaining"),
    ("X-RateLimit-Reset", "RateLimitReset"),
];

fn request_headers() -> Value {
    let of = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    json!({
        "RequestId": of(
            "X-Request-ID",
            "A name for the request, kept when it is 1 to 128 characters of `A-Z a-z 0-9 . _ - : /`, else replaced.",
        ),
        "IfNoneMatch": of("If-None-Match", "The `ETag` that the client has: the answer is 304 when it still fits."),
    })
}

fn response_headers() -> Value {
    let of = |kind: &str, description: &str| json!({"description": description, "schema": {"type": kind}});
    json!({
        "RequestId": of("string", "The name of the request, for questions about it."),
        "RateLimitLimit": of("integer", "How many requests the key may make in a clock minute."),
        "RateLimitRemaining": of("integer", "How many of them are left in this one."),
        "RateLimitReset": of("integer", "The Unix second at which the minute ends."),
        "RetryAfter": of("integer", "Seconds to wait before the next try."),
        "ETag": of("string", "The version of the answer, for `If-None-Match`."),
        "CacheControl": of("string", "`private, no-cache`: keep it, and ask whether it still holds."),
        "Link": of("string", "The first page, and the next one where there is one, as absolute URLs (RFC 8288)."),
        "Location": of("string", "The path of what was made."),
        "Authenticate": of("string", "`Bearer`."),
    })
}

/// Gives every answer of an operation an example.
fn add_examples(operation: &mut Value, schemas: &Map<String, Value>) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for response in responses.into_iter().flat_map(|responses| responses.values_mut()) {
        let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) else { continue };
        for media in content.values_mut() {
            if let (Some(schema), None) = (media.get("schema"), media.get("example")) {
                media["example"] = example(schema, schemas);
            }
        }
    }
}
