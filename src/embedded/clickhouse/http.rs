//! The HTTP front: who may ask, which path means what, and the way of a request from its body to its reply.
//! It owns the queue in front of the engine; statements run elsewhere, on threads that may block.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use super::auth::{Credentials, Role};
use super::cancel::Watch;
use super::engine::Engine;
use super::query::{self, Answer, Job};
use super::reply::{Failure, ReplyBody, Rest, Tail, content_type, too_large};
use super::request::{self, Asked};
use super::session::Sessions;

/// How long a request waits for its turn.
const QUEUE_WAIT: Duration = Duration::from_secs(60);
/// A body up to this size is decoded on the spot.
const SMALL: usize = 64 << 10;

const EXCEPTION_CODE: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");
const EXCEPTION_TAG: HeaderName = HeaderName::from_static("x-clickhouse-exception-tag");
const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const QUERY_ID: HeaderName = HeaderName::from_static("x-clickhouse-query-id");
const SERVER_NAME: HeaderName = HeaderName::from_static("x-clickhouse-server-display-name");
const SUMMARY: HeaderName = HeaderName::from_static("x-clickhouse-summary");
const TIMEZONE: HeaderName = HeaderName::from_static("x-clickhouse-timezone");

/// What every connection shares.
pub(super) struct Front {
    pub engine: Arc<Engine>,
    pub credentials: Credentials,
    pub sessions: Sessions,
    /// A place for every statement that may run at a time.
    pub places: Arc<Semaphore>,
    pub max_body: usize,
}

