//! The kinds of problems. Constructors, bodies and the OpenAPI document follow from this table.

use salvo::http::StatusCode;

#[derive(Debug)]
pub struct ProblemKind {
    pub code: &'static str,
    pub status: StatusCode,
    pub advice: Option<Advice>,
    /// For the OpenAPI document.
    pub description: &'static str,
}

/// A response header that tells the client what it can do.
#[derive(Debug, Clone, Copy)]
pub enum Advice {
    /// `WWW-Authenticate: Bearer`
    Authenticate,
    /// `Retry-After`, in seconds.
    RetryAfter(u64),
}

impl ProblemKind {
    /// The reason phrase of the status.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or_default()
    }

    pub fn urn(&self) -> String {
        format!("urn:tidemark:error:{}", self.code.to_ascii_lowercase().replace('_', "-"))
    }
}

const AUTHENTICATE: Option<Advice> = Some(Advice::Authenticate);
const RETRY_AFTER_MINUTE: Option<Advice> = Some(Advice::RetryAfter(60));
const RETRY_AFTER_SECOND: Option<Advice> = Some(Advice::RetryAfter(1));

macro_rules! problem_kinds {
    ($($code:ident: $status:ident, $advice:expr, $description:literal;)*) => {
        $(pub static $code: ProblemKind = ProblemKind {
            code: stringify!($code),
            status: StatusCode::$status,
            advice: $advice,
            description: $description,
        };)*

        /// All kinds; of those with the same status, the most general one is first.
        pub static ALL: &[&ProblemKind] = &[$(&$code),*];
    };
}

problem_kinds! {
    BAD_REQUEST: BAD_REQUEST, None, "The body is not valid JSON, or the query string is not percent-encoded UTF-8.";
    UNAUTHORIZED: UNAUTHORIZED, AUTHENTICATE, "The API key is missing, unknown or expired.";
    FORBIDDEN: FORBIDDEN, None, "The API key or the organization's subscription is not active.";
    INSUFFICIENT_SCOPE: FORBIDDEN, None, "The API key lacks the `write` scope.";
    QUOTA_EXCEEDED: FORBIDDEN, None, "The organization has reached its account quota.";
    NOT_FOUND: NOT_FOUND, None, "The organization has no such resource.";
    METHOD_NOT_ALLOWED: METHOD_NOT_ALLOWED, None, "The path does not support the method.";
    NOT_ACCEPTABLE: NOT_ACCEPTABLE, None, "`Accept` excludes the content type of the response.";
    CONFLICT: CONFLICT, None, "The request conflicts with an existing resource.";
    PAYLOAD_TOO_LARGE: PAYLOAD_TOO_LARGE, None, "The body exceeds 1 MiB.";
    UNSUPPORTED_MEDIA_TYPE: UNSUPPORTED_MEDIA_TYPE, None, "The body is not sent as `application/json`.";
    VALIDATION_ERROR: UNPROCESSABLE_ENTITY, None, "Some fields are invalid. `errors` lists the first 100.";
    RATE_LIMITED: TOO_MANY_REQUESTS, RETRY_AFTER_MINUTE,
        "The API key has used up its requests for this minute. Retry after `Retry-After` seconds.";
    INTERNAL_ERROR: INTERNAL_SERVER_ERROR, None, "An internal error occurred. Report the request id if it persists.";
    UPSTREAM_ERROR: BAD_GATEWAY, None, "The platform did not respond.";
    SERVICE_UNAVAILABLE: SERVICE_UNAVAILABLE, RETRY_AFTER_SECOND,
        "A database is unavailable or read-only, or a concurrent change conflicts. Retry after `Retry-After` seconds.";
}
