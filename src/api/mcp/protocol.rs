//! JSON-RPC messages of MCP. Since 2026-07-28 each request says its protocol version, in the body and in headers that
//! repeat parts of it; earlier ones begin with `initialize`, which here leaves no state.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderMap, HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Response, handler};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::http::output::problem::ProblemFormat;

/// The newest first.
pub(super) const VERSIONS: [&str; 3] = [MODERN_VERSION, "2025-11-25", "2025-06-18"];
const MODERN_VERSION: &str = "2026-07-28";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;
const HEADER_MISMATCH: i64 = -32_020;
const UNSUPPORTED_VERSION: i64 = -32_022;

pub(super) enum Message {
    Request(RpcRequest),
    /// Needs no response.
    Notification,
}

pub(super) struct RpcRequest {
    id: Value,
    pub method: String,
    pub params: Map<String, Value>,
    /// Whether it is of 2026-07-28 or later.
    pub is_modern: bool,
}

/// A JSON-RPC error.
pub(super) struct Failure {
    id: Option<Value>,
    status: StatusCode,
    code: i64,
    message: String,
    data: Option<Value>,
}

/// The status and body of a response.
type Encoded = Result<(StatusCode, Vec<u8>), serde_json::Error>;

impl Failure {
    fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Failure { id: None, status, code, message: message.into(), data: None }
    }

    fn malformed(code: i64, message: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub fn internal() -> Self {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "internal error")
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Failure::new(StatusCode::OK, INVALID_PARAMS, message)
    }

    pub fn unknown_method(method: &str, is_modern: bool) -> Self {
        let status = if is_modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
        Failure::new(status, METHOD_NOT_FOUND, format!("there is no method {method}"))
    }

    fn unsupported_version(requested: &str) -> Self {
        let data = json!({"supported": VERSIONS, "requested": requested});
        let failure = Failure::malformed(UNSUPPORTED_VERSION, "unsupported protocol version");
        Failure { data: Some(data), ..failure }
    }

    /// Makes it the response to a request.
    pub fn of(self, request: &RpcRequest) -> Self {
        Failure { id: Some(request.id.clone()), ..self }
    }

    pub fn response(self) -> Encoded {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let body = json!({"jsonrpc": "2.0", "id": self.id, "error": error});
        Ok((self.status, serde_json::to_vec(&body)?))
    }
}

/// Gives problems that arise before a message is read the form of JSON-RPC errors.
pub(super) struct ProtocolErrors;

#[handler]
impl ProtocolErrors {
    fn handle(&self, depot: &mut Depot) {
        depot.insert_typed(ProblemFormat {
            content_type: "application/json",
            body: |problem| {
                let is_malformed = problem.status() == StatusCode::BAD_REQUEST;
                let code = if is_malformed { PARSE_ERROR } else { INVALID_REQUEST };
                Failure::new(problem.status(), code, problem.message()).response().map(|(_, body)| body)
            },
        });
    }
}

pub(super) fn write(res: &mut Response, status: StatusCode, body: ResBody) {
    res.status_code(status);
    res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    res.body(body);
}

pub(super) fn server_info() -> Value {
    json!({"name": "tidemark", "title": "Tidemark", "version": env!("CARGO_PKG_VERSION")})
}

impl Message {
    /// Reads a message and checks what its protocol version requires.
    pub fn read(headers: &HeaderMap, body: Value) -> Result<Self, Failure> {
        let invalid = |message| Failure::malformed(INVALID_REQUEST, message);
        let Value::Object(mut members) = body else {
            return Err(invalid("the body must be one JSON-RPC message, no batch"));
        };
        let id = members.remove("id");
        if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_i64() || id.is_u64())) {
            return Err(invalid("id must be a text or an integer"));
        }
        match RpcRequest::read(headers, id.clone(), members) {
            Ok(Some(request)) => Ok(Message::Request(request)),
            Ok(None) => Ok(Message::Notification),
            Err(failure) => Err(Failure { id, ..failure }),
        }
    }
}

