//! Conventions of all endpoints: error form, request ids, body limits and CORS.

use std::time::Duration;

use harness::{Response, TestApi, send};
use reqwest::{Method, StatusCode};
use salvo::{Router, Server, conn::tcp::TcpAcceptor, handler};
use serde_json::json;
use tidemark::app::Settings;
use tidemark::http::middleware::ParseRequest;
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;
use tidemark::{api, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

/// Asserts a complete problem document.
fn assert_problem(response: &Response, status: u16, code: &str, path: &str) {
    assert_eq!(response.status, status, "{response}");
    assert_eq!(response.header("content-type"), "application/problem+json");
    assert_eq!(response.header("cache-control"), "no-store");
    let problem = &response.json;
    let status_text = StatusCode::from_u16(status).unwrap().canonical_reason().unwrap();
    assert_eq!(problem["title"], status_text);
    assert_eq!(problem["status"], status);
    assert_eq!(problem["code"], code);
    assert_eq!(problem["instance"], path);
    assert_eq!(problem["request_id"], response.header("x-request-id"));
    let name = code.to_lowercase().replace('_', "-");
    assert_eq!(problem["type"], format!("urn:tidemark:error:{name}"));
    assert!(!problem["detail"].as_str().unwrap().is_empty());
    assert_eq!(problem.get("errors").is_some(), status == 422);
}

#[tokio::test]
async fn unknown_path_or_method_needs_no_key() {
    let api = TestApi::start().await;
    let fetch = |method: Method, path: &'static str| {
        send(api.stack.client.request(method, format!("{}{path}", api.url())))
    };
    for path in ["/nothing", "/v2", "/v2/nothing", "/v2/accounts/a/b/c", "/v3/accounts"] {
        assert_problem(&fetch(Method::GET, path).await, 404, "NOT_FOUND", path);
    }
    for (method, path, allow) in [
        (Method::DELETE, "/v2/accounts", "GET, HEAD, POST"),
        (Method::PUT, "/v2/accounts/x", "DELETE, GET, HEAD, PATCH"),
        (Method::POST, "/v2/health", "GET, HEAD"),
        (Method::POST, "/v2/creators/x/accounts/y", "DELETE, GET, HEAD, PUT"),
        // A literal segment is not an id, with any method.
        (Method::DELETE, "/v2/accounts/stats", "GET, HEAD"),
        (Method::PATCH, "/v2/accounts/stats", "GET, HEAD"),
        (Method::OPTIONS, "/v2/accounts", "GET, HEAD, POST"),
    ] {
        let response = fetch(method.clone(), path).await;
        assert_problem(&response, 405, "METHOD_NOT_ALLOWED", path);
        assert_eq!(response.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let api = TestApi::start().await;
    let fetch = |path: &str, id: &str| {
        let request = api.request(Method::GET, path);
        send(if id.is_empty() { request } else { request.header("X-Request-ID", id) })
    };
    for path in ["/v2/health", "/v2/accounts", "/v2/nothing", "/v2/accounts/x"] {
        assert_eq!(fetch(path, "Mine-1._:/").await.header("x-request-id"), "Mine-1._:/");
        for id in ["", "with space", &"x".repeat(129), "quote\""] {
            let given = fetch(path, id).await.header("x-request-id").to_owned();
            assert!(
                given != id && Uuid::try_parse(&given).is_ok_and(|id| id.get_version_num() == 7),
                "{given}"
            );
        }
    }
    for path in ["/v2/health", "/v2/accounts", "/v2/nothing", "/docs", "/docs/swagger-ui.css", "/v1/nothing"]
    {
        let response = fetch(path, "").await;
        assert_eq!(
            (response.header("x-content-type-options"), response.header("server")),
            ("nosniff", ""),
            "{path}"
        );
    }
    let tag = fetch("/v2/accounts", "").await.header("etag").to_owned();
    let cached = send(api.request(Method::GET, "/v2/accounts").header("If-None-Match", tag)).await;
    assert_eq!(cached.status, 304);
    assert!(Uuid::try_parse(cached.header("x-request-id")).is_ok());
}

/// Sends a request with everything wrong, and corrects what each response reports.
#[tokio::test]
async fn request_checks_follow_the_documented_order() {
    let api = TestApi::start().await;
    let reader = api.create_key(NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") }).await;
    let spent = api
        .create_key(NewKey { rate_limit: Some(1), scopes: vec![Scope::Read], ..NewKey::named("spent") })
        .await;
    send(api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(&spent)).await;
    let fetch = |key: &str, accept: &str, kind: &str, body: Vec<u8>, query: &str| {
        let request = api.stack.client.post(format!("{}/v2/accounts{query}", api.url()));
        let request = request.header("Authorization", format!("Bearer {key}")).header("Accept", accept);
        send(request.header("Content-Type", kind).header("Idempotency-Key", "ключ".as_bytes()).body(body))
    };
    let long = || vec![b'{'; 1024 * 1024 + 1];
    let good = &api.key;
    for (response, status, code) in [
        (fetch("none", "text/html", "text/plain", long(), "?x=%ff").await, 401, "UNAUTHORIZED"),
        (fetch(&spent, "text/html", "text/plain", long(), "?x=%ff").await, 429, "RATE_LIMITED"),
        (fetch(&reader, "text/html", "text/plain", long(), "?x=%ff").await, 403, "INSUFFICIENT_SCOPE"),
        (fetch(good, "text/html", "text/plain", long(), "?x=%ff").await, 406, "NOT_ACCEPTABLE"),
        (fetch(good, "*/*", "text/plain", long(), "?x=%ff").await, 415, "UNSUPPORTED_MEDIA_TYPE"),
        (fetch(good, "*/*", "application/json", long(), "?x=%ff").await, 413, "PAYLOAD_TOO_LARGE"),
        (fetch(good, "*/*", "application/json", b"{".to_vec(), "?x=%ff").await, 400, "BAD_REQUEST"),
        (fetch(good, "*/*", "application/json", b"{}".to_vec(), "?x=%ff").await, 400, "BAD_REQUEST"),
        (fetch(good, "*/*", "application/json", b"{}".to_vec(), "").await, 422, "VALIDATION_ERROR"),
    ] {
        assert_problem(&response, status, code, "/v2/accounts");
    }
}

#[tokio::test]
async fn body_must_be_json_of_bounded_size() {
    let api = TestApi::start().await;
    let post = |kind: &str, body: Vec<u8>| {
        send(api.request(Method::POST, "/v2/creators").header("Content-Type", kind).body(body))
    };
    for (kind, body, status) in [
        ("application/json; charset=utf-8", r#"{"name": "É"}"#.as_bytes(), 201),
        ("Application/JSON", br#"{"name": "b"}"#, 201),
        ("text/json", br#"{"name": "c"}"#, 415),
        ("application/x-www-form-urlencoded", b"name=d", 415),
        ("application/json", b"", 400),
        ("application/json", b"{\"name\": \"\xff\"}", 400),
        ("application/json", b"{\"name\": \"x\",}", 400),
        ("application/json", br#"{"name": "\ud800"}"#, 400),
    ] {
        assert_eq!(post(kind, body.to_vec()).await.status, status, "{kind} {body:?}");
    }
    assert_eq!(send(api.request(Method::POST, "/v2/creators")).await.status, 415);
    let zipped = api.request(Method::POST, "/v2/creators").header("Content-Encoding", "gzip");
    assert_eq!(send(zipped.json(&json!({"name": "x"}))).await.status, 415);
    let id = Uuid::now_v7();
    assert_eq!(api.put(&format!("/v2/creators/{id}/accounts/{id}")).await.status, 404);
    assert_eq!(api.delete(&format!("/v2/creators/{id}")).await.status, 404);
    let body =
        api.request(Method::DELETE, &format!("/v2/creators/{id}")).header("Content-Type", "text/plain");
    assert_eq!(send(body.body("x")).await.status, 415);
}

#[tokio::test]
async fn too_long_body_is_413_with_any_transfer_encoding() {
    let api = TestApi::start().await;
    let host = api.url().strip_prefix("http://").unwrap().to_owned();
    let head = format!(
        "POST /v2/creators HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\n",
        api.key
    );
    let size = 3 * 1024 * 1024;
    let declared = format!("{head}Content-Length: {size}\r\n\r\n{}", "x".repeat(size));
    let chunk = format!("{:x}\r\n{}\r\n", 65536, "x".repeat(65536));
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(size / 65536));
    for request in [declared, chunked] {
        let mut connection = tokio::net::TcpStream::connect(&host).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
        assert!(response.contains("\"title\":\"Payload Too Large\""), "{response}");
    }
    let name = "x".repeat(1024 * 1024 - 11);
    let just_fits = format!("{{\"name\":\"{name}\"}}");
    assert_eq!(just_fits.len(), 1024 * 1024);
    let request = api.request(Method::POST, "/v2/creators").header("Content-Type", "application/json");
    assert_eq!(send(request.body(just_fits)).await.fields(), ["name"]);
}

#[tokio::test]
async fn empty_chunked_body_is_none() {
    let api = TestApi::start().await;
    let host = api.url().strip_prefix("http://").unwrap();
    let account = json!({"platform": "tiktok", "username": "one", "is_active": false});
    let account = api.create("/v2/accounts", account).await;
    let (refresh, unknown) = (format!("POST /v2/accounts/{account}/refresh"), Uuid::now_v7());
    let (link, creator) =
        (format!("PUT /v2/creators/{unknown}/accounts/{account}"), format!("DELETE /v2/creators/{unknown}"));
    for (line, chunks, status) in [
        (&*refresh, "", 202),
        (&*refresh, "2\r\n{}\r\n", 415),
        (&*link, "", 404),
        (&*creator, "", 404),
        (&*creator, "1\r\nx\r\n", 415),
        ("GET /v2/creators", "", 200),
        ("POST /v2/creators", "", 415),
    ] {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n",
            api.key
        );
        let mut connection = tokio::net::TcpStream::connect(host).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {chunks:?}: {response}");
    }
}

/// A client that sends all of a request before it reads gets the response instead of a connection reset.
#[tokio::test]
async fn rejected_request_is_drained() {
    let api = TestApi::start().await;
    let host = api.url().strip_prefix("http://").unwrap();
    let size = 16 * 1024 * 1024;
    let body = "x".repeat(size);
    for (line, key, kind, status) in [
        ("POST /v2/accounts", api.key.as_str(), "text/plain", 415),
        ("POST /v2/accounts", "none", "application/json", 401),
        ("PATCH /v2/videos/deltas", api.key.as_str(), "application/json", 405),
        ("POST /v1/nothing", api.key.as_str(), "application/json", 404),
    ] {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: {kind}\r\nContent-Length: {size}\r\n\r\n"
        );
        let mut connection = tokio::net::TcpStream::connect(host).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(body.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {response}");
    }
}

#[handler]
async fn accept_body() -> &'static str {
    "accepted"
}

#[tokio::test]
async fn slow_body_is_400_and_closes_the_connection() {
    let api = TestApi::start().await;
    let impatient = ParseRequest { body_timeout: Duration::from_millis(50) };
    let routes = Router::new()
        .push(Router::with_path("slow").hoop(impatient).post(accept_body))
        .push(Router::with_path("normal").hoop(ParseRequest::default()).post(accept_body));
    let url = serve_routes(&api, routes).await;
    let host = url.strip_prefix("http://").unwrap();
    let head = format!("POST /slow HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
    for request in [
        format!("{head}Content-Length: 9\r\n\r\n{{"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n"),
    ] {
        let mut connection = tokio::net::TcpStream::connect(host).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        assert!(
            response.starts_with("HTTP/1.1 400 ") && response.contains("\"code\":\"BAD_REQUEST\""),
            "{response}"
        );
        assert!(response.contains("did not arrive") && response.contains("connection: close"), "{response}");
    }
    let complete = api.stack.client.post(format!("{url}/normal")).json(&json!({}));
    assert_eq!(send(complete).await.body_text(), "accepted");
}

#[tokio::test]
async fn empty_patch_changes_nothing() {
    let api = TestApi::start().await;
    let creator = format!("/v2/creators/{}", api.create("/v2/creators", json!({"name": "one"})).await);
    let account = json!({"platform": "tiktok", "username": "one"});
    let account = format!("/v2/accounts/{}", api.create("/v2/accounts", account).await);
    for path in [creator, account] {
        let before = api.get(&path).await;
        let patched = api.patch(&path, json!({})).await;
        assert_eq!((patched.status, &patched.body), (200, &before.body));
        assert_eq!(api.get(&path).await.header("etag"), before.header("etag"));
    }
    for path in ["/v2/creators", "/v2/accounts"] {
        let unknown = format!("{path}/{}", Uuid::now_v7());
        assert_eq!(api.patch(&unknown, json!({})).await.status, 404);
    }
}

#[tokio::test]
async fn cors_allows_only_listed_origins() {
    let api = TestApi::start().await;
    let with_origin = |api: &TestApi, method: Method, path: &str| {
        let request = api.stack.client.request(method, format!("{}{path}", api.url()));
        send(request.header("Origin", "https://app.example").header("Access-Control-Request-Method", "GET"))
    };
    let rejected = with_origin(&api, Method::OPTIONS, "/v2/accounts").await;
    assert_eq!((rejected.status, rejected.header("access-control-allow-origin")), (405, ""));
    let origins = vec!["https://other.example".to_owned(), "https://app.example".to_owned()];
    let api = TestApi::start_with(Settings { cors_origins: origins, ..Settings::default() }).await;
    let preflight = with_origin(&api, Method::OPTIONS, "/v2/accounts").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), "https://app.example");
    assert!(preflight.header("access-control-allow-headers").to_lowercase().contains("authorization"));
    for path in ["/v2/meta", "/v2/accounts", "/v2/nothing"] {
        let response = with_origin(&api, Method::GET, path).await;
        assert_eq!(response.header("access-control-allow-origin"), "https://app.example", "{path}");
        let exposed = response.header("access-control-expose-headers").to_lowercase();
        for name in ["x-request-id", "x-ratelimit-reset", "etag", "link", "location", "retry-after"] {
            assert!(exposed.contains(name), "{path} {exposed}");
        }
    }
}

/// Serves routes of a test with the middleware of the API.
pub(crate) async fn serve_routes(api: &TestApi, routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = http::service(routes, api::DeprecationHeaders, &api.app);
    tokio::spawn(Server::new(TcpAcceptor::try_from(listener).unwrap()).serve(service));
    url
}

#[handler]
pub(crate) async fn explode() -> &'static str {
    panic!("the secret reason")
}

#[tokio::test]
async fn panic_is_500_without_details() {
    let api = TestApi::start().await;
    let url = format!("{}/boom", serve_routes(&api, Router::with_path("boom").get(explode)).await);
    let response = send(api.stack.client.get(url).header("X-Request-ID", "boom-1")).await;
    assert_problem(&response, 500, "INTERNAL_ERROR", "/boom");
    assert_eq!(response.header("x-request-id"), "boom-1");
    assert!(!response.body_text().contains("secret"), "{response}");
}

#[tokio::test]
async fn too_long_id_list_is_one_violation() {
    let api = TestApi::start().await;
    let ids = |count: usize| (0..count).map(|n| format!("x{n}")).collect::<Vec<_>>();
    let response = api.get(&format!("/v2/videos/metrics?video_ids={}", ids(100).join(","))).await;
    assert_eq!(response.fields().len(), 100);
    for separator in [",", "&video_ids="] {
        for count in [101, 3_000] {
            let ids = ids(count).join(separator);
            let response = api.get(&format!("/v2/videos/metrics?video_ids={ids}")).await;
            assert!(response.body_text().len() < 1000, "{} bytes", response.body_text().len());
            assert_eq!(response.fields(), ["video_ids"]);
        }
    }
}

#[tokio::test]
async fn list_accepts_commas_and_repeated_parameters() {
    let api = TestApi::start().await;
    let ids: Vec<_> = (0..4).map(|_| Uuid::now_v7().to_string()).collect();
    let [a, b, c, d] = &ids[..] else { unreachable!() };
    let expected = api.get(&format!("/v2/accounts/metrics?account_ids={a},{b},{c},{d}")).await.ok(200);
    assert_eq!(expected.list("/meta/not_found"), &json!(ids).as_array().unwrap()[..]);
    for query in [
        format!("account_ids={a}&account_ids={b}&account_ids={c}&account_ids={d}"),
        format!("account_ids={a},{b}&account_ids={c}&account_ids={d},{a}"),
        format!("account_ids={a}&period=30d&account_ids={b},{}&account_ids={c},{d}", a.to_uppercase()),
    ] {
        let found = api.get(&format!("/v2/accounts/metrics?{query}")).await.ok(200);
        assert_eq!((&found.json, found.header("etag")), (&expected.json, expected.header("etag")), "{query}");
    }
}

#[tokio::test]
async fn repetitions_in_a_list_count_once() {
    let api = TestApi::start().await;
    let mut ids: Vec<_> = (0..100).map(|_| Uuid::now_v7().to_string()).collect();
    ids.push(ids[0].to_uppercase());
    let found = api.get(&format!("/v2/accounts/metrics?account_ids={}", ids.join(","))).await.ok(200);
    assert_eq!(found.list("/meta/not_found").len(), 100);
    ids.push(Uuid::now_v7().to_string());
    let response = api.get(&format!("/v2/accounts/metrics?account_ids={}", ids.join("&account_ids="))).await;
    assert_eq!(response.fields(), ["account_ids"]);
    let (id, sevens, invalid) = (&ids[0], ["7"; 20].join(","), ["x"; 101].join(","));
    let path = format!("/v2/videos/deltas?video_ids={id}&windows={sevens}");
    assert_eq!(api.get(&path).await.ok(200).json["meta"]["windows"], json!([7]));
    let response = api.get(&format!("/v2/accounts/metrics?account_ids={id},{invalid}")).await;
    assert_eq!(response.fields(), ["account_ids[1]"]);
}
