//! Why a request was not done, as an RFC 9457 problem: one constructor for every kind of the contract, and the one
//! place that writes the body, in the form of the version that was asked. What went wrong inside is logged here, once,
//! and never told.

use std::fmt;

use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::input::fields::{Violation, Violations};
use crate::http::legacy::{Failure, is_legacy};
use crate::http::middleware::request_id::{self, RequestId};
use crate::store;

/// Seconds after which a client may try again what a store could not answer.
const RETRY_SECONDS: u64 = 1;
/// The same where somebody has to make room first.
const FULL_SECONDS: u64 = 30;

/// A request that was not done.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<Violation>,
    advice: Option<Advice>,
    /// For the log alone; none where nothing went wrong.
    cause: Option<String>,
    contention: Option<Contention>,
}

/// What it means that another change was in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contention {
    /// This one gave way, and may be made again at once.
    GaveWay,
    /// It waited for as long as it may.
    Waited,
}

/// What a problem's header tells the client to do.
#[derive(Debug, Clone, Copy)]
enum Advice {
    SendKey,
    /// Seconds to wait.
    RetryAfter(u64),
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Problem {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            advice: None,
            cause: None,
            contention: None,
        }
    }

    const fn advising(mut self, advice: Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", detail)
    }

    /// A missing, malformed, unknown or expired key; the answer does not say which.
    pub fn unauthorized() -> Self {
        let detail = "a valid API key is required: send it as Authorization: Bearer <key>";
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", detail).advising(Advice::SendKey)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail)
    }

    pub fn insufficient_scope(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "INSUFFICIENT_SCOPE", detail)
    }

    pub fn quota_exceeded(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "QUOTA_EXCEEDED", detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", detail)
    }

    pub fn method_not_allowed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail)
    }

    pub fn not_acceptable() -> Self {
        let detail = "this service answers in JSON alone: accept application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", detail)
    }

    pub fn payload_too_large(limit: usize) -> Self {
        let detail = format!("the body is longer than {limit} bytes: send less at once");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", detail)
    }

    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
    }

    pub fn invalid(violations: Violations) -> Self {
        let errors = violations.into_vec();
        let detail = match &errors[..] {
            [one] => format!("{} {}", one.field, one.message),
            several => format!("{} fields are not valid: see errors", several.len()),
        };
        Problem { errors, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_ERROR", detail) }
    }

    /// A single field that is not valid.
    pub fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut violations = Violations::default();
        violations.add(field, message);
        Self::invalid(violations)
    }

    pub fn rate_limited(detail: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail)
            .advising(Advice::RetryAfter(seconds.max(1)))
    }

    pub fn internal(cause: impl fmt::Display) -> Self {
        let detail = "something went wrong on our side: report the request id if it stays";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", detail).because(cause)
    }

    /// A handler panicked, which was logged where it did.
    pub fn panicked() -> Self {
        Problem { cause: None, ..Self::internal("") }
    }

    pub fn upstream(detail: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "UPSTREAM_ERROR", detail).because(cause)
    }

    pub fn unavailable(cause: impl fmt::Display) -> Self {
        let detail = "the service cannot reach one of its stores: try again shortly";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", detail)
            .advising(Advice::RetryAfter(RETRY_SECONDS))
            .because(cause)
    }

    /// Another change was in the way.
    fn contended(error: &store::Error) -> Self {
        let detail = "another change was in the way: try again shortly";
        let contention = if error.is_lock_unavailable() { Contention::Waited } else { Contention::GaveWay };
        let problem = Problem { detail: detail.to_owned(), ..Self::unavailable(error) };
        Problem { contention: Some(contention), ..problem }
    }

    /// A store has no room for changes, or only lets itself be read.
    fn full(cause: impl fmt::Display) -> Self {
        let detail =
            "the service takes no changes now, for a store has no room or may only be read: try again later";
        Problem { detail: detail.to_owned(), ..Self::unavailable(cause) }
            .advising(Advice::RetryAfter(FULL_SECONDS))
    }

    /// Whether it gave way to another change and may be made again from its start.
    pub(in crate::http) fn gave_way(&self) -> bool {
        self.contention == Some(Contention::GaveWay)
    }

    /// The process ends; others go on.
    pub fn stopping() -> Self {
        let detail = "this process is stopping: try again on another connection";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", detail)
            .advising(Advice::RetryAfter(RETRY_SECONDS))
    }

    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Everything that is wrong, in one text.
    fn sentence(&self) -> String {
        if self.errors.is_empty() {
            return self.detail.clone();
        }
        let errors: Vec<_> =
            self.errors.iter().map(|error| format!("{} {}", error.field, error.message)).collect();
        errors.join("; ")
    }

    /// The body in the form of the current version.
    fn body(&self, path: &str, request_id: &str) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&Body {
            r#type: urn(self.code),
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            instance: path,
            request_id,
            errors: &self.errors,
        })
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if matches!(error, store::Error::TooManyQueries) {
            let detail =
                "the organization asks more at once than can be answered in time: ask less at a time";
            return Problem { detail: detail.to_owned(), ..Problem::unavailable(error) };
        }
        if error.is_write_conflict() {
            return Problem::contended(&error);
        }
        if error.rejects_writes() {
            return Problem::full(error);
        }
        if error.is_unavailable() || error.is_canceled() {
            return Problem::unavailable(error);
        }
        match error {
            store::Error::NotFound(what) => {
                Problem::not_found(format!("the organization has no such {what}"))
            }
            store::Error::Conflict(detail) => Problem::conflict(detail),
            store::Error::QuotaExceeded(detail) => Problem::quota_exceeded(detail),
            store::Error::Invalid { field, message } => Problem::invalid_field(field, message),
            other => Problem::internal(other),
        }
    }
}

