//! The headers that requests and responses share.

use serde_json::{Value, json};

use crate::http::output::problem_kind::{ALL, Advice, ProblemKind};

const RATE_LIMIT_HEADERS: [(&str, &str); 3] = [
    ("X-RateLimit-Limit", "RateLimitLimit"),
    ("X-RateLimit-Remaining", "RateLimitRemaining"),
    ("X-RateLimit-Reset", "RateLimitReset"),
];

/// Returns references to response headers, from their names and components.
pub(super) fn header_references<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let reference = |component: &str| json!({"$ref": format!("#/components/headers/{component}")});
    headers.into_iter().map(|(name, component)| (name, reference(component))).collect()
}

/// Returns the name and the component of the header that carries the advice of a problem.
pub(super) fn advice_header(kind: &ProblemKind) -> Option<(&'static str, &'static str)> {
    Some(match kind.advice? {
        Advice::Authenticate => ("WWW-Authenticate", "Authenticate"),
        Advice::RetryAfter(_) => ("Retry-After", "RetryAfter"),
    })
}

/// Adds the headers of a response, unless it is a reference.
pub(super) fn add_headers(
    response: &mut Value,
    status: &str,
    is_get: bool,
    needs_key: bool,
    is_replayable: bool,
) {
    if response.get("$ref").is_some() {
        return;
    }
    let mut headers = vec![("X-Request-ID", "RequestId")];
    if needs_key {
        headers.extend(RATE_LIMIT_HEADERS);
    }
    if is_get && matches!(status, "200" | "304") {
        let has = |content_type: &str| response.pointer(&format!("/content/{content_type}")).is_some();
        if has("text~1csv") || has("application~1vnd.apache.parquet") {
            headers.push(("Content-Disposition", "ContentDisposition"));
        } else if !has("text~1event-stream") {
            headers.push(("ETag", "ETag"));
        }
        headers.push(("Cache-Control", "CacheControl"));
    }
    if is_get && response.pointer("/content/application~1json/schema/properties/pagination").is_some() {
        headers.push(("Link", "Link"));
    }
    let description = response["description"].as_str().unwrap_or_default();
    if status.starts_with('2') && description.contains("`Location`") {
        headers.push(("Location", "Location"));
    }
    if is_replayable && status.starts_with('2') {
        headers.push(("Idempotent-Replayed", "IdempotentReplayed"));
    }
    let problem = ALL.iter().find(|kind| kind.status.as_str() == status);
    headers.extend(problem.and_then(|kind| advice_header(kind)));
    response["headers"] = header_references(headers);
}

pub(super) fn request_headers() -> Value {
    let header = |name: &str, description: &str| {
        let schema = json!({"type": "string"});
        json!({"name": name, "in": "header", "description": description, "schema": schema})
    };
    json!({
        "RequestId": header(
            "X-Request-ID",
            "Request id of your choice: 1 to 128 characters of `A-Z a-z 0-9 . _ - : /`. Any other is replaced.",
        ),
        "IfNoneMatch": header("If-None-Match", "`ETag` of a cached response. If it is still current, the response is 304."),
    })
}

pub(super) fn response_headers() -> Value {
    let header = |kind: &str, description: &str| json!({"description": description, "required": true, "schema": {"type": kind}});
    json!({
        "RequestId": header("string", "Request id. Quote it when you report a problem."),
        "RateLimitLimit": header("integer", "Requests per clock minute that the key may make."),
        "RateLimitRemaining": header("integer", "Requests left in the current minute."),
        "RateLimitReset": header("integer", "Unix time in seconds at which the current minute ends."),
        "RetryAfter": header("integer", "Seconds to wait before the next attempt."),
        "ETag": header("string", "Version of the response, for `If-None-Match`."),
        "ContentDisposition": header("string", "`attachment` with the name of the file."),
        "CacheControl": header("string", "`private, no-cache`: cache the response, but revalidate it before use."),
        "Link": header("string", "Absolute URLs of the first page and, if there is one, of the next page (RFC 8288)."),
        "Location": header("string", "Path of the new resource."),
        "Authenticate": header("string", "`Bearer`."),
        "IdempotentReplayed": {
            "description": "`true` if this is the first response under the `Idempotency-Key`, sent again; otherwise absent.",
            "schema": {"type": "boolean"},
        },
    })
}