impl RpcRequest {
    /// Returns `None` for a notification.
    fn read(
        headers: &HeaderMap,
        id: Option<Value>,
        mut members: Map<String, Value>,
    ) -> Result<Option<Self>, Failure> {
        let invalid = |message| Failure::malformed(INVALID_REQUEST, message);
        if members.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return Err(invalid("jsonrpc must be 2.0"));
        }
        let Some(Value::String(method)) = members.remove("method") else {
            return Err(invalid("method must be a text: the server sends no requests that need responses"));
        };
        let Some(id) = id else { return Ok(None) };
        let params = match members.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(invalid("params must be an object")),
        };
        let mut request = RpcRequest { id, method, params, is_modern: false };
        request.is_modern = request.meta(PROTOCOL_VERSION).is_some()
            || header(headers, "mcp-protocol-version") == Some(MODERN_VERSION);
        if request.is_modern {
            request.check_modern(headers)?;
        } else if request.method != "initialize"
            && let Some(version) = header(headers, "mcp-protocol-version")
            && !VERSIONS.contains(&version)
        {
            return Err(Failure::unsupported_version(version));
        }
        Ok(Some(request))
    }

    fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    fn check_modern(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let missing = |key| Failure::malformed(INVALID_PARAMS, format!("params._meta must have {key}"));
        let version = self.meta(PROTOCOL_VERSION).and_then(Value::as_str);
        let version = version.ok_or_else(|| missing(PROTOCOL_VERSION))?;
        if !self.meta(CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
            return Err(missing(CLIENT_CAPABILITIES));
        }
        require_header(headers, "mcp-protocol-version", version)?;
        if version != MODERN_VERSION {
            return Err(Failure::unsupported_version(version));
        }
        require_header(headers, "mcp-method", &self.method)?;
        match self.tool_name() {
            Some(name) if self.method == "tools/call" => require_header(headers, "mcp-name", name),
            _ => Ok(()),
        }
    }

    pub fn tool_name(&self) -> Option<&str> {
        self.params.get("name").and_then(Value::as_str)
    }

    pub fn arguments(&self) -> Result<Map<String, Value>, Failure> {
        match self.params.get("arguments") {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(arguments)) => Ok(arguments.clone()),
            Some(_) => Err(Failure::invalid_params("params.arguments must be an object")),
        }
    }

    /// Returns the version to use after `initialize`: the client's if it is supported.
    pub fn negotiated_version(&self) -> Result<&'static str, Failure> {
        let requested = self.params.get("protocolVersion").and_then(Value::as_str);
        let requested =
            requested.ok_or_else(|| Failure::invalid_params("params.protocolVersion must be a text"))?;
        let legacy = &VERSIONS[1..];
        Ok(legacy.iter().find(|version| **version == requested).unwrap_or(&legacy[0]))
    }

    /// Encodes the response with a result.
    pub fn result(&self, result: &impl Serialize) -> Result<Vec<u8>, Failure> {
        self.encode(result, None)
    }

    /// As [`RpcRequest::result`], for a result that clients may keep for a while.
    pub fn cacheable_result(&self, result: &impl Serialize, scope: &'static str) -> Result<Vec<u8>, Failure> {
        let caching = Caching { ttl_ms: super::DESCRIPTION_TTL_MILLIS, cache_scope: scope };
        self.encode(result, Some(caching))
    }

    fn encode(&self, result: &impl Serialize, caching: Option<Caching>) -> Result<Vec<u8>, Failure> {
        let meta = self.is_modern.then(|| ResultMeta {
            result_type: "complete",
            meta: json!({SERVER_INFO: server_info()}),
            caching,
        });
        let body = RpcResponse { jsonrpc: "2.0", id: &self.id, result: RpcResult { own: result, meta } };
        serde_json::to_vec(&body).map_err(|_| Failure::internal())
    }
}

#[derive(Serialize)]
struct RpcResponse<'a, T> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: RpcResult<'a, T>,
}

#[derive(Serialize)]
struct RpcResult<'a, T> {
    #[serde(flatten)]
    own: &'a T,
    #[serde(flatten)]
    meta: Option<ResultMeta>,
}

/// What results have since 2026-07-28.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultMeta {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: Value,
    #[serde(flatten)]
    caching: Option<Caching>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Caching {
    ttl_ms: u64,
    cache_scope: &'static str,
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Requires a header that repeats a value of the body.
fn require_header(headers: &HeaderMap, name: &str, value: &str) -> Result<(), Failure> {
    let sent = headers.get(name).map(|sent| sent.to_str().ok().and_then(decode).unwrap_or_default());
    if sent.as_deref() == Some(value) {
        return Ok(());
    }
    let message = match sent {
        Some(_) => format!("the header {name} must be {value}, as in the body"),
        None => format!("the header {name} must be sent: {value}"),
    };
    Err(Failure::malformed(HEADER_MISMATCH, message))
}

/// Decodes a header whose value may be in Base64, which any text that is not plain ASCII is.
fn decode(sent: &str) -> Option<String> {
    match sent.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(sent.to_owned()),
    }
}
