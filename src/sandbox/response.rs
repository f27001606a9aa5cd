//! How an answer leaves the sandbox: as its platform would send it, or broken in the way that was ordered.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use salvo::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use salvo::http::{Request, Response, StatusCode};
use serde_json::Value;

use super::world::{Fault, World};
use crate::model::platform::Platform;

/// An answer before it is sent.
#[derive(Debug, Clone)]
pub struct JsonResponse {
    pub status: StatusCode,
    pub body: Value,
    pub headers: Vec<(&'static str, String)>,
}

impl JsonResponse {
    /// An answer of this status without headers of its own.
    pub fn new(status: StatusCode, body: Value) -> Self {
        JsonResponse { status, body, headers: Vec::new() }
    }

    /// A good answer.
    pub fn ok(body: Value) -> Self {
        JsonResponse::new(StatusCode::OK, body)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Sends the answer.
    pub fn send(self, res: &mut Response) {
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                res.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        res.status_code(self.status);
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        res.body(self.body.to_string());
    }

    /// Sends the first half of the answer and breaks the connection off.
    fn send_truncated(self, res: &mut Response) {
        let body = self.body.to_string().into_bytes();
        let half = Bytes::copy_from_slice(&body[..body.len() / 2]);
        res.status_code(self.status);
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let broken = std::io::Error::other("the sandbox breaks off here");
        res.stream(futures_util::stream::iter([Ok(half), Err(broken)]));
    }
}

/// Answers a request to a platform: rightly, or with the failure that is due. `right` is only run when it is asked
/// for, and `wrong` puts a refusal into the platform's own words.
pub async fn respond(
    world: &World,
    platform: Platform,
    res: &mut Response,
    right: impl Future<Output = JsonResponse>,
    wrong: impl FnOnce(PlatformError) -> JsonResponse,
) {
    match world.next_fault(platform) {
        None => right.await.send(res),
        Some(Fault::Truncate) => right.await.send_truncated(res),
        Some(Fault::RateLimit) => wrong(PlatformError::RateLimit).send(res),
        Some(Fault::Error) => wrong(PlatformError::Error).send(res),
        Some(Fault::Unauthorized) => wrong(PlatformError::Unauthorized).send(res),
        Some(Fault::Hang) => {
            // Longer than anyone waits; whoever gives up ends it.
            tokio::time::sleep(Duration::from_secs(3600)).await;
            wrong(PlatformError::Error).send(res);
        }
        Some(Fault::Html) => {
            res.status_code(StatusCode::OK);
            res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            res.body(
                "<!doctype html><title>Please wait</title><p>Checking your browser before you go on…</p>",
            );
        }
    }
}

/// A refusal that every platform has words of its own for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformError {
    RateLimit,
    Error,
    Unauthorized,
}

/// The bearer token of a request.
pub fn bearer_token(req: &Request) -> Option<String> {
    let text = req.headers().get("authorization")?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}
