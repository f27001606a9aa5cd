//! The MCP server of agents: `POST /mcp`, JSON-RPC over HTTP without sessions. Tools call the routes of v2 inside this
//! process, so that their answers are those of the REST API.

mod answer;
mod call;
mod operation;
mod origin;
mod protocol;
mod requests;
mod schema;
pub(super) mod tool;
mod tools;

use std::time::Instant;

use salvo::http::{ResBody, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Writer, async_trait};
use serde::Serialize;
use serde_json::json;

use self::call::ToolResult;
use self::origin::RejectForeignOrigin;
use self::protocol::{Failure, Message, ProtocolErrors, RpcRequest, VERSIONS};
use self::requests::{Inherited, Routes};
use self::tools::DEFINITIONS;
use crate::http::input::request_part::ParsedRequest;
use crate::http::middleware::ParseRequest;
use crate::http::{Caller, Problem, RequireAccept};
use crate::model::organization::Scope;

/// For the model, beside the descriptions of the tools.
const INSTRUCTIONS: &str = "Tidemark tracks creators, their Instagram and TikTok accounts, and posts (videos), and \
    answers from exact daily history. Views, likes, comments, shares and plays in `metrics` are gains within a window of \
    UTC days (default: the last 30, including today); `engagement` is likes, comments and shares; rates are fractions of \
    views. Fields that end in `_count` are latest counters of the platform. Null is not known, never 0. Lists have \
    `pagination.next_cursor` for the next page. Tags are `category` (one label of an account) and `metadata` (keys with \
    values); `search` finds ids by names and captions.";

/// How long clients may keep what describes the server, which changes with its version and the key's scopes.
const DESCRIPTION_TTL_MILLIS: u64 = 300_000;

/// The route, for requests that are authenticated.
pub(super) fn route() -> Router {
    Router::with_path("mcp")
        .hoop(RejectForeignOrigin) // 403
        .hoop(RequireAccept::Json) // 406
        .hoop(ProtocolErrors)
        .hoop(ParseRequest::default()) // 415, 413, 400
        .post(Endpoint(Routes::new()))
}

struct Endpoint(Routes);

#[async_trait]
impl Handler for Endpoint {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let message = depot.remove_typed::<ParsedRequest>().ok().and_then(|parsed| parsed.body);
        let response = match Message::read(req.headers(), message.unwrap_or_default()) {
            Ok(Message::Notification) => {
                res.status_code(StatusCode::ACCEPTED);
                return;
            }
            Ok(Message::Request(request)) => match self.respond(&request, depot).await {
                Ok(body) => Ok((StatusCode::OK, body)),
                Err(failure) => failure.of(&request).response(),
            },
            Err(failure) => failure.response(),
        };
        match response {
            Ok((status, body)) => protocol::write(res, status, ResBody::Once(body.into())),
            Err(error) => Problem::from(error).write(req, depot, res).await,
        }
    }
}

impl Endpoint {
    async fn respond(&self, request: &RpcRequest, depot: &Depot) -> Result<Vec<u8>, Failure> {
        let started = Instant::now();
        let caller = depot.get_typed::<Caller>().map_err(|_| Failure::internal())?;
        match (request.is_modern, request.method.as_str()) {
            (true, "server/discover") => request.cacheable_result(&discovered(), "public"),
            (false, "initialize") => request.result(&initialized(request)?),
            (false, "ping") => request.result(&json!({})),
            (_, "tools/list") => request.cacheable_result(&listed_tools(request, caller)?, "private"),
            (_, "tools/call") => {
                let inherited = Inherited::from_depot(depot, started).ok_or_else(Failure::internal)?;
                request.result(&self.call_tool(request, inherited).await?)
            }
            (_, method) => Err(Failure::unknown_method(method, request.is_modern)),
        }
    }

    async fn call_tool(&self, request: &RpcRequest, inherited: Inherited) -> Result<ToolResult, Failure> {
        let name =
            request.tool_name().ok_or_else(|| Failure::invalid_params("params.name must be a text"))?;
        let definition = DEFINITIONS.iter().find(|definition| definition.tool.name == name);
        let definition =
            definition.ok_or_else(|| Failure::invalid_params(format!("there is no tool {name}")))?;
        let arguments = request.arguments()?;
        Ok(ToolResult::new(call::call(&self.0, &inherited, definition, arguments).await))
    }
}

fn capabilities() -> serde_json::Value {
    json!({"tools": {}})
}

fn discovered() -> impl Serialize {
    json!({"supportedVersions": VERSIONS, "capabilities": capabilities(), "instructions": INSTRUCTIONS})
}

fn initialized(request: &RpcRequest) -> Result<impl Serialize + use<>, Failure> {
    Ok(json!({
        "protocolVersion": request.negotiated_version()?,
        "capabilities": capabilities(),
        "serverInfo": protocol::server_info(),
        "instructions": INSTRUCTIONS,
    }))
}

/// The tools that a key may call.
fn listed_tools(request: &RpcRequest, caller: &Caller) -> Result<impl Serialize + use<>, Failure> {
    if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Failure::invalid_params("the list has one page: omit cursor"));
    }
    let may_write = caller.scopes.contains(&Scope::Write);
    let tools = DEFINITIONS.iter().filter(|definition| may_write || definition.is_read_only());
    Ok(json!({"tools": tools.map(|definition| &definition.listed).collect::<Vec<_>>()}))
}
