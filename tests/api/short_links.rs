//! Short links, resolved while a video is created.

use std::sync::Arc;

use harness::{Response, TestApi, send};
use reqwest::Method;
use sandbox::Fault;
use sandbox::population::Population;
use sandbox::server::{SandboxServer, start};
use sandbox::world::World;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;
use tidemark::app::{App, Settings};

async fn start_sandbox() -> SandboxServer {
    let world = World::open(Population::new(5, 8), None, Some(harness::now())).unwrap();
    start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap()
}

/// Starts an API that resolves short links at the sandbox.
async fn start_api(sandbox: &SandboxServer) -> TestApi {
    let short_link_url = Some(format!("{}/short", sandbox.url).parse().unwrap());
    TestApi::start_with(Settings { short_link_url, ..Settings::default() }).await
}

/// The id of a TikTok video of the sandbox.
fn video_id(sandbox: &SandboxServer) -> String {
    let accounts = sandbox.world.population().accounts();
    let account = accounts.iter().find(|account| account.platform == sandbox::Platform::Tiktok).unwrap();
    account.posts_at(sandbox.world.now()).next().unwrap().id
}

fn link(code: &str) -> Value {
    json!({"platform": "tiktok", "identifier": format!("https://vm.tiktok.com/{code}/?k=1")})
}

async fn create_with_key(api: &TestApi, key: &str, body: Value) -> Response {
    send(api.request(Method::POST, "/v2/videos").header("Idempotency-Key", key).json(&body)).await
}

#[tokio::test]
async fn short_link_creates_its_video() {
    let sandbox = start_sandbox().await;
    let api = start_api(&sandbox).await;
    let id = video_id(&sandbox);
    let created = api.post("/v2/videos", link(&format!("ZM{id}"))).await.ok(201);
    assert_eq!(created.json["data"]["external_id"], id.as_str());
    for link in ["tiktok.com/t", "lite.tiktok.com/t"] {
        let again = json!({"platform": "tiktok", "identifier": format!("{link}/ZM{id}")});
        assert_eq!(api.post("/v2/videos", again).await.status, 409, "{link}");
    }
}

#[tokio::test]
async fn shared_link_of_instagram_creates_its_video() {
    let sandbox = start_sandbox().await;
    let api = start_api(&sandbox).await;
    let accounts = sandbox.world.population().accounts();
    let account = accounts.iter().find(|account| account.platform == sandbox::Platform::Instagram).unwrap();
    let code = account.posts_at(sandbox.world.now()).next().unwrap().shortcode.unwrap();
    let body = |link: String| json!({"platform": "instagram", "identifier": link});
    let link = format!("https://www.instagram.com/share/reel/BA{code}?igsh=1");
    let created = api.post("/v2/videos", body(link)).await.ok(201);
    assert_eq!(created.json["data"]["shortcode"], code.as_str());
    for path in ["share/p", "share"] {
        let again = api.post("/v2/videos", body(format!("instagram.com/{path}/BA{code}/"))).await;
        assert_eq!(again.status, 409, "{path}");
    }
    let unknown = api.post("/v2/videos", body("instagram.com/share/reel/BAnothing".to_owned())).await;
    assert_eq!(unknown.fields(), ["identifier"]);
    sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Error, 1);
    let failed = api.post("/v2/videos", body(format!("instagram.com/share/BA{code}"))).await;
    assert_eq!(failed.status, 502);
}

#[tokio::test]
async fn unresolved_short_link_is_422_or_502() {
    let sandbox = start_sandbox().await;
    let api = start_api(&sandbox).await;
    for code in ["ZM1", "nothing"] {
        assert_eq!(api.post("/v2/videos", link(code)).await.fields(), ["identifier"], "{code}");
    }
    let code = format!("ZM{}", video_id(&sandbox));
    for fault in [Fault::Error, Fault::RateLimit, Fault::Html] {
        sandbox.world.fail_next(sandbox::Platform::Tiktok, fault, 1);
        let failed = api.post("/v2/videos", link(&code)).await;
        assert_eq!((failed.status, failed.header("content-type")), (502, "application/problem+json"));
        assert_eq!(failed.json["code"], "UPSTREAM_ERROR");
        assert!(!failed.body_text().contains("127.0.0.1"), "{failed}");
    }
    // Other violations are reported before the link is resolved.
    sandbox.world.fail_next(sandbox::Platform::Tiktok, Fault::Error, 1);
    let wrong = json!({"platform": "tiktok", "identifier": "vm.tiktok.com/ZMx", "scrape_interval_hours": 1});
    assert_eq!(api.post("/v2/videos", wrong).await.fields(), ["scrape_interval_hours"]);
    assert_eq!(sandbox.world.next_fault(sandbox::Platform::Tiktok), Some(Fault::Error));
    assert_eq!(api.post("/v2/videos", link(&code)).await.status, 201);
}

#[tokio::test]
async fn retry_does_not_resolve_the_link_again() {
    let sandbox = start_sandbox().await;
    let api = start_api(&sandbox).await;
    let body = link(&format!("ZM{}", video_id(&sandbox)));
    sandbox.world.fail_next(sandbox::Platform::Tiktok, Fault::Error, 1);
    assert_eq!(create_with_key(&api, "k", body.clone()).await.status, 502, "errors are not stored");
    let first = create_with_key(&api, "k", body.clone()).await.ok(201);
    sandbox.stop().await;
    let retry = create_with_key(&api, "k", body).await;
    assert_eq!((retry.status, &retry.body), (first.status, &first.body));
    assert_eq!(retry.header("idempotent-replayed"), "true");
    assert_eq!(retry.header("location"), first.header("location"));
    assert_eq!(create_with_key(&api, "k", link("ZMother")).await.fields(), ["Idempotency-Key"]);
    assert_eq!(create_with_key(&api, "other", link("ZMother")).await.status, 502);
}

#[tokio::test]
async fn resolving_a_link_holds_no_connection() {
    let api = TestApi::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short_link_url = Some(format!("http://{}", silent.local_addr().unwrap()).parse().unwrap());
    let settings = Arc::new(Settings { short_link_url, ..Settings::default() });
    let options = api.pg().connect_options().as_ref().clone();
    let pg = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let single = api.start_another(App { pg, settings, ..api.app.clone() }).await;
    let request = single.request(Method::POST, "/v2/videos").header("Idempotency-Key", "slow");
    let waiting = tokio::spawn(send(request.json(&link("ZMslow"))));
    let _connection = silent.accept().await.unwrap();
    assert_eq!(single.get("/v2/videos").await.status, 200, "the only connection is free");
    create_with_key(&single, "slow", link("ZMslow")).await.problem(409, "CONFLICT");
    waiting.abort();
}
