//! The HTTP interface: routes, authentication, bodies, and the responses to statements.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::body::{ChunkStream, ExceptionTrailer, ResponseBody, content_type};
use crate::cancel::KillOnDrop;
use crate::credentials::{self, Credentials, Role};
use crate::engine::Engine;
use crate::engine_types::Counters;
use crate::exception::{Exception, Result};
use crate::execute::{self, QueryResult, Statement};
use crate::logins::{self, Login};
use crate::permits::{Permit, Permits};
use crate::request::{self, QueryRequest};
use crate::session::{Session, Sessions};

/// The read-only user sends statements and parameters, but no data.
const MAX_READONLY_BODY_BYTES: usize = 1 << 20;
/// Larger bodies are decompressed on a blocking thread.
const MAX_INLINE_DECODE_BYTES: usize = 64 << 10;

const EXCEPTION_CODE: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");
const EXCEPTION_TAG: HeaderName = HeaderName::from_static("x-clickhouse-exception-tag");
const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const QUERY_ID: HeaderName = HeaderName::from_static("x-clickhouse-query-id");
const SERVER_NAME: HeaderName = HeaderName::from_static("x-clickhouse-server-display-name");
const SUMMARY: HeaderName = HeaderName::from_static("x-clickhouse-summary");
const TIMEZONE: HeaderName = HeaderName::from_static("x-clickhouse-timezone");

/// State shared by all connections.
pub(crate) struct Handler {
    pub engine: Arc<Engine>,
    pub credentials: Credentials,
    pub sessions: Sessions,
    pub permits: Permits,
    pub max_body: usize,
    pub display_name: String,
}

impl Handler {
    pub(crate) async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<ResponseBody> {
        if request.headers().contains_key(ORIGIN) {
            // Any web page could otherwise reach a server on the machine of its visitor.
            return plain_text(
                StatusCode::FORBIDDEN,
                "requests of web pages are rejected: omit the Origin header\n",
            );
        }
        let safe_method = matches!(*request.method(), Method::GET | Method::HEAD);
        match (request.uri().path(), request.uri().query()) {
            ("/ping" | "/replicas_status", _) | ("/", None) if safe_method => {
                return plain_text(StatusCode::OK, "Ok.\n");
            }
            ("/", _) => {}
            _ => {
                return plain_text(
                    StatusCode::NOT_FOUND,
                    "not found: send statements to / and pings to /ping\n",
                );
            }
        }
        if !safe_method && *request.method() != Method::POST {
            return plain_text(StatusCode::METHOD_NOT_ALLOWED, "use GET to read, or POST\n");
        }
        let mut query_id = String::new();
        let mut response = match self.run(request, safe_method, &mut query_id).await {
            Ok(response) => response,
            Err(exception) => self.exception_response(&exception),
        };
        let headers = response.headers_mut();
        insert_text(headers, QUERY_ID, &query_id);
        insert_text(headers, SERVER_NAME, &self.display_name);
        headers.insert(TIMEZONE, HeaderValue::from_static("UTC"));
        response
    }

    async fn run(
        &self,
        http_request: Request<Incoming>,
        safe_method: bool,
        query_id: &mut String,
    ) -> Result<Response<ResponseBody>> {
        let (parts, body) = http_request.into_parts();
        let mut request = QueryRequest::parse(parts.uri.query().unwrap_or_default(), &parts.headers)?;
        let parameters = (request.user.as_deref(), request.password.as_deref());
        let (user, password) = credentials::presented(&parts.headers, parameters)?;
        let known = self.credentials.role((&user, &password));
        // Before its password is checked a login counts as the read-only user's request, of which few are admitted.
        let role = known.unwrap_or(Role::Readonly);
        let _admitted = self.permits.admit(role)?;
        let login = if known.is_some() { None } else { Some(self.authenticate_login(user, password).await?) };
        let max_body = match role {
            Role::Admin => self.max_body,
            Role::Readonly => self.max_body.min(MAX_READONLY_BODY_BYTES),
        };
        let mut body = read_body(body, max_body).await?;
        *query_id = request.query_id.clone().unwrap_or_default();
        if !body.is_empty() {
            body = decode(&parts.headers, request.decompress, body, max_body).await?;
            if let Some(boundary) = request::multipart_boundary(&parts.headers)? {
                request.read_form(boundary, std::mem::take(&mut body)).await?;
            }
        }
        *query_id = request.query_id.take().unwrap_or_default();
        if query_id.is_empty() {
            *query_id = Uuid::now_v7().to_string();
        }
        let session = self.session(&mut request, role).await?;
        let compress = request.compress;
        let mut statement = Statement::new(request, body, session, (role, login), safe_method);
        let permit = Arc::new(self.permits.acquire(role, &statement.text).await?);
        statement.result_permit = (role == Role::Readonly).then(|| Arc::clone(&permit));
        self.execute(statement, permit, compress).await
    }

