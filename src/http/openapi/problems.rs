//! The problems that answers can be, as the document shows them: described once, referred to by every operation that can
//! meet them.

use serde_json::{Map, Value, json};

use super::document::header;
use super::example::example;
use super::{definitions, schema_of};
use crate::http::output::problem::{Body, urn};

/// A problem that is the same wherever it happens.
pub(super) struct Shared {
    pub(super) status: &'static str,
    name: &'static str,
    code: &'static str,
    title: &'static str,
    pub(super) detail: &'static str,
}

const fn shared(
    status: &'static str,
    name: &'static str,
    code: &'static str,
    title: &'static str,
    detail: &'static str,
) -> Shared {
    Shared { status, name, code, title, detail }
}

pub(super) const PROBLEMS: &[Shared] = &[
    shared(
        "400",
        "BadRequest",
        "BAD_REQUEST",
        "Bad Request",
        "The body is no JSON, or the query string does not decode.",
    ),
    shared("401", "Unauthorized", "UNAUTHORIZED", "Unauthorized", "There is no valid key with the request."),
    shared(
        "403",
        "Forbidden",
        "FORBIDDEN",
        "Forbidden",
        "The key or the subscription is not active (`FORBIDDEN`), the key lacks the scope (`INSUFFICIENT_SCOPE`), or \
         the organization has as many accounts as it may have (`QUOTA_EXCEEDED`).",
    ),
    shared("404", "NotFound", "NOT_FOUND", "Not Found", "The organization has no such resource."),
    shared("406", "NotAcceptable", "NOT_ACCEPTABLE", "Not Acceptable", "`Accept` leaves no room for JSON."),
    shared("409", "Conflict", "CONFLICT", "Conflict", "It conflicts with what is there."),
    shared(
        "413",
        "PayloadTooLarge",
        "PAYLOAD_TOO_LARGE",
        "Payload Too Large",
        "The body is longer than 1 MiB.",
    ),
    shared(
        "415",
        "UnsupportedMediaType",
        "UNSUPPORTED_MEDIA_TYPE",
        "Unsupported Media Type",
        "The body is not sent as `application/json`.",
    ),
    shared(
        "422",
        "ValidationError",
        "VALIDATION_ERROR",
        "Unprocessable Entity",
        "Some fields are not valid; `errors` names all of them.",
    ),
    shared(
        "429",
        "RateLimited",
        "RATE_LIMITED",
        "Too Many Requests",
        "The key has made as many requests as it may in this minute; `Retry-After` says when it may go on.",
    ),
    shared(
        "500",
        "InternalError",
        "INTERNAL_ERROR",
        "Internal Server Error",
        "Something went wrong on our side.",
    ),
    shared("502", "UpstreamError", "UPSTREAM_ERROR", "Bad Gateway", "The platform could not be asked."),
    shared(
        "503",
        "ServiceUnavailable",
        "SERVICE_UNAVAILABLE",
        "Service Unavailable",
        "A store cannot be reached or takes no changes, or another change was in the way; `Retry-After` says when to try \
         again.",
    ),
];

impl Shared {
    pub(super) fn reference(&self) -> String {
        format!("#/components/responses/{}", self.name)
    }

    /// The form of the problem, with an example that says why.
    pub(super) fn content(&self, detail: &str) -> Value {
        let schema = schema_of::<Body<'_>>();
        let mut body = example(&schema, &definitions());
        body["type"] = json!(urn(self.code));
        body["title"] = json!(self.title);
        body["status"] = json!(self.status.parse::<u16>().unwrap_or_default());
        body["code"] = json!(self.code);
        body["detail"] = json!(detail);
        if self.status != "422"
            && let Some(body) = body.as_object_mut()
        {
            body.remove("errors");
        }
        json!({"application/problem+json": {"schema": schema, "example": body}})
    }

    fn response(&self) -> Value {
        let mut headers = json!({"X-Request-ID": header("RequestId")});
        if matches!(self.status, "429" | "503") {
            headers["Retry-After"] = header("RetryAfter");
        }
        if self.status == "401" {
            headers["WWW-Authenticate"] = header("Authenticate");
        }
        json!({"description": self.detail, "headers": headers, "content": self.content(self.detail)})
    }
}

/// The problems that some operation refers to, by their names.
pub(super) fn referenced(paths: &Map<String, Value>) -> Map<String, Value> {
    let operations = paths.values().filter_map(Value::as_object).flat_map(Map::values);
    let responses = operations.filter_map(|operation| operation.get("responses")?.as_object());
    let references: Vec<_> =
        responses.flat_map(Map::values).filter_map(|response| response.get("$ref")?.as_str()).collect();
    let used = PROBLEMS.iter().filter(|shared| references.contains(&shared.reference().as_str()));
    used.map(|shared| (shared.name.to_owned(), shared.response())).collect()
}
