//! `tidemark mcp`, which speaks over standard input and output.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use harness::TestApi;
use salvo::conn::tcp::TcpAcceptor;
use salvo::{Request, Response, Router, Server, handler};
use serde_json::{Value, json};

use crate::{call_method, call_tool, meta};

/// Writes lines to the program, closes its input, and returns what it wrote.
async fn run(url: &str, key: &str, lines: Vec<String>) -> Output {
    let mut command: Command = harness::command();
    command.arg("mcp").env("TIDEMARK_URL", url).env("TIDEMARK_API_KEY", key);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let exchange = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        child.wait_with_output().unwrap()
    });
    exchange.await.unwrap()
}

/// Sends messages, and returns the responses in the order of their ids.
async fn responses(url: &str, key: &str, messages: &[Value]) -> Vec<Value> {
    let output = run(url, key, messages.iter().map(Value::to_string).collect()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut responses: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    responses.sort_by_key(|response| response["id"].as_i64());
    responses
}

fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn responses_are_those_over_http() {
    let api = TestApi::start().await;
    api.create("/v2/collections", json!({"name": "Größe\n1"})).await;
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let call = json!({"name": "list_collections", "arguments": {"q": "größe"}});
    let messages = [
        request(1, "initialize", client),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        request(2, "tools/call", call.clone()),
        request(3, "server/discover", json!({"_meta": meta()})),
        request(
            4,
            "tools/call",
            json!({"name": "list_collections", "arguments": {"q": "größe"}, "_meta": meta()}),
        ),
        request(5, "nothing", json!({"_meta": meta()})),
    ];
    let collections = call_tool(&api, "list_collections", json!({"q": "größe"})).await.unwrap();
    assert_eq!(collections["data"].as_array().unwrap().len(), 1);
    for url in [api.url().to_owned(), format!("{}/v2", api.url()), format!("{}/v2/", api.url())] {
        let found = responses(&url, &api.key, &messages).await;
        let ids: Vec<_> = found.iter().map(|response| response["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5], "{found:?}");
        assert_eq!(found[0]["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(found[1]["result"]["structuredContent"], collections);
        let discovered = call_method(&api, "server/discover", json!({})).await;
        assert_eq!(&found[2]["result"], discovered.at("/result"));
        assert_eq!(found[3]["result"]["structuredContent"], collections);
        assert_eq!(found[4]["error"]["code"], -32_601);
    }
}

#[tokio::test]
async fn every_request_gets_a_response() {
    let api = TestApi::start().await;
    let ping = [request(1, "ping", json!({}))];
    let rejected = responses(api.url(), "tdm_unknown", &ping).await;
    assert_eq!((&rejected[0]["id"], &rejected[0]["error"]["code"]), (&json!(1), &json!(-32_603)));
    assert!(rejected[0]["error"]["message"].as_str().unwrap().contains("API key"), "{rejected:?}");
    let unreachable = responses("http://127.0.0.1:1", &api.key, &ping).await;
    assert!(unreachable[0]["error"]["message"].as_str().unwrap().contains("127.0.0.1:1"), "{unreachable:?}");
    // Not below the API.
    let elsewhere = responses(&format!("{}/docs", api.url()), &api.key, &ping).await;
    assert!(elsewhere[0]["error"]["message"].is_string(), "{elsewhere:?}");
    let output = run(api.url(), &api.key, vec!["{".to_owned(), String::new(), ping[0].to_string()]).await;
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && lines.lines().count() == 2 && lines.contains("-32700"), "{lines}");
    for line in lines.lines().chain([&*String::from_utf8(output.stderr).unwrap()]) {
        assert!(!line.contains(&api.key), "{line}");
    }
}

/// Responds to requests, but never to that with id 1.
#[handler]
async fn respond_to_others(req: &mut Request, res: &mut Response) {
    let message: Value = serde_json::from_slice(req.payload().await.unwrap()).unwrap();
    if message["id"] == 1 {
        std::future::pending::<()>().await;
    }
    res.render(json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}).to_string());
}

#[tokio::test]
async fn canceled_request_takes_no_other_response_along() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::with_path("mcp").post(respond_to_others);
    tokio::spawn(Server::new(TcpAcceptor::try_from(listener).unwrap()).serve(routes));
    let call = |id: i64| request(id, "tools/call", json!({"name": "search", "arguments": {"q": "tide"}}));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let found = responses(&url, "tdm_x", &[call(1), cancel, call(2)]).await;
    assert_eq!(found, [json!({"jsonrpc": "2.0", "id": 2, "result": {}})]);
}

#[tokio::test]
async fn url_must_be_of_an_api() {
    let output = run("ftp://127.0.0.1", "tdm_x", vec![]).await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("must begin with http"), "{error}");
}
