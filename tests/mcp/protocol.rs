//! JSON-RPC over HTTP, by the rules of each protocol version.

use harness::{TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;

use crate::{MODERN, call_method, call_tool, list_tools, meta, post};

fn error_code(response: &harness::Response) -> (u16, i64) {
    (response.status, response.integer("/error/code"))
}

#[tokio::test]
async fn modern_requests_say_their_version_in_body_and_headers() {
    let api = TestApi::start().await;
    let discovered = call_method(&api, "server/discover", json!({})).await.ok(200);
    assert_eq!(discovered.at("/id"), 7);
    let result = discovered.at("/result");
    assert_eq!(result["supportedVersions"], json!([MODERN, "2025-11-25", "2025-06-18"]));
    assert_eq!((&result["resultType"], &result["capabilities"]), (&json!("complete"), &json!({"tools": {}})));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tidemark");
    assert!(result["instructions"].as_str().unwrap().contains("UTC") && result["ttlMs"].as_i64() > Some(0));

    let message = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let version = ("mcp-protocol-version", MODERN);
    let list = message("tools/list", json!({"_meta": meta()}));
    let call = message("tools/call", json!({"name": "search", "_meta": meta()}));
    let mut other = meta();
    other["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let future = message("tools/list", json!({"_meta": other}));
    let mut incomplete = meta();
    incomplete.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    for (headers, message, code) in [
        (vec![version], message("tools/list", json!({})), -32_602),
        (
            vec![version, ("mcp-method", "tools/list")],
            message("tools/list", json!({"_meta": incomplete})),
            -32_602,
        ),
        (vec![], list.clone(), -32_020),
        (vec![version], list.clone(), -32_020),
        (vec![version, ("mcp-method", "tools/call")], list.clone(), -32_020),
        (vec![version, ("mcp-method", "TOOLS/LIST")], list.clone(), -32_020),
        (vec![("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list")], list.clone(), -32_020),
        (vec![version, ("mcp-method", "tools/call")], call.clone(), -32_020),
        (vec![version, ("mcp-method", "tools/call"), ("mcp-name", "Search")], call.clone(), -32_020),
        (vec![version, ("mcp-method", "tools/list")], future.clone(), -32_020),
        (vec![("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")], future, -32_022),
    ] {
        let response = post(&api, &headers, &message).await;
        assert_eq!(error_code(&response), (400, code), "{headers:?} {response}");
        assert_eq!(response.at("/id"), "a", "{response}");
        if code == -32_022 {
            let versions = json!({"supported": result["supportedVersions"], "requested": "2099-01-01"});
            assert_eq!(response.at("/error/data"), &versions);
        }
    }
    // A name may be in Base64, and blanks around values do not count.
    let headers = [version, ("mcp-method", " tools/call "), ("mcp-name", "=?base64?c2VhcmNo?=")];
    assert_eq!(post(&api, &headers, &call).await.ok(200).at("/result/isError"), false);
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/list", "subscriptions/listen", "nothing"]
    {
        let response = call_method(&api, method, json!({})).await;
        assert_eq!(error_code(&response), (404, -32_601), "{method}");
    }
}

#[tokio::test]
async fn earlier_versions_begin_with_initialize() {
    let api = TestApi::start().await;
    let request =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    for (requested, agreed) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        (MODERN, "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": requested, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let response = post(&api, &[], &request("initialize", params)).await.ok(200);
        assert_eq!(response.text("/result/protocolVersion"), agreed);
        assert_eq!(response.text("/result/serverInfo/name"), "tidemark");
        assert_eq!(response.at("/result/capabilities"), &json!({"tools": {}}));
        assert_eq!(response.header("mcp-session-id"), "");
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let version = [("mcp-protocol-version", "2025-06-18")];
    let accepted = post(&api, &version, &initialized).await.ok(202);
    assert!(accepted.body.is_empty());
    assert_eq!(post(&api, &version, &request("ping", json!({}))).await.ok(200).at("/result"), &json!({}));
    for headers in [&version[..], &[]] {
        let tools = post(&api, headers, &request("tools/list", json!({}))).await.ok(200);
        assert!(tools.list("/result/tools").len() == 17 && tools.json["result"].get("resultType").is_none());
    }
    for (message, expected) in [
        (request("initialize", json!({})), (200, -32_602)),
        (request("server/discover", json!({})), (200, -32_601)),
        (request("tools/call", json!({"name": "nothing"})), (200, -32_602)),
        (request("tools/call", json!({"name": "search", "arguments": []})), (200, -32_602)),
        (request("tools/list", json!({"cursor": "x"})), (200, -32_602)),
        (request("tools/list", json!([])), (400, -32_600)),
        (json!([request("ping", json!({}))]), (400, -32_600)),
        (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), (400, -32_600)),
        (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), (400, -32_600)),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), (400, -32_600)),
    ] {
        assert_eq!(error_code(&post(&api, &version, &message).await), expected, "{message}");
    }
    let unknown = post(&api, &[("mcp-protocol-version", "2025-03-26")], &request("ping", json!({}))).await;
    assert_eq!(error_code(&unknown), (400, -32_022));
}

