//! Responses of the simulated platforms: as a platform sends them, or with an injected fault.

use std::time::Duration;

use bytes::Bytes;
use salvo::http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use salvo::http::{Request, Response, StatusCode};
use serde_json::Value;

use super::fault::Fault;
use super::platform::Platform;
use super::served::ServedItem;
use super::world::World;

/// Longer than the timeout of any client.
const HANG_DURATION: Duration = Duration::from_secs(3600);

/// A JSON response before it is sent.
#[derive(Debug, Clone)]
pub struct JsonResponse {
    pub status: StatusCode,
    pub body: Value,
    pub headers: Vec<(&'static str, String)>,
    /// The profiles and posts in the body.
    pub items: Vec<ServedItem>,
    /// The fault of the requested account, which is sent instead.
    pub fault: Option<Fault>,
}

impl JsonResponse {
    pub fn new(status: StatusCode, body: Value) -> Self {
        JsonResponse { status, body, headers: Vec::new(), items: Vec::new(), fault: None }
    }

    pub fn ok(body: Value) -> Self {
        JsonResponse::new(StatusCode::OK, body)
    }

    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    #[must_use]
    pub fn with_items(self, items: Vec<ServedItem>) -> Self {
        JsonResponse { items, ..self }
    }

    #[must_use]
    pub fn with_fault(self, fault: Option<Fault>) -> Self {
        JsonResponse { fault, ..self }
    }

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

    /// Sends the first half of the body and closes the connection.
    fn send_truncated(self, res: &mut Response) {
        let body = self.body.to_string().into_bytes();
        let half = Bytes::copy_from_slice(&body[..body.len() / 2]);
        res.status_code(self.status);
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let broken = std::io::Error::other("truncated by an injected fault");
        res.stream(futures_util::stream::iter([Ok(half), Err(broken)]));
    }
}

/// An error that every platform reports in its own format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformError {
    RateLimit,
    Internal,
    Unauthorized,
}

/// Responds to a request to a platform: with `success`, or with the next injected fault, or with that of the requested
/// account. `failure` creates the platform's response to an error.
pub async fn respond(
    world: &World,
    platform: Platform,
    res: &mut Response,
    success: impl Future<Output = JsonResponse>,
    failure: impl FnOnce(PlatformError) -> JsonResponse,
) {
    let mut response = success.await;
    match world.next_fault(platform).or(response.fault) {
        None => {
            world.record_served(std::mem::take(&mut response.items));
            response.send(res);
        }
        Some(Fault::Truncate) => response.send_truncated(res),
        Some(Fault::RateLimit) => failure(PlatformError::RateLimit).send(res),
        Some(Fault::Error) => failure(PlatformError::Internal).send(res),
        Some(Fault::Unauthorized) => failure(PlatformError::Unauthorized).send(res),
        Some(Fault::Hang) => {
            tokio::time::sleep(HANG_DURATION).await;
            failure(PlatformError::Internal).send(res);
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

/// Returns the sandbox's URL as the client knows it.
pub fn server_url(req: &Request) -> String {
    let host = req.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map(str::to_owned).or_else(|| req.uri().authority().map(ToString::to_string));
    format!("http://{}", host.unwrap_or_default())
}

/// Returns the bearer token of a request.
pub fn bearer_token(req: &Request) -> Option<String> {
    let text = req.headers().get("authorization")?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}
