//! Error responses: RFC 9457 problems, with a constructor for each kind. Causes are logged here, once, and never sent.

use std::fmt;

use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem_kind::{self as kind, Advice, ProblemKind};
use crate::http::input::violations::{Violation, Violations};
use crate::http::request_id::{RequestId, loggable_path};
use crate::model::limits::MAX_BODY_BYTES;
use crate::store::{self, Retryable};

/// Retry advice while storage is full, which an operator has to resolve.
const STORAGE_FULL_RETRY_SECONDS: u64 = 30;

/// Like [`STORAGE_FULL_RETRY_SECONDS`], for a disk of this process.
const FULL_DISK_RETRY_SECONDS: u64 = 60;

/// How many violations a response lists, so that it is not much longer than the request.
const MAX_VIOLATIONS: usize = 100;
/// Like [`MAX_VIOLATIONS`], for one of many items.
const MAX_ITEM_VIOLATIONS: usize = 10;

/// Retry advice while an organization has too many exports, which take seconds to minutes.
const EXPORT_RETRY_SECONDS: u64 = 10;

/// An error response.
#[derive(Debug)]
pub struct Problem {
    kind: &'static ProblemKind,
    detail: String,
    /// The first violations.
    errors: Vec<Violation>,
    /// Number of the violations that `errors` leaves out.
    more_errors: usize,
    /// Overrides the advice of the kind.
    retry_after: Option<u64>,
    /// For the log only.
    cause: Option<String>,
    conflict: Option<Conflict>,
}

/// How a transaction failed because of a concurrent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conflict {
    /// Gone in a moment: the transaction was aborted, or waits for one that may be.
    Momentary,
    LockTimeout,
}

/// Another form of the body than RFC 9457, from the depot.
#[derive(Debug, Clone, Copy)]
pub struct ProblemFormat {
    pub content_type: &'static str,
    pub body: fn(&Problem) -> serde_json::Result<Vec<u8>>,
}

impl Problem {
    fn new(kind: &'static ProblemKind, detail: impl Into<String>) -> Self {
        Problem {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            more_errors: 0,
            retry_after: None,
            cause: None,
            conflict: None,
        }
    }

    fn caused_by(kind: &'static ProblemKind, detail: impl Into<String>, cause: impl fmt::Display) -> Self {
        Problem { cause: Some(cause.to_string()), ..Self::new(kind, detail) }
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(&kind::BAD_REQUEST, detail)
    }

    /// A missing, malformed, unknown or expired key; the response does not tell which.
    pub fn unauthorized() -> Self {
        let detail = "a valid API key is required: send it as Authorization: Bearer <key>";
        Self::new(&kind::UNAUTHORIZED, detail)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(&kind::FORBIDDEN, detail)
    }

    pub fn insufficient_scope(detail: impl Into<String>) -> Self {
        Self::new(&kind::INSUFFICIENT_SCOPE, detail)
    }

