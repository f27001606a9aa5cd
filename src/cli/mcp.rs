//! `tidemark mcp`: the MCP server of an API for agents that start a program. Each line of standard input is a JSON-RPC
//! message, which is sent to `POST /mcp`; the response is a line of standard output.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::error::CommandError;
use crate::model::secret::Secret;
use crate::tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Allows what the API waits for platforms.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_IN_FLIGHT: usize = 16;
const MAX_RESPONSE_BYTES: usize = 4 << 20;
const INTERNAL_ERROR: i64 = -32_603;

/// Connect an agent to an API over standard input and output
///
/// For agents that start an MCP server as a program (docs/agents.md). Needs neither a database nor a configuration.
#[derive(Debug, clap::Args)]
pub(super) struct McpArgs {
    /// URL of the API, with or without /v2
    #[arg(long, env = "TIDEMARK_URL", value_name = "URL")]
    url: Url,
    /// API key
    #[arg(long, env = "TIDEMARK_API_KEY", value_name = "KEY", hide_env_values = true)]
    api_key: Secret,
}

struct Server {
    client: reqwest::Client,
    endpoint: Url,
    api_key: Secret,
}

pub(super) async fn run(args: McpArgs) -> Result<(), CommandError> {
    let server = Arc::new(Server::new(args)?);
    let (responses, written) = mpsc::channel(MAX_IN_FLIGHT);
    let writer = tokio::spawn(write_lines(written));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (mut tasks, mut in_flight) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(id) = canceled_id(&message) {
            in_flight.remove(&id).inspect(AbortHandle::abort);
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        while tasks.len() >= MAX_IN_FLIGHT {
            tasks.join_next().await;
        }
        let (sender, responses) = (Arc::clone(&server), responses.clone());
        let id = message["id"].to_string();
        let task = tasks.spawn(async move {
            if let Some(response) = sender.respond(line, &message).await {
                // Fails when standard output is closed, which ends the program.
                let _closed = responses.send(response).await;
            }
        });
        in_flight.retain(|_, handle| !handle.is_finished());
        in_flight.insert(id, task);
        if writer.is_finished() {
            break;
        }
    }
    // `join_all` would panic because of a canceled task.
    while tasks.join_next().await.is_some() {}
    drop(responses);
    writer.await??;
    Ok(())
}

async fn write_lines(mut lines: mpsc::Receiver<String>) -> std::io::Result<()> {
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        output.write_all(format!("{line}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

/// Returns the id of the request that a notification cancels.
fn canceled_id(message: &Value) -> Option<String> {
    (message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].to_string())
}

impl Server {
    fn new(McpArgs { url, api_key }: McpArgs) -> Result<Self, CommandError> {
        let client = tls::client_builder()?
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .user_agent(concat!("tidemark-mcp/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Server { client, endpoint: endpoint(url)?, api_key })
    }

    /// Returns the response to a request, also if the API cannot be reached; `None` for a notification.
    async fn respond(&self, line: String, message: &Value) -> Option<String> {
        let failure = match self.send(line, message).await {
            Ok(response) => return response,
            Err(failure) => failure,
        };
        let Some(id) = message.get("id") else {
            tracing::warn!(error = failure, "notification failed");
            return None;
        };
        let error = json!({"code": INTERNAL_ERROR, "message": failure});
        Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
    }

    async fn send(&self, line: String, message: &Value) -> Result<Option<String>, String> {
        let request = self.client.post(self.endpoint.clone()).bearer_auth(self.api_key.reveal());
        let request = request.headers(headers(message)).body(line);
        let describe = |error| CommandError::from(error).to_string();
        let mut response = request.send().await.map_err(describe)?;
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(describe)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(format!("the response exceeds {MAX_RESPONSE_BYTES} bytes"));
            }
        }
        let text = String::from_utf8_lossy(&body);
        if text.is_empty() && (200..300).contains(&status) {
            return Ok(None);
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(members)) if members.contains_key("jsonrpc") => {
                Ok(Some(text.replace('\n', " ")))
            }
            // A problem, such as that of an unknown key.
            Ok(problem) if problem["detail"].is_string() => {
                Err(problem["detail"].as_str().unwrap_or_default().to_owned())
            }
            _ => Err(format!("{} responds with status {status}: it is no Tidemark API", self.endpoint)),
        }
    }
}

fn endpoint(mut url: Url) -> Result<Url, CommandError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(CommandError::new("the URL of the API must begin with http:// or https://"));
    }
    let path = url.path().trim_end_matches('/');
    let path = format!("{}/mcp", path.strip_suffix("/v2").unwrap_or(path));
    url.set_path(&path);
    Ok(url)
}

/// Returns the headers of a message, which since protocol version 2026-07-28 repeat parts of it.
fn headers(message: &Value) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    if version.is_none() {
        return headers;
    }
    let repeated = [
        ("mcp-protocol-version", version),
        ("mcp-method", message["method"].as_str()),
        ("mcp-name", params["name"].as_str()),
    ];
    for (name, value) in repeated {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&header_text(value)).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Encodes a text that a header cannot hold as it is.
fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_may_have_the_version() {
        for url in [
            "https://api.example",
            "https://api.example/",
            "https://api.example/v2",
            "https://api.example/v2/",
        ] {
            assert_eq!(endpoint(url.parse().unwrap()).unwrap().as_str(), "https://api.example/mcp", "{url}");
        }
        let below = endpoint("http://127.0.0.1:8080/tidemark/v2".parse().unwrap()).unwrap();
        assert_eq!(below.as_str(), "http://127.0.0.1:8080/tidemark/mcp");
        assert!(endpoint("file:///v2".parse().unwrap()).is_err());
    }

    #[test]
    fn headers_repeat_the_message() {
        let legacy = json!({"method": "tools/call", "params": {"name": "search"}});
        assert_eq!(headers(&legacy).len(), 1);
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let modern = json!({"method": "tools/call", "params": {"name": "süß", "_meta": meta}});
        let headers = headers(&modern);
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-name"], "=?base64?c8O8w58=?=");
    }
}
