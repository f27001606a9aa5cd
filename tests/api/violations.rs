//! The violations that a response lists, and their messages.

use harness::{TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn response_lists_all_violations() {
    let api = TestApi::start().await;
    let list = api
        .get(
            "/v2/accounts?limit=0&cursor=!&include_total=1&order_by=x&order_direction=up&sort=-y&platform=x\
                         &is_active=&q=a&q=b&creator_id=1&category=&unknown=",
        )
        .await;
    let mut fields = list.fields();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "creator_id",
            "cursor",
            "include_total",
            "is_active",
            "limit",
            "order_by",
            "order_direction",
            "platform",
            "q",
            "sort"
        ]
    );
    let long = "x".repeat(256);
    let body = json!({
        "is_active": "yes", "category": "ü".repeat(129), "scrape_interval_hours": 5, "creator_id": "x",
        "max_recent_posts_per_account": 49.5, "post_lookback_days": 1e30, "color": 1, "platform": "tiktok",
        "metadata": {"team": 7, "long": long, "nul": "\u{0}", "": "x", long.as_str(): "x"},
    });
    let mut fields = api.patch("/v2/accounts/invalid?platform=x", body).await.fields();
    fields.sort_unstable();
    let long_key = format!("metadata.{long}");
    let mut expected = vec![
        "account_id",
        "category",
        "color",
        "creator_id",
        "is_active",
        "max_recent_posts_per_account",
        "metadata.",
        "metadata.long",
        "metadata.nul",
        "metadata.team",
        long_key.as_str(),
        "platform",
        "platform",
        "post_lookback_days",
        "scrape_interval_hours",
    ];
    expected.sort_unstable();
    assert_eq!(fields, expected);
    for body in [json!([]), json!("x"), Value::Null] {
        assert_eq!(api.post("/v2/creators", body).await.fields(), ["body"]);
    }
    let nulls = json!({"is_active": null, "metadata": null, "scrape_interval_hours": null, "category": null});
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "ab"})).await;
    let path = format!("/v2/accounts/{id}");
    assert_eq!(api.patch(&path, nulls).await.fields(), ["is_active", "metadata", "scrape_interval_hours"]);
}

#[tokio::test]
async fn response_lists_the_first_100_violations_and_counts_all() {
    let api = TestApi::start().await;
    let unknown = |count: usize| Value::Object((0..count).map(|n| (format!("field{n}"), json!(1))).collect());
    let many = api.post("/v2/creators", unknown(40_000)).await.problem(422, "VALIDATION_ERROR");
    assert_eq!(many.text("/detail"), "40001 fields are invalid: errors lists the first 100");
    assert_eq!((many.fields().len(), &many.fields()[..2]), (100, &["name", "field0"].map(str::to_owned)[..]));
    assert!(many.body.len() < 10_000, "{} bytes", many.body.len());
    let legacy = api.post("/v1/addAccount", unknown(10_000)).await.ok(422);
    assert!(legacy.text("/error").ends_with("; and 9902 more"), "{legacy}");

    let batch = api.post("/v2/accounts/batch", json!({"items": [unknown(150), unknown(3)]})).await.ok(200);
    let item = |index: usize| {
        let item = &batch.list("/data")[index];
        (item["errors"].as_array().unwrap().len(), item["detail"].as_str().unwrap())
    };
    assert_eq!(item(0), (10, "152 fields are invalid: errors lists the first 10"));
    assert_eq!(item(1), (5, "5 fields are invalid: see errors"));
}

const ID: &str = "0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65";

type RequestParts = (Method, String, Value);

fn get(query: &str) -> RequestParts {
    (Method::GET, format!("/v2/{query}"), Value::Null)
}

fn post(path: &str, body: Value) -> RequestParts {
    (Method::POST, format!("/v2/{path}"), body)
}

fn patch(body: Value) -> RequestParts {
    (Method::PATCH, format!("/v2/accounts/{ID}"), body)
}

#[tokio::test]
async fn violations_of_path_and_query_are_reported_together() {
    let api = TestApi::start().await;
    for (path, id) in [
        ("accounts/x/videos", "account_id"),
        ("collections/x/videos", "collection_id"),
        ("collections/x/shares", "collection_id"),
        ("webhooks/x/deliveries", "webhook_id"),
    ] {
        let refused = api.get(&format!("/v2/{path}?order_by=x&limit=0")).await;
        assert_eq!(refused.fields(), [id, "order_by", "limit"], "{path}");
    }
}

/// Each request has one violation, whose field and message are the detail. The tests that call this have every message that a
/// violation can have, but for its numbers and names: they read as sentences after the field.
async fn assert_details<const N: usize>(requests: [(RequestParts, &str); N]) {
    let api = TestApi::start().await;
    for ((method, path, body), expected) in requests {
        let request = api.request(method, &path);
        let request = if body.is_null() { request } else { request.json(&body) };
        let problem = send(request).await.problem(422, "VALIDATION_ERROR");
        assert_eq!(problem.text("/detail"), expected, "{path} {problem}");
    }
}