    async fn authenticate_login(&self, user: String, password: String) -> Result<Login> {
        let failed = credentials::authentication_failed(&user);
        if self.credentials.names(&user) || self.engine.logins().is_none() {
            return Err(failed);
        }
        let engine = Arc::clone(&self.engine);
        let authenticate = move || logins::authenticate(&mut engine.connect()?, &user, &password);
        let found = tokio::task::spawn_blocking(authenticate);
        found.await.unwrap_or(Ok(None))?.ok_or(failed)
    }

    /// Waits for the request's session. Sessions of the read-only user have no state, so they get none.
    async fn session(&self, request: &mut QueryRequest, role: Role) -> Result<Option<Session>> {
        let Some(options) = request.session.take().filter(|_| role == Role::Admin) else { return Ok(None) };
        if request.is_readonly() {
            // The engine does not take `readonly` back, so it would stay set for the rest of the session.
            return Err(Exception::unsupported("readonly in a session: omit `readonly` or `session_id`"));
        }
        let session = self.sessions.acquire(&options.id, options.timeout, options.must_exist).await;
        let missing = || Exception::new(372, "SESSION_NOT_FOUND", "Session not found or expired");
        session.ok_or_else(missing).map(Some)
    }

    /// Executes the statement on a blocking thread.
    async fn execute(
        &self,
        statement: Statement,
        permit: Arc<Permit>,
        compress: bool,
    ) -> Result<Response<ResponseBody>> {
        let (kill_on_drop, cancellation) =
            KillOnDrop::new(Arc::clone(&self.engine), statement.marker.clone());
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            execute::run(&engine, statement, sender, &cancellation);
            drop(permit);
        });
        let panicked = "the statement ended without a result: see the server's log";
        match receiver.await.unwrap_or_else(|_| Err(Exception::new(1001, "STD_EXCEPTION", panicked))) {
            Ok(result) => Ok(self.result_response(result, kill_on_drop, compress)),
            Err(exception) => {
                kill_on_drop.disarm();
                Err(exception)
            }
        }
    }

    fn result_response(
        &self,
        result: QueryResult,
        kill_on_drop: KillOnDrop,
        compress: bool,
    ) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::default());
        let headers = response.headers_mut();
        if let Some(format) = &result.format {
            let media_type = if compress { "application/octet-stream" } else { content_type(format) };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            insert_text(headers, FORMAT, format);
        }
        let stream = match result.rest {
            None => {
                kill_on_drop.disarm();
                insert_text(headers, SUMMARY, &summary(result.counters));
                None
            }
            Some(chunks) => {
                let tag: String = Uuid::now_v7().simple().to_string().chars().skip(16).collect();
                insert_text(headers, EXCEPTION_TAG, &tag);
                let trailer = ExceptionTrailer { tag, version: self.engine.version().to_owned() };
                Some(ChunkStream { chunks, trailer, kill_on_drop })
            }
        };
        *response.body_mut() = ResponseBody::new(result.chunks, stream, compress);
        response
    }

    fn exception_response(&self, exception: &Exception) -> Response<ResponseBody> {
        let status = exception.status();
        let mut response = plain_text(status, exception.text(self.engine.version()) + "\n");
        response.headers_mut().insert(EXCEPTION_CODE, exception.code.into());
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"ClickHouse\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Reads a body of up to `limit` bytes.
async fn read_body(mut body: Incoming, limit: usize) -> Result<Bytes> {
    // A body in one frame is not copied. `collect` would hold every frame until the last: they may be single bytes.
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Exception::new(1000, "POCO_EXCEPTION", format!("the body is incomplete: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + joined.len() + data.len() > limit {
            return Err(Exception::too_large(limit));
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

async fn decode(headers: &HeaderMap, decompress: bool, body: Bytes, limit: usize) -> Result<Bytes> {
    if body.len() <= MAX_INLINE_DECODE_BYTES {
        return request::decode(headers, decompress, body, limit);
    }
    let headers = headers.clone();
    let decoded = tokio::task::spawn_blocking(move || request::decode(&headers, decompress, body, limit));
    decoded.await.unwrap_or_else(|_| Err(Exception::bad_request("the body cannot be decoded")))
}

/// Inserts a header, unless its value contains characters that headers cannot have.
fn insert_text(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The value of `X-ClickHouse-Summary`.
fn summary(counters: Counters) -> String {
    serde_json::json!({
        "read_rows": counters.read_rows.to_string(),
        "read_bytes": counters.read_bytes.to_string(),
        "written_rows": counters.written_rows.to_string(),
        "written_bytes": counters.written_bytes.to_string(),
        "result_rows": counters.result_rows.to_string(),
    })
    .to_string()
}

fn plain_text(status: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new([text.into()], None, false));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    response
}
