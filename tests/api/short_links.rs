//! Short links of TikTok, resolved within the request that names one.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::{SandboxServer, start};
use tidemark::sandbox::world::{Fault, World};

use crate::harness::{Response, TestApi, send};

/// A platform of the test's own.
async fn sandbox() -> SandboxServer {
    let world = World::open(Population::new(5, 8), None, None).unwrap();
    start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap()
}

/// An API that asks there about short links.
async fn api(sandbox: &SandboxServer) -> TestApi {
    let short_link_url = Some(format!("{}/short", sandbox.url).parse().unwrap());
    TestApi::start_with(Settings { short_link_url, ..Settings::default() }).await
}

/// A video of the sandbox, by its id.
fn some_video(sandbox: &SandboxServer) -> String {
    let accounts = sandbox.world.population().accounts();
    let account = accounts.iter().find(|account| account.platform == Platform::Tiktok).unwrap();
    account.posts_at(sandbox.world.now()).next().unwrap().id
}

fn link(code: &str) -> Value {
    json!({"platform": "tiktok", "identifier": format!("https://vm.tiktok.com/{code}/?k=1")})
}

async fn under(api: &TestApi, key: &str, body: Value) -> Response {
    send(api.request(Method::POST, "/v2/videos").header("Idempotency-Key", key).json(&body)).await
}

#[tokio::test]
async fn a_short_link_adds_the_video_that_it_leads_to() {
    let sandbox = sandbox().await;
    let api = api(&sandbox).await;
    let id = some_video(&sandbox);
    let made = api.post("/v2/videos", link(&format!("ZM{id}"))).await.ok(201);
    assert_eq!(made.json["data"]["external_id"], id.as_str());
    let again = json!({"platform": "tiktok", "identifier": format!("tiktok.com/t/ZM{id}")});
    assert_eq!(api.post("/v2/videos", again).await.status, 409);
}

#[tokio::test]
async fn one_that_leads_to_no_video_is_422_and_a_platform_that_fails_is_502() {
    let sandbox = sandbox().await;
    let api = api(&sandbox).await;
    for code in ["ZM1", "nothing"] {
        assert_eq!(api.post("/v2/videos", link(code)).await.fields(), ["identifier"], "{code}");
    }
    let code = format!("ZM{}", some_video(&sandbox));
    for fault in [Fault::Error, Fault::RateLimit, Fault::Html] {
        sandbox.world.fail_next(Platform::Tiktok, fault, 1);
        let failed = api.post("/v2/videos", link(&code)).await;
        assert_eq!((failed.status, failed.header("content-type")), (502, "application/problem+json"));
        assert_eq!(failed.json["code"], "UPSTREAM_ERROR");
        assert!(!failed.body_text().contains("127.0.0.1"), "{failed}");
    }
    // What is wrong with the rest is told before anybody is asked.
    sandbox.world.fail_next(Platform::Tiktok, Fault::Error, 1);
    let wrong = json!({"platform": "tiktok", "identifier": "vm.tiktok.com/ZMx", "scrape_interval_hours": 1});
    assert_eq!(api.post("/v2/videos", wrong).await.fields(), ["scrape_interval_hours"]);
    assert_eq!(sandbox.world.next_fault(Platform::Tiktok), Some(Fault::Error));
    assert_eq!(api.post("/v2/videos", link(&code)).await.status, 201);
}

#[tokio::test]
async fn a_retry_is_answered_without_asking_again() {
    let sandbox = sandbox().await;
    let api = api(&sandbox).await;
    let body = link(&format!("ZM{}", some_video(&sandbox)));
    sandbox.world.fail_next(Platform::Tiktok, Fault::Error, 1);
    assert_eq!(under(&api, "k", body.clone()).await.status, 502, "which is not kept");
    let first = under(&api, "k", body.clone()).await.ok(201);
    sandbox.stop().await;
    let retry = under(&api, "k", body).await;
    assert_eq!((retry.status, &retry.body), (first.status, &first.body));
    assert_eq!(retry.header("idempotent-replayed"), "true");
    assert_eq!(retry.header("location"), first.header("location"));
    assert_eq!(under(&api, "k", link("ZMother")).await.fields(), ["Idempotency-Key"]);
    assert_eq!(under(&api, "other", link("ZMother")).await.status, 502);
}

#[tokio::test]
async fn nothing_is_held_while_the_platform_is_asked() {
    let api = TestApi::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short_link_url = Some(format!("http://{}", silent.local_addr().unwrap()).parse().unwrap());
    let settings = Arc::new(Settings { short_link_url, ..Settings::default() });
    let options = api.pg().connect_options().as_ref().clone();
    let pg = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let narrow = api.start_another(App { pg, settings, ..api.app.clone() }).await;
    let request = narrow.request(Method::POST, "/v2/videos").header("Idempotency-Key", "slow");
    let waiting = tokio::spawn(send(request.json(&link("ZMslow"))));
    let _asked = silent.accept().await.unwrap();
    assert_eq!(narrow.get("/v2/videos").await.status, 200, "the only connection is free");
    waiting.abort();
}
