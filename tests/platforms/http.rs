//! The HTTP source contract: how responses of a collector are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use serde_json::{Value, json};
use tidemark::model::counters::Counters;
use tidemark::model::platform::Platform;
use tidemark::platforms::source::{AccountKey, PostKey, Source, SourceError};

use crate::canned::{self, CannedResponse, CannedServer};
use crate::collector::{CollectorRequest, CollectorResponse, response, serve};
use crate::{LIMITS, depth, http_source, key, now, time};

async fn fetch_account(
    platform: Platform,
    script: Vec<CannedResponse>,
) -> Result<tidemark::platforms::source::FetchedAccount, SourceError> {
    let server = CannedServer::start(script).await;
    http_source(&server.url, LIMITS, platform)
        .fetch_account(&key("some.one"), depth(9, "2026-01-01"), now())
        .await
}

fn row(id: &str, time: &str) -> Value {
    json!({"id": id, "create_time": time, "like_count": 1})
}

#[tokio::test]
async fn all_pages_and_counters_are_read() {
    let mut full = row("1", "2026-03-01T00:00:00Z");
    for (number, name) in Counters::NAMES.iter().enumerate() {
        full[*name] = json!(number + 1);
    }
    full["shortcode"] = json!("CSr71Gzlqo4");
    full["platform_data"] = json!({"audio": "x"});
    let first = json!({"profile": {"id": "9", "username": "other.name", "follower_count": 3}, "posts": [full], "next": "n2"});
    let second = json!({"profile": {"id": "9"}, "posts": [row("1", "2026-03-01T00:00:00Z"), row("2", "2026-03-05T00:00:00Z"),
        row("3", "2025-12-31T23:59:59Z")], "next": null});
    let server = CannedServer::start(vec![canned::json(200, &first), canned::json(200, &second)]).await;
    let source = http_source(&server.url, LIMITS, Platform::Instagram);
    let key = AccountKey { username: "some.one".to_owned(), platform_id: Some("9".to_owned()) };
    let fetched =
        source.fetch_account(&key, depth(9, "2026-01-01"), now()).await.expect("the fetch succeeds");
    assert_eq!(fetched.profile.username, "other.name");
    let ids: Vec<&str> = fetched.posts.iter().map(|post| post.external_id.as_str()).collect();
    assert_eq!(ids, ["2", "1"], "newest first, without duplicates and too old posts");
    let expected = Counters::from_array(std::array::from_fn(|number| Some(number as i64 + 1)));
    assert_eq!(fetched.posts[1].counters, expected);
    assert_eq!(fetched.posts[1].fields.url.as_deref(), Some("https://www.instagram.com/p/CSr71Gzlqo4/"));
    assert_eq!(fetched.posts[1].fields.platform_data, Some(json!({"audio": "x"})));
    let requests = server.requests();
    assert!(
        requests[0]
            .starts_with("GET /base/v1/instagram/accounts/some.one?max_posts=9&not_before=2026-01-01&id=9 ")
    );
    assert!(requests[1].contains("max_posts=8") && requests[1].contains("cursor=n2"));
    assert!(requests[0].to_lowercase().contains("authorization: bearer sandbox-http-token"));
}

#[tokio::test]
async fn tiktok_views_are_plays() {
    let mut post = row("1", "2026-03-01T00:00:00Z");
    post["view_count"] = json!(10);
    post["play_count"] = json!(99);
    let fetched =
        fetch_account(Platform::Tiktok, vec![canned::json(200, &json!({"profile": {}, "posts": [post]}))])
            .await;
    assert_eq!(fetched.expect("the fetch succeeds").posts[0].counters.play_count, Some(10));
}

#[tokio::test]
async fn error_code_decides_the_source_error() {
    let error = |status: u16, code: &str, more: Value| {
        let mut error = json!({"code": code, "message": "m"});
        for (name, value) in more.as_object().into_iter().flatten() {
            error[name] = value.clone();
        }
        canned::json(status, &json!({"error": error}))
    };
    let retry_at = json!({"retry_at": "2026-03-10T12:05:00Z"});
    let far_future = json!({"retry_at": "2036-03-10T12:05:00Z"});
    for (response, expected) in [
        (error(404, "not_found", json!({})), SourceError::NotFound("m".to_owned())),
        (
            error(429, "rate_limited", retry_at),
            SourceError::RateLimited { until: time("2026-03-10T12:05:00Z") },
        ),
        (
            error(429, "rate_limited", far_future),
            SourceError::RateLimited { until: now() + TimeDelta::days(1) },
        ),
        (error(401, "unauthorized", json!({})), SourceError::Credentials("m".to_owned())),
        (error(503, "unavailable", json!({})), SourceError::Transient("m".to_owned())),
        (error(501, "unsupported", json!({})), SourceError::Unsupported),
        // Also with status 200.
        (error(200, "not_found", json!({})), SourceError::NotFound("m".to_owned())),
        (canned::json(500, &json!({})), SourceError::Transient("HTTP 500".to_owned())),
        (canned::json(401, &json!({})), SourceError::Credentials("HTTP 401".to_owned())),
    ] {
        assert_eq!(fetch_account(Platform::Instagram, vec![response]).await, Err(expected));
    }
    // A 404 without the contract's code is a wrong URL, not a missing account.
    let unknown_path =
        fetch_account(Platform::Instagram, vec![canned::json(404, &json!({"detail": "Not Found"}))]).await;
    assert!(matches!(unknown_path, Err(SourceError::Malformed(_))), "{unknown_path:?}");
}