impl Front {
    /// Answers one request.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<ReplyBody> {
        if request.headers().contains_key(ORIGIN) {
            // a web page of any site could otherwise ask the browser's machine
            return plain(
                StatusCode::FORBIDDEN,
                "requests from web pages are refused here: leave the Origin header out\n",
            );
        }
        let get = matches!(*request.method(), Method::GET | Method::HEAD);
        match (request.uri().path(), request.uri().query()) {
            ("/ping" | "/replicas_status", _) | ("/", None) if get => return plain(StatusCode::OK, "Ok.\n"),
            ("/", _) => {}
            _ => {
                return plain(
                    StatusCode::NOT_FOUND,
                    "there is nothing here: send statements to / and pings to /ping\n",
                );
            }
        }
        if !get && *request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "use GET to read and POST for everything\n");
        }
        let mut query_id = String::new();
        let mut response = match self.run(request, get, &mut query_id).await {
            Ok(response) => response,
            Err(failure) => self.failed(&failure),
        };
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&query_id) {
            headers.insert(QUERY_ID, value);
        }
        headers.insert(SERVER_NAME, HeaderValue::from_static("tidemark"));
        headers.insert(TIMEZONE, HeaderValue::from_static("UTC"));
        response
    }

    async fn run(
        self: &Arc<Self>,
        request: Request<Incoming>,
        get: bool,
        query_id: &mut String,
    ) -> Result<Response<ReplyBody>, Failure> {
        let (parts, body) = request.into_parts();
        let mut asked = Asked::new(parts.uri.query().unwrap_or_default(), &parts.headers)?;
        let role =
            self.credentials.role(&parts.headers, (asked.user.as_deref(), asked.password.as_deref()))?;
        let mut body = self.body(body).await?;
        *query_id = asked.query_id.take().unwrap_or_default();
        if !body.is_empty() {
            body = self.decoded(&parts.headers, asked.decompress, body).await?;
            if let Some(boundary) = request::boundary(&parts.headers)? {
                asked.take_form(boundary, std::mem::take(&mut body)).await?;
                *query_id = asked.query_id.take().unwrap_or(std::mem::take(query_id));
            }
        }
        if query_id.is_empty() {
            *query_id = Uuid::now_v7().to_string();
        }
        // analysts have no state to keep: a session of theirs is a connection like any other
        let session =
            match asked.session.take().filter(|_| role == Role::Service) {
                Some(name) => {
                    let slot = self.sessions.take(&name.id, name.timeout, name.must_exist).await;
                    Some(slot.ok_or_else(|| {
                        Failure::new(372, "SESSION_NOT_FOUND", "Session not found or expired")
                    })?)
                }
                None => None,
            };
        let text = match asked.query {
            Some(query) => Bytes::from(query),
            None => std::mem::take(&mut body),
        };
        let mark = format!("/*{}*/", Uuid::now_v7());
        let framed = asked.compress;
        let job = Job {
            text,
            body,
            default_format: asked.default_format,
            parameters: asked.parameters,
            settings: asked.settings,
            database: asked
                .database
                .filter(|name| !name.is_empty() && (session.is_some() || name != "default")),
            role,
            safe_method: get,
            whole: asked.whole,
            mark: mark.clone(),
            session,
        };
        let place = tokio::time::timeout(QUEUE_WAIT, Arc::clone(&self.places).acquire_owned());
        let Ok(Ok(place)) = place.await else {
            let text = "Too many simultaneous queries: try again later, or raise --max-queries";
            return Err(Failure::new(202, "TOO_MANY_SIMULTANEOUS_QUERIES", text));
        };
        let (watch, run) = Watch::new(Arc::clone(&self.engine), mark);
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            query::run(&engine, job, sender, &run);
            drop(place);
        });
        let answer = receiver.await.unwrap_or_else(|_| {
            Err(Failure::new(
                1001,
                "STD_EXCEPTION",
                "the statement ended without an answer; the log of this process says why",
            ))
        });
        match answer {
            Ok(answer) => Ok(self.answered(answer, watch, framed)),
            Err(failure) => {
                watch.finished();
                Err(failure)
            }
        }
    }

    /// Reads a whole body, up to the longest that is taken.
    async fn body(&self, mut body: Incoming) -> Result<Bytes, Failure> {
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                Failure::new(1000, "POCO_EXCEPTION", format!("the body ends early: {error}"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if first.len() + whole.len() + data.len() > self.max_body {
                return Err(too_large(self.max_body));
            }
            if first.is_empty() && whole.is_empty() {
                first = data;
            } else {
                whole.extend_from_slice(&std::mem::take(&mut first));
                whole.extend_from_slice(&data);
            }
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }

    async fn decoded(&self, headers: &hyper::HeaderMap, framed: bool, body: Bytes) -> Result<Bytes, Failure> {
        let limit = self.max_body;
        if body.len() <= SMALL {
            return request::decode(headers, framed, body, limit);
        }
        let headers = headers.clone();
        let decoded = tokio::task::spawn_blocking(move || request::decode(&headers, framed, body, limit));
        decoded.await.unwrap_or_else(|_| Err(Failure::bad_request("the body cannot be decoded")))
    }

    fn answered(&self, answer: Answer, watch: Watch, framed: bool) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::default());
        let headers = response.headers_mut();
        if let Some(format) = &answer.format {
            let kind = if framed { "application/octet-stream" } else { content_type(format) };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            if let Ok(format) = HeaderValue::from_str(format) {
                headers.insert(FORMAT, format);
            }
        }
        *response.body_mut() = match answer.rest {
            None => {
                watch.finished();
                let counters = answer.counters;
                let summary = serde_json::json!({
                    "read_rows": counters.read_rows.to_string(),
                    "read_bytes": counters.read_bytes.to_string(),
                    "written_rows": counters.written_rows.to_string(),
                    "written_bytes": counters.written_bytes.to_string(),
                    "result_rows": counters.result_rows.to_string(),
                });
                if let Ok(summary) = HeaderValue::from_str(&summary.to_string()) {
                    headers.insert(SUMMARY, summary);
                }
                ReplyBody::whole(answer.pieces, framed)
            }
            Some(pieces) => {
                let tag: String = Uuid::now_v7().simple().to_string().chars().skip(16).collect();
                if let Ok(tag) = HeaderValue::from_str(&tag) {
                    headers.insert(EXCEPTION_TAG, tag);
                }
                let tail = Tail { tag, version: self.engine.version().to_owned() };
                ReplyBody::streamed(answer.pieces, Rest { pieces, tail, watch }, framed)
            }
        };
        response
    }

    fn failed(&self, failure: &Failure) -> Response<ReplyBody> {
        let mut response = plain(failure.status(), failure.text(self.engine.version()) + "\n");
        response.headers_mut().insert(EXCEPTION_CODE, failure.code.into());
        if failure.status() == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"ClickHouse\""));
        }
        response
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::whole([text.into()], false));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    response
}
