//! The deprecated v1: its response form, its deprecation headers, and that it does what v2 does.

use chrono::{DateTime, NaiveDate, Utc};
use harness::{Response, TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::model::organization::{KeyStatus, Scope};
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

use crate::conventions::{explode, serve_routes};

/// Asserts the deprecation headers.
fn assert_deprecated(response: &Response) {
    assert_eq!(response.header("deprecation"), "@1767225600", "{response:?}");
    assert_eq!(response.header("sunset"), "Sat, 01 Jan 2028 00:00:00 GMT");
    assert!(response.header("link").ends_with("/v2>; rel=\"successor-version\""), "{response:?}");
    assert!(response.header("link").starts_with("<http://127.0.0.1:"), "{response:?}");
}

/// Asserts a success and returns its value.
fn succeeded(response: &Response, name: &str) -> Value {
    assert_deprecated(response);
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"), "{response:?}");
    let body = response.json.clone();
    assert_eq!((&body["success"], body.as_object().unwrap().len()), (&json!(true), 2), "{body}");
    body[name].clone()
}

/// Asserts an error and returns its text.
fn failed(response: &Response, status: u16) -> String {
    assert_deprecated(response);
    assert_eq!(
        (response.status, response.header("content-type")),
        (status, "application/json"),
        "{response:?}"
    );
    assert_eq!(response.header("cache-control"), "no-store");
    assert_ne!(response.header("x-request-id"), "");
    let body = response.json.clone();
    assert_eq!((&body["success"], body.as_object().unwrap().len()), (&json!(false), 2), "{body}");
    body["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn v1_accounts_match_v2() {
    let api = TestApi::start().await;
    let added = api.post("/v1/addAccount", json!({"platform": "tiktok", "username": "@One"})).await;
    let account = succeeded(&added, "account");
    assert_eq!((&account["username"], &account["is_active"]), (&json!("one"), &json!(true)));
    let path = format!("/v2/accounts/{}", account["id"].as_str().unwrap());
    assert_eq!(api.get(&path).await.json["data"], account);
    let id = json!({"account_id": account["id"]});
    for (verb, active) in [("deactivate", false), ("deactivate", false), ("activate", true)] {
        let account = succeeded(&api.post(&format!("/v1/{verb}Account"), id.clone()).await, "account");
        assert_eq!(account["is_active"], active);
        assert_eq!(api.get(&path).await.json["data"], account);
    }
    for name in ["two", "three"] {
        api.create("/v2/accounts", json!({"platform": "instagram", "username": name})).await;
    }
    let all = succeeded(&api.get("/v1/getAccounts").await, "accounts");
    assert_eq!(all, api.get("/v2/accounts").await.json["data"]);
    for (query, expected) in [
        ("limit=2", &["three", "two"][..]),
        ("limit=2&offset=2", &["one"]),
        ("offset=3", &[]),
        ("offset=1", &["two", "one"]),
    ] {
        let list = succeeded(&api.get(&format!("/v1/getAccounts?{query}")).await, "accounts");
        let names: Vec<_> = list.as_array().unwrap().iter().map(|account| &account["username"]).collect();
        assert_eq!(names, expected, "{query}");
    }
    let far = succeeded(&api.get(&format!("/v1/getAccounts?offset={}", i64::MAX)).await, "accounts");
    assert_eq!(far, json!([]));
}

#[tokio::test]
async fn v1_videos_match_v2() {
    let api = TestApi::start().await;
    let instagram = "https://www.instagram.com/someone/reel/Cbb22_-/?igsh=1";
    let tiktok = "https://m.tiktok.com/@someone/video/7301234567890123456";
    for (verb, body, field, value) in [
        ("addInstagramPost", json!({"shortcode": "Caa11_-"}), "shortcode", "Caa11_-"),
        ("addInstagramPost", json!({"url": instagram}), "shortcode", "Cbb22_-"),
        ("addTiktokVideo", json!({"video_id": "7301234567890123455"}), "external_id", "7301234567890123455"),
        ("addTiktokVideo", json!({"url": tiktok}), "external_id", "7301234567890123456"),
    ] {
        let path = format!("/v1/{verb}");
        let video = succeeded(&api.post(&path, body.clone()).await, "video");
        assert_eq!((&video[field], &video["is_active"]), (&json!(value), &json!(true)), "{body}");
        assert_eq!(
            api.get(&format!("/v2/videos/{}", video["id"].as_str().unwrap())).await.json["data"],
            video
        );
        assert!(failed(&api.post(&path, body).await, 409).contains("already tracked"));
    }
    for (verb, list, platform) in
        [("getInstagramPosts", "posts", "instagram"), ("getTiktokVideos", "videos", "tiktok")]
    {
        let all = succeeded(&api.get(&format!("/v1/{verb}")).await, list);
        assert_eq!(all, api.get(&format!("/v2/videos?platform={platform}")).await.json["data"]);
        let second = succeeded(&api.get(&format!("/v1/{verb}?limit=1&offset=1")).await, list);
        assert_eq!((all.as_array().unwrap().len(), &second), (2, &json!([all[1]])));
        let id = json!({"video_id": all[0]["id"]});
        for (verb, active) in [("deactivate", false), ("activate", true)] {
            let video = succeeded(&api.post(&format!("/v1/{verb}Video"), id.clone()).await, "video");
            assert_eq!((&video["id"], &video["is_active"]), (&all[0]["id"], &json!(active)));
        }
    }
    for (verb, body, expected) in [
        ("addInstagramPost", json!({}), "shortcode is required, or else url"),
        (
            "addInstagramPost",
            json!({"shortcode": "Caa11", "url": instagram}),
            "url must not be given beside shortcode",
        ),
        ("addInstagramPost", json!({"shortcode": 7}), "shortcode must be a string"),
        ("addInstagramPost", json!({"url": tiktok}), "url "),
        ("addInstagramPost", json!({"video_id": "1"}), "video_id is not a field"),
        ("addTiktokVideo", json!({"video_id": "x"}), "video_id "),
        ("activateVideo", json!({"video_id": "7301234567890123456"}), "video_id must be a UUID"),
    ] {
        let error = failed(&api.post(&format!("/v1/{verb}"), body.clone()).await, 422);
        assert!(error.contains(expected), "{body} {error}");
    }
    failed(&api.post("/v1/activateVideo", json!({"video_id": Uuid::now_v7()})).await, 404);
}

#[tokio::test]
async fn v1_errors_match_v2() {
    let api = TestApi::start().await;
    let account = json!({"platform": "tiktok", "username": "one"});
    succeeded(&api.post("/v1/addAccount", account.clone()).await, "account");
    assert!(failed(&api.post("/v1/addAccount", account).await, 409).contains("already tracked"));
    let error = failed(&api.post("/v1/addAccount", json!({"platform": "x", "color": 1})).await, 422);
    for violation in
        ["username is required", "platform must be one of instagram, tiktok", "color is not a field"]
    {
        assert!(error.contains(violation), "{error}");
    }
    for query in ["limit=0", "limit=201", "limit=", "offset=-1", "offset=x", "limit=1&limit=1"] {
        failed(&api.get(&format!("/v1/getAccounts?{query}")).await, 422);
    }
    let foreign = json!({"account_id": Uuid::now_v7()});
    for verb in ["activate", "deactivate"] {
        let path = format!("/v1/{verb}Account");
        failed(&api.post(&path, foreign.clone()).await, 404);
        failed(&api.post(&path, json!({"account_id": "@one"})).await, 422);
        failed(&api.post(&path, json!({})).await, 422);
    }
    failed(&api.get("/v1/getAccounts?limit=%ff").await, 400);
    let capped = OrganizationChange { account_cap: Some(Some(1)), ..Default::default() };
    organizations::update(api.pg(), api.organization.id, &capped).await.unwrap();
    failed(&api.post("/v1/addAccount", json!({"platform": "tiktok", "username": "two"})).await, 403);
}

#[tokio::test]
async fn v1_middleware_errors_have_v1_form() {
    let api = TestApi::start().await;
    let url = format!("{}/v1/addAccount", api.url());
    let error = failed(&send(api.stack.client.post(&url)).await, 401);
    assert!(error.contains("API key"), "{error}");
    let reader = api.create_key(NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") }).await;
    let rejected = send(api.stack.client.post(&url).bearer_auth(&reader)).await;
    assert_ne!(rejected.header("x-ratelimit-limit"), "");
    failed(&rejected, 403);
    let disabled = keys::create(api.pg(), api.organization.id, &NewKey::named("off")).await.unwrap();
    keys::set_status(api.pg(), disabled.record.id, KeyStatus::Disabled).await.unwrap();
    failed(&send(api.stack.client.post(&url).bearer_auth(&disabled.key)).await, 403);
    failed(&send(api.request(Method::GET, "/v1/getAccounts").header("Accept", "text/html")).await, 406);
    failed(&send(api.request(Method::POST, "/v1/addAccount").body("x")).await, 415);
    let json = || api.request(Method::POST, "/v1/addAccount").header("Content-Type", "application/json");
    failed(&send(json().body("x".repeat(1024 * 1024 + 1))).await, 413);
    failed(&send(json().body("{")).await, 400);
    for path in ["/v1", "/v1/", "/v1/nothing", "//v1/nothing", "/v1/getAccounts/x"] {
        failed(&send(api.stack.client.get(format!("{}{path}", api.url()))).await, 404);
    }
    let wrong_method = send(api.stack.client.delete(&url)).await;
    assert_eq!(wrong_method.header("allow"), "POST");
    failed(&wrong_method, 405);
    let panicking = serve_routes(&api, salvo::Router::with_path("v1/boom").get(explode)).await;
    let error = failed(&send(api.stack.client.get(format!("{panicking}/v1/boom"))).await, 500);
    assert!(!error.contains("secret"), "{error}");
    let head = send(api.request(Method::HEAD, "/v1/nothing")).await;
    assert_deprecated(&head);
    assert_eq!((head.status, head.body_text()), (404, ""));
}

#[tokio::test]
async fn rate_limit_is_shared_by_both_versions() {
    let api = TestApi::start().await;
    let key = api.create_key(NewKey { rate_limit: Some(5), ..NewKey::named("limited") }).await;
    let list = |version: &str| {
        let path = if version == "v1" { "getAccounts" } else { "accounts" };
        send(api.stack.client.get(format!("{}/{version}/{path}", api.url())).bearer_auth(&key))
    };
    let mut windows = std::collections::BTreeMap::<String, Vec<u16>>::new();
    for n in 0..12 {
        let response = list(["v1", "v2"][n % 2]).await;
        if response.status == 429 && n % 2 == 0 {
            failed(&response, 429);
            assert_ne!(response.header("retry-after"), "");
        }
        windows.entry(response.header("x-ratelimit-reset").to_owned()).or_default().push(response.status);
    }
    for statuses in windows.values() {
        let passed = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(passed, statuses.len().min(5), "{windows:?}");
    }
}

#[tokio::test]
async fn v1_success_has_v1_form() {
    let api = TestApi::start().await;
    let full = api.get("/v1/getAccounts").await;
    assert_eq!(full.header("cache-control"), "private, no-cache");
    let again = api.request(Method::GET, "/v1/getAccounts").header("If-None-Match", full.header("etag"));
    let again = send(again).await;
    assert_deprecated(&again);
    assert_eq!((again.status, again.header("etag")), (304, full.header("etag")));
    let head = send(api.request(Method::HEAD, "/v1/getAccounts")).await;
    assert_deprecated(&head);
    assert_eq!((head.status, head.header("etag")), (200, full.header("etag")));
    // Only v1 is deprecated.
    for path in ["/v2/accounts", "/v2/v1", "/"] {
        assert_eq!(api.get(path).await.header("deprecation"), "");
    }
    let settings = Settings { public_url: Some("https://api.example".to_owned()), ..Settings::default() };
    let api = TestApi::start_with(settings).await;
    let link = api.get("/v1/getAccounts").await.header("link").to_owned();
    assert_eq!(link, "<https://api.example/v2>; rel=\"successor-version\"");
}

#[tokio::test]
async fn v1_meta_has_sunset_and_needs_no_key() {
    let api = TestApi::start().await;
    let response = send(api.stack.client.get(format!("{}/v1/meta", api.url()))).await;
    let meta = succeeded(&response, "meta");
    assert_eq!((&meta["api_version"], &meta["status"]), (&json!("v1"), &json!("deprecated")));
    let date = |name: &str| meta[name].as_str().unwrap().parse::<NaiveDate>().unwrap();
    let since = response.header("deprecation").trim_start_matches('@').parse().unwrap();
    assert_eq!(date("deprecation"), DateTime::<Utc>::from_timestamp(since, 0).unwrap().date_naive());
    let until = DateTime::parse_from_rfc2822(response.header("sunset")).unwrap();
    assert_eq!(date("sunset"), until.date_naive());
    assert_eq!(response.header("x-ratelimit-limit"), "");
    assert!(response.header("etag").starts_with('"'));
}