#[tokio::test]
async fn unexpected_shape_is_malformed() {
    for body in [
        json!([]),
        json!({"posts": []}),
        json!({"profile": {}, "posts": {}}),
        json!({"profile": {}, "posts": [{"like_count": 1}]}),
        json!({"profile": {}, "posts": ["x"]}),
    ] {
        let fetched = fetch_account(Platform::Instagram, vec![canned::json(200, &body)]).await;
        assert!(matches!(fetched, Err(SourceError::Malformed(_))), "{body}: {fetched:?}");
    }
    let endless = json!({"profile": {}, "posts": [], "next": "same"});
    let fetched = fetch_account(Platform::Instagram, vec![canned::json(200, &endless)]).await;
    assert!(matches!(fetched, Err(SourceError::Malformed(_))), "{fetched:?}");
}

#[tokio::test]
async fn alternating_cursors_are_malformed() {
    let page = |id: &str, next: &str| {
        canned::json(200, &json!({"profile": {}, "posts": [row(id, "2026-03-01T00:00:00Z")], "next": next}))
    };
    let server = CannedServer::start(vec![page("1", "a"), page("2", "b"), page("1", "a")]).await;
    let fetched = http_source(&server.url, LIMITS, Platform::Instagram)
        .fetch_account(&key("some.one"), depth(9, "2026-01-01"), now())
        .await;
    assert!(matches!(fetched, Err(SourceError::Malformed(_))), "{fetched:?}");
    assert_eq!(server.requests().len(), 3);
}

/// Responds with pages of all posts, whatever is asked for: three pinned ones, twenty of a window and four hundred older ones.
fn over_delivering(request: &CollectorRequest, page_size: usize) -> CollectorResponse {
    let posts: Vec<Value> = (0..423)
        .map(|n| {
            let days_ago = if n < 3 { 2_000 + n } else { n };
            row(&n.to_string(), &(now() - TimeDelta::days(days_ago)).to_rfc3339())
        })
        .collect();
    let start: usize = request.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let page = &posts[start..posts.len().min(start + page_size)];
    let next = (start + page_size < posts.len()).then(|| (start + page_size).to_string());
    response(200, json!({"profile": {}, "posts": page, "next": next}))
}

#[tokio::test]
async fn reading_ends_at_pages_of_older_posts_but_not_at_pinned_ones() {
    // With pages of three, the first has only pinned posts, and four have more older ones than can be pinned.
    for (page_size, expected_requests) in [(3, 1 + 7 + 4), (12, 2 + 1), (50, 2)] {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let collector = serve(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            over_delivering(request, page_size)
        })
        .await;
        let fetched = http_source(&collector.base, LIMITS, Platform::Instagram)
            .fetch_account(&key("some.one"), depth(500, "2026-02-16"), now())
            .await
            .expect("the fetch succeeds");
        assert_eq!((fetched.posts.len(), requests.load(Ordering::Relaxed)), (20, expected_requests));
    }
}

#[tokio::test]
async fn post_is_requested_by_id_or_shortcode() {
    let server =
        CannedServer::start(vec![canned::json(200, &json!({"post": row("5", "2026-03-01T00:00:00Z")}))])
            .await;
    let source = http_source(&server.url, LIMITS, Platform::Instagram);
    let by_shortcode = PostKey { external_id: None, shortcode: Some("CSr-_1".to_owned()), username: None };
    assert_eq!(source.fetch_post(&by_shortcode, now()).await.expect("the post").external_id, "5");
    let by_id =
        PostKey { external_id: Some("5".to_owned()), shortcode: None, username: Some("a b".to_owned()) };
    source.fetch_post(&by_id, now()).await.expect("the post");
    let lines: Vec<String> =
        server.requests().iter().filter_map(|request| Some(request.lines().next()?.to_owned())).collect();
    assert_eq!(
        lines,
        [
            "GET /base/v1/instagram/posts?shortcode=CSr-_1 HTTP/1.1",
            "GET /base/v1/instagram/posts?id=5&username=a+b HTTP/1.1",
        ]
    );
    let empty = PostKey { external_id: None, shortcode: None, username: None };
    assert_eq!(source.fetch_post(&empty, now()).await, Err(SourceError::Unsupported));
}