#[tokio::test]
async fn endpoint_has_the_rules_of_http() {
    let settings = Settings { cors_origins: vec!["https://app.example".to_owned()], ..Settings::default() };
    let api = TestApi::start_with(settings).await;
    let url = format!("{}/mcp", api.url());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let response = send(api.stack.client.request(method, &url).bearer_auth(&api.key)).await;
        assert_eq!((response.status, response.header("allow")), (405, "POST"));
    }
    send(api.stack.client.post(&url).json(&ping)).await.problem(401, "UNAUTHORIZED");
    for (origin, status) in [
        ("https://app.example", 200),
        (api.url(), 200),
        ("https://evil.example", 403),
        ("http://localhost", 403),
        ("null", 403),
    ] {
        assert_eq!(post(&api, &[("origin", origin)], &ping).await.status, status, "{origin}");
    }
    // The host that a hostile page gave this machine.
    let rebound = [("origin", "http://evil.example"), ("host", "evil.example")];
    assert_eq!(post(&api, &rebound, &ping).await.status, 403);
    let request = || api.stack.client.post(&url).bearer_auth(&api.key);
    let malformed = send(request().header("content-type", "application/json").body("{")).await;
    assert_eq!(error_code(&malformed), (400, -32_700));
    assert_eq!(malformed.header("content-type"), "application/json");
    let form = send(request().header("content-type", "text/plain").body("{}")).await;
    assert_eq!(error_code(&form), (415, -32_600));
    let text = send(request().header("accept", "text/html").json(&ping)).await;
    text.problem(406, "NOT_ACCEPTABLE");
    let browser =
        request().header("accept", "application/json, text/event-stream").header("accept-encoding", "gzip");
    let tools = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(send(browser.json(&tools)).await.ok(200).header("content-encoding"), "gzip");
}

#[tokio::test]
async fn calls_count_against_the_keys_limit() {
    let mut api = TestApi::start().await;
    api.organization.key = api.create_key(NewKey { rate_limit: Some(3), ..NewKey::named("limited") }).await;
    let first = call_method(&api, "tools/list", json!({})).await.ok(200);
    assert_eq!(first.header("x-ratelimit-remaining"), "2");
    // A call is one request, whatever it does.
    call_tool(&api, "list_collections", json!({})).await.unwrap();
    assert_eq!(api.get("/v2/whoami").await.ok(200).header("x-ratelimit-remaining"), "0");
    let rejected = call_method(&api, "tools/list", json!({})).await.problem(429, "RATE_LIMITED");
    assert!(!rejected.header("retry-after").is_empty());
}

#[tokio::test]
async fn keys_that_only_read_have_no_tools_that_write() {
    let mut api = TestApi::start().await;
    let names = |tools: &[Value]| {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = list_tools(&api).await;
    let (reads, writes): (Vec<_>, Vec<_>) =
        all.iter().cloned().partition(|tool| tool["annotations"]["readOnlyHint"] == true);
    assert_eq!(names(&writes), ["track_accounts", "track_videos", "refresh", "create_collection"]);
    api.organization.key =
        api.create_key(NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") }).await;
    assert_eq!(names(&list_tools(&api).await), names(&reads));
    let problem = call_tool(&api, "create_collection", json!({"name": "A"})).await.unwrap_err();
    assert_eq!((&problem["code"], &problem["status"]), (&json!("INSUFFICIENT_SCOPE"), &json!(403)));
    call_tool(&api, "list_collections", json!({})).await.unwrap();
}