impl From<postcard::Error> for Problem {
    fn from(error: postcard::Error) -> Self {
        Problem::internal(format_args!("the question does not serialize: {error}"))
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Problem::internal(format_args!("the answer does not serialize: {error}"))
    }
}

/// Why a request was not done (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(in crate::http) struct Body<'a> {
    /// A URN of the kind of problem, `urn:tidemark:error:` and the code in kebab case.
    #[schemars(example = &"urn:tidemark:error:not-found")]
    r#type: String,
    /// The reason phrase of the status.
    #[schemars(example = &"Not Found")]
    title: &'a str,
    /// The status of the answer.
    #[schemars(example = 404)]
    status: u16,
    /// What happened and what to do, for people.
    #[schemars(example = &"the organization has no such account")]
    detail: &'a str,
    /// What happened, for programs.
    #[schemars(example = &"NOT_FOUND")]
    code: &'a str,
    /// The path of the request.
    #[schemars(example = &"/v2/accounts/0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65")]
    instance: &'a str,
    /// The `X-Request-ID` of the answer.
    #[schemars(example = &"0198d1f2-7c11-7e08-8f43-5b1f0f6f2a90")]
    request_id: &'a str,
    /// Everything that is not valid; with 422 only.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl EndpointOutRegister for Problem {
    /// Which problems a request can meet follows from its method and its parts; the document adds them.
    fn register(_components: &mut Components, _operation: &mut Operation) {}
}

/// The `type` of a problem.
pub(in crate::http) fn urn(code: &str) -> String {
    format!("urn:tidemark:error:{}", code.to_ascii_lowercase().replace('_', "-"))
}

#[async_trait]
impl Writer for Problem {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let request_id = RequestId::of(depot);
        if self.status.is_server_error() {
            let status = self.status.as_u16();
            let path = request_id::logged(req.uri().path());
            match &self.cause {
                Some(cause) if self.contention.is_some() => {
                    tracing::warn!(
                        request_id,
                        status,
                        cause,
                        path = &*path,
                        "another change was in the way of a request"
                    );
                }
                Some(cause) => tracing::error!(request_id, status, cause, path = &*path, "a request failed"),
                None => tracing::debug!(request_id, status, path = &*path, "a request was refused"),
            }
        }
        let path = req.uri().path();
        let (kind, body) = if is_legacy(path) {
            ("application/json", serde_json::to_vec(&Failure::new(&self.sentence())))
        } else {
            ("application/problem+json", self.body(path, request_id))
        };
        res.status_code(self.status);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.advice {
            Some(Advice::SendKey) => {
                drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
            Some(Advice::RetryAfter(seconds)) => {
                drop(headers.insert(RETRY_AFTER, HeaderValue::from(seconds)))
            }
            None => {}
        }
        res.body(ResBody::Once(body.unwrap_or_default().into()));
    }
}