#[tokio::test]
async fn violations_of_lists_are_sentences() {
    let long = "x".repeat(256);
    let ids: Vec<_> = (0..101).map(|_| Uuid::now_v7().to_string()).collect();
    assert_details([
        (get("accounts?limit=x"), "limit must be an integer"),
        (get("accounts?limit=0"), "limit must be from 1 to 200"),
        (get("accounts?limit=1&limit=1"), "limit must be given once"),
        (get("accounts?limit="), "limit must not be empty"),
        (get("accounts?include_total=1"), "include_total must be true or false"),
        (get("accounts?platform=x"), "platform must be one of instagram, tiktok"),
        (
            get("accounts?cursor=x"),
            "cursor is not a cursor of this list with these filters and sort: omit it to start again",
        ),
        (get(&format!("accounts?q={long}")), "q must have at most 128 characters"),
        (get("accounts?q=%00"), "q must not contain the character U+0000"),
        (get("accounts?creator_id=x"), "creator_id must be a UUID"),
        (
            get(&format!("accounts?creator_id={}", ids.join(","))),
            "creator_id must have at most 100 different entries",
        ),
        (get("accounts?status="), "status must not be empty"),
        (get("accounts?metadata=x"), "metadata must name a key, as metadata.KEY"),
        (get("accounts?metadata.=x"), "metadata. as a key must have 1 to 255 characters"),
        (get("accounts?metadata.a&metadata.b&metadata.c&metadata.d"), "metadata must have at most 3 keys"),
        (get("accounts/x"), "account_id must be a UUID, or a username with a leading @"),
    ])
    .await;
}

#[tokio::test]
async fn violations_of_windows_are_sentences() {
    assert_details([
        (get("overview?start_date=x"), "start_date must be a date from 1900 on, as 2026-01-31"),
        (get("overview?period=7d&start_date=2026-01-01"), "start_date is only allowed with period=custom"),
        (get("overview?start_date=2026-01-01"), "end_date is required with period=custom"),
        (get("overview?start_date=2026-01-02&end_date=2026-01-01"), "start_date must not be after end_date"),
        (
            get("overview?start_date=2024-01-01&end_date=2026-01-01"),
            "end_date must be at most 730 days after start_date",
        ),
        (
            get(&format!("accounts/timeseries?account_ids={ID}&start_date=2025-01-01&end_date=2026-01-01")),
            "end_date must be at most 91 days after start_date",
        ),
        (
            get(&format!("accounts/{ID}/analytics?start_date=9999-01-01")),
            "start_date must not be after today without end_date",
        ),
        (
            get(&format!("accounts/{ID}/analytics?start_date=1999-01-01")),
            "start_date must be at most 730 days ago without end_date",
        ),
        (
            get("content?posted_after=x"),
            "posted_after must be a date from 1900 on, as 2026-01-31, or a time, as 2026-01-31T18:30:00Z",
        ),
        (
            get("content?posted_after=2026-01-31T18:30:00+02:00"),
            "posted_after must have its + encoded as %2B: 2026-01-31T18:30:00%2B02:00",
        ),
    ])
    .await;
}

#[tokio::test]
async fn violations_of_bodies_are_sentences() {
    let numbers: Vec<_> = (1..=600).collect();
    let both = json!({"instagram_post_ids": numbers, "tiktok_video_ids": numbers});
    assert_details([
        (get("account-videos/metrics"), "instagram_post_ids is required without tiktok_video_ids"),
        (
            post("account-videos/metrics", both),
            "tiktok_video_ids must have at most 1000 ids together with instagram_post_ids",
        ),
        (post("creators", json!([])), "body must be a JSON object"),
        (post("creators", json!({})), "name is required"),
        (post("creators", json!({"name": null})), "name must not be null"),
        (post("creators", json!({"name": 1})), "name must be a string"),
        (post("creators", json!({"name": ""})), "name must have 1 to 255 characters"),
        (post("creators", json!({"name": "x", "color": 1})), "color is not a field of this request"),
        (post("accounts/batch", json!({"items": 1})), "items must be a list"),
        (post("accounts/batch", json!({"items": []})), "items must have 1 to 500 entries"),
    ])
    .await;
}

#[tokio::test]
async fn violations_of_names_and_identifiers_are_sentences() {
    let account = |platform: &str, username: &str| {
        post("accounts", json!({"platform": platform, "username": username}))
    };
    let video = |platform: &str, identifier: &str| {
        post("videos", json!({"platform": platform, "identifier": identifier}))
    };
    assert_details([
        (
            account("instagram", "a b"),
            "username must be an Instagram username: 1 to 30 letters, digits, dots and underscores",
        ),
        (
            account("tiktok", "a"),
            "username must be a TikTok username: 2 to 24 letters, digits, dots and underscores",
        ),
        (account("instagram", "@."), "username must not be . or .., which are no usernames"),
        (account("tiktok", ".."), "username must not be . or .., which are no usernames"),
        (account("tiktok", "instagram.com/ab"), "username is not the URL of a profile on tiktok"),
        (video("tiktok", "x"), "identifier must be the id or the URL of a TikTok video"),
        (video("instagram", "x"), "identifier must be the shortcode, the id or the URL of an Instagram post"),
        (
            video("instagram", "https://www.tiktok.com/@ab/video/7301234567890123456"),
            "identifier is a URL of tiktok, but the request names another platform",
        ),
        (video("tiktok", "https://www.tiktok.com/@ab"), "identifier is not the URL of a video on tiktok"),
        (patch(json!({"username": "ä"})), "username is not a username of any platform"),
        (patch(json!({"metadata": 1})), "metadata must be an object"),
        (patch(json!({"metadata": {"": "x"}})), "metadata. as a key must have 1 to 255 characters"),
    ])
    .await;
}

#[tokio::test]
async fn violations_that_depend_on_today_come_with_the_others() {
    let api = TestApi::start().await;
    let response = api.get("/v2/accounts/x/analytics?start_date=9999-01-01&values=x").await;
    assert_eq!(response.fields(), ["account_id", "start_date", "values"]);
}