    pub fn quota_exceeded(detail: impl Into<String>) -> Self {
        Self::new(&kind::QUOTA_EXCEEDED, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(&kind::NOT_FOUND, detail)
    }

    pub fn method_not_allowed(detail: impl Into<String>) -> Self {
        Self::new(&kind::METHOD_NOT_ALLOWED, detail)
    }

    /// The client does not accept the content type of the response.
    pub fn not_acceptable(content_type: &str) -> Self {
        Self::new(&kind::NOT_ACCEPTABLE, format!("the response is {content_type} only: accept it"))
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(&kind::CONFLICT, detail)
    }

    /// The first request with an idempotency key is still running. It may also be an aborted attempt of this request, whose
    /// transaction ends a moment after its error.
    pub fn in_flight() -> Self {
        let detail = "the first request with this Idempotency-Key is still in flight";
        Problem { conflict: Some(Conflict::Momentary), ..Self::conflict(detail) }
    }

    pub fn payload_too_large() -> Self {
        let detail = format!("the body exceeds {MAX_BODY_BYTES} bytes: split the request");
        Self::new(&kind::PAYLOAD_TOO_LARGE, detail)
    }

    pub fn file_too_large(max_bytes: u64) -> Self {
        let detail = format!("the file exceeds {max_bytes} bytes: split it, or compress it");
        Self::new(&kind::PAYLOAD_TOO_LARGE, detail)
    }

    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(&kind::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    pub fn invalid(violations: Violations) -> Self {
        Self::invalid_with_limit(violations, MAX_VIOLATIONS)
    }

    /// The violations of one of many items.
    pub fn invalid_item(violations: Violations) -> Self {
        Self::invalid_with_limit(violations, MAX_ITEM_VIOLATIONS)
    }

    fn invalid_with_limit(violations: Violations, max: usize) -> Self {
        let mut errors = violations.into_vec();
        let count = errors.len();
        errors.truncate(max);
        let detail = match &errors[..] {
            [error] => format!("{} {}", error.field, error.message),
            errors if errors.len() < count => {
                format!("{count} fields are invalid: errors lists the first {max}")
            }
            errors => format!("{} fields are invalid: see errors", errors.len()),
        };
        Problem { more_errors: count - errors.len(), errors, ..Self::new(&kind::VALIDATION_ERROR, detail) }
    }

    pub fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut violations = Violations::default();
        violations.add(field, message);
        Self::invalid(violations)
    }

    pub fn rate_limited(detail: impl Into<String>, seconds: u64) -> Self {
        Self::new(&kind::RATE_LIMITED, detail).retry_after(seconds.max(1))
    }

    pub fn internal(cause: impl fmt::Display) -> Self {
        Problem { cause: Some(cause.to_string()), ..Self::panicked() }
    }

    /// A handler panicked; the panic hook has logged the cause.
    pub fn panicked() -> Self {
        Self::new(&kind::INTERNAL_ERROR, "internal error: report the request id if it persists")
    }

    pub fn upstream(detail: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::caused_by(&kind::UPSTREAM_ERROR, detail, cause)
    }

    pub fn unavailable(cause: impl fmt::Display) -> Self {
        Self::caused_by(&kind::SERVICE_UNAVAILABLE, "a database is unavailable: retry shortly", cause)
    }

    pub fn shutting_down() -> Self {
        let detail = "this process is shutting down: retry on a new connection";
        Self::new(&kind::SERVICE_UNAVAILABLE, detail)
    }

    pub fn too_many_exports() -> Self {
        let detail = "too many exports of this organization at once: wait until one of them has ended";
        Self::new(&kind::SERVICE_UNAVAILABLE, detail).retry_after(EXPORT_RETRY_SECONDS)
    }

    pub fn too_many_uploads() -> Self {
        let detail = "too many uploads of this organization at once: wait until one of them is complete";
        Self::new(&kind::SERVICE_UNAVAILABLE, detail).retry_after(EXPORT_RETRY_SECONDS)
    }

    /// The disk is nearly full, which an operator has to resolve.
    pub fn no_space_for_files() -> Self {
        let detail = "there is too little space for uploads: retry later";
        Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, "too little free space for uploads")
            .retry_after(FULL_DISK_RETRY_SECONDS)
    }

    pub fn files_unavailable(cause: impl fmt::Display) -> Self {
        Self::caused_by(&kind::SERVICE_UNAVAILABLE, "uploads are unavailable: retry later", cause)
            .retry_after(FULL_DISK_RETRY_SECONDS)
    }

    pub fn history_removed() -> Self {
        let detail = "the organization's retention just removed history: export again";
        Self::new(&kind::SERVICE_UNAVAILABLE, detail).retry_after(EXPORT_RETRY_SECONDS)
    }

    pub fn too_many_batches() -> Self {
        let detail = "too many batches of this organization at once: send one after the other";
        Self::new(&kind::SERVICE_UNAVAILABLE, detail)
    }

    fn transaction_conflict(error: &store::Error) -> Self {
        let conflict = if error.is_lock_unavailable() { Conflict::LockTimeout } else { Conflict::Momentary };
        let detail = "conflict with a concurrent change: retry shortly";
        let problem = Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, error);
        Problem { conflict: Some(conflict), ..problem }
    }

    const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Whether Postgres has a full disk or is read-only.
    pub fn rejects_writes(&self) -> bool {
        self.retry_after == Some(STORAGE_FULL_RETRY_SECONDS)
    }

    pub const fn status(&self) -> StatusCode {
        self.kind.status
    }

    pub const fn code(&self) -> &'static str {
        self.kind.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub fn errors(&self) -> &[Violation] {
        &self.errors
    }

    /// The violations in one text, or the detail.
    pub fn message(&self) -> String {
        if self.errors.is_empty() {
            return self.detail.clone();
        }
        let errors = self.errors.iter().map(|error| format!("{} {}", error.field, error.message));
        let more = (self.more_errors > 0).then(|| format!("and {} more", self.more_errors));
        errors.chain(more).collect::<Vec<_>>().join("; ")
    }

    /// For the log only.
    pub(super) fn cause(&self) -> &str {
        self.cause.as_deref().unwrap_or(&self.detail)
    }

    fn log(&self, request_id: &str, path: &str) {
        let (status, path) = (self.kind.status.as_u16(), &*loggable_path(path));
        match &self.cause {
            _ if !self.kind.status.is_server_error() => {}
            Some(cause) if self.conflict.is_some() => {
                tracing::warn!(request_id, status, cause, path, "request conflicts with a concurrent change");
            }
            Some(cause) => tracing::error!(request_id, status, cause, path, "request failed"),
            None => tracing::debug!(request_id, status, path, "request rejected"),
        }
    }
}

