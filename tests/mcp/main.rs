//! The MCP server: its protocol, that tools answer as the REST API does, and official clients over HTTP and standard input.

mod agreement;
mod clients;
mod fixture;
mod limits;
mod protocol;
mod stdio;
mod tasks;
mod writes;

use harness::{Organization, Response, send};
use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

/// The URL of the MCP server of an API whose base URL may have a version.
fn endpoint(organization: &Organization) -> String {
    let base = organization.stack.connection.base_url.trim_end_matches("/v2");
    format!("{base}/mcp")
}

/// The metadata of a request of 2026-07-28.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Sends a message as it is, with headers.
async fn post(organization: &Organization, headers: &[(&'static str, &str)], message: &Value) -> Response {
    let mut request = organization.stack.client.post(endpoint(organization)).bearer_auth(&organization.key);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.json(message)).await
}

/// Sends a request of 2026-07-28.
async fn call_method(organization: &Organization, method: &str, mut params: Value) -> Response {
    params["_meta"] = meta();
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    if method == "tools/call" {
        headers.push(("mcp-name", &name));
    }
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    post(organization, &headers, &message).await
}

/// Calls a tool: its structured content, or in `Err` the problem.
async fn call_tool(organization: &Organization, name: &str, arguments: Value) -> Result<Value, Value> {
    let response =
        call_method(organization, "tools/call", json!({"name": name, "arguments": arguments})).await.ok(200);
    let result = response.at("/result");
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{response}");
    let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    if result["isError"] == true {
        assert!(result.get("structuredContent").is_none(), "{response}");
        return Err(text);
    }
    assert_eq!(text, result["structuredContent"], "{response}");
    Ok(text)
}

/// The tools that the organization's key may call.
async fn list_tools(organization: &Organization) -> Vec<Value> {
    call_method(organization, "tools/list", json!({})).await.ok(200).list("/result/tools").to_vec()
}