impl Retryable for Problem {
    fn is_retryable(&self) -> bool {
        self.conflict == Some(Conflict::Momentary)
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if matches!(error, store::Error::TooManyQueries) {
            let detail =
                "no query could start within three seconds: send fewer requests at once, or retry shortly";
            return Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, error);
        }
        if error.is_write_conflict() {
            return Self::transaction_conflict(&error);
        }
        if error.rejects_writes() {
            let detail = "writes are unavailable: storage is full or read-only; reads still work";
            return Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, error)
                .retry_after(STORAGE_FULL_RETRY_SECONDS);
        }
        if error.exceeds_query_limit() {
            let detail = "a query exceeded its limit of time, memory or rows: narrow the window or the filters, or retry later";
            return Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, error);
        }
        if error.is_unavailable() || error.is_canceled() {
            return Self::unavailable(error);
        }
        match error {
            store::Error::NotFound(name) => Self::not_found(format!("the organization has no such {name}")),
            store::Error::Conflict(detail) | store::Error::Exists { detail, .. } => Self::conflict(detail),
            store::Error::QuotaExceeded(detail) => Self::quota_exceeded(detail),
            store::Error::Invalid { field, message } => Self::invalid_field(field, message),
            store::Error::Search(cause) => {
                let detail = "the search index cannot be read, and is rebuilt if it is damaged: retry later";
                Self::caused_by(&kind::SERVICE_UNAVAILABLE, detail, cause)
            }
            other => Self::internal(other),
        }
    }
}

impl From<postcard::Error> for Problem {
    fn from(error: postcard::Error) -> Self {
        Self::internal(format_args!("cannot encode a cursor: {error}"))
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(format_args!("cannot serialize a response or cache key: {error}"))
    }
}

/// An error response (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemBody<'a> {
    /// URN of the kind of problem: `urn:tidemark:error:` and the code in kebab case.
    #[schemars(example = &"urn:tidemark:error:not-found")]
    r#type: String,
    /// Reason phrase of the status.
    #[schemars(example = &"Not Found")]
    title: &'a str,
    /// HTTP status.
    #[schemars(example = 404)]
    status: u16,
    /// Explanation and advice, for people.
    #[schemars(example = &"the organization has no such account")]
    detail: &'a str,
    /// Kind of problem, for programs.
    #[schemars(example = &"NOT_FOUND")]
    code: &'a str,
    /// Path of the request.
    #[schemars(example = &"/v2/accounts/0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65")]
    instance: &'a str,
    /// The `X-Request-ID` of the response.
    #[schemars(example = &"0198d1f2-7c11-7e08-8f43-5b1f0f6f2a90")]
    request_id: &'a str,
    /// The first 100 violations; with 422 only. `detail` counts all.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl EndpointOutRegister for Problem {
    /// Adds nothing: the error responses of an operation follow from its method and inputs.
    fn register(_components: &mut Components, _operation: &mut Operation) {}
}

#[async_trait]
impl Writer for Problem {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let (request_id, path) = (RequestId::from_depot(depot), req.uri().path());
        self.log(request_id, path);
        let (content_type, body) = match depot.get_typed::<ProblemFormat>() {
            Ok(format) => (format.content_type, (format.body)(&self)),
            Err(_) => {
                let body = ProblemBody {
                    r#type: self.kind.urn(),
                    title: self.kind.title(),
                    status: self.kind.status.as_u16(),
                    detail: &self.detail,
                    code: self.kind.code,
                    instance: path,
                    request_id,
                    errors: &self.errors,
                };
                ("application/problem+json", serde_json::to_vec(&body))
            }
        };
        res.status_code(self.kind.status);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.kind.advice {
            Some(Advice::Authenticate) => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Some(Advice::RetryAfter(seconds)) => {
                let seconds = self.retry_after.unwrap_or(seconds);
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            None => {}
        }
        res.body(ResBody::Once(body.unwrap_or_default().into()));
    }
}
