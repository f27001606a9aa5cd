//! The TikTok Research API: tokens, search windows, expired searches, budget and error codes.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};
use tidemark::model::secret::Secret;
use tidemark::platforms::source::{PostKey, Source, SourceError};
use tidemark::platforms::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use tidemark::platforms::{RateThrottle, RequestBudget};

use crate::canned::{self, CannedResponse, CannedServer};
use crate::{LIMITS, depth, key, now, research_source, time};

const ID: u64 = 7_612_345_678_901_234_567;

fn token(text: &str, seconds: u64) -> CannedResponse {
    canned::json(200, &json!({"access_token": text, "expires_in": seconds, "token_type": "Bearer"}))
}

fn success(data: Value) -> CannedResponse {
    canned::json(200, &json!({"data": data, "error": {"code": "ok", "message": "", "log_id": "1"}}))
}

fn failure(status: u16, code: &str, message: &str) -> CannedResponse {
    canned::json(status, &json!({"data": {}, "error": {"code": code, "message": message, "log_id": "1"}}))
}

fn profile(videos: u64) -> CannedResponse {
    success(
        json!({"display_name": "Joe", "follower_count": "12", "is_verified": true, "video_count": videos}),
    )
}

fn page(ids: &[u64], cursor: u64, has_more: bool) -> CannedResponse {
    let videos: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "create_time": 1_772_900_000 + id, "view_count": 5, "username": "joe"}))
        .collect();
    success(
        json!({"videos": videos, "cursor": cursor, "has_more": has_more, "search_id": "7201388525814961198"}),
    )
}

async fn fetch_error(script: Vec<CannedResponse>) -> SourceError {
    let server = CannedServer::start(script).await;
    let source = research_source(&server.url, LIMITS, 2);
    source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect_err("the fetch fails")
}

#[tokio::test]
async fn account_and_videos_are_read() {
    let videos = json!([
        {"id": ID, "video_description": "one", "create_time": 1_773_000_000, "view_count": 10, "like_count": "9",
         "comment_count": 0, "share_count": -4, "favorites_count": 3, "username": "joe", "video_duration": 15,
         "region_code": "US", "hashtag_names": ["a"]},
        {"id": "7612345678901234568", "create_time": 1_773_000_100, "favourites_count": 8, "username": "joe"},
    ]);
    let data = json!({"videos": videos, "cursor": 2, "has_more": false, "search_id": "7"});
    let server = CannedServer::start(vec![token("clt.a", 7200), profile(2), success(data)]).await;
    let source = research_source(&server.url, LIMITS, 100);
    let fetched =
        source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect("the fetch succeeds");
    assert_eq!((fetched.profile.platform_id, fetched.profile.counters.follower_count), (None, Some(12)));
    assert_eq!(fetched.profile.fields.is_verified, Some(true));
    let [newest, older] = fetched.posts.as_slice() else { panic!("two posts: {:?}", fetched.posts) };
    assert_eq!(newest.external_id, "7612345678901234568");
    assert_eq!((newest.counters.saved_count, newest.counters.view_count), (Some(8), None));
    assert_eq!(older.external_id, ID.to_string());
    assert_eq!(older.fields.url.as_deref(), Some("https://www.tiktok.com/@joe/video/7612345678901234567"));
    assert_eq!((older.counters.saved_count, older.counters.like_count), (Some(3), Some(9)));
    assert_eq!((older.counters.share_count, older.counters.play_count), (None, Some(10)));
    assert_eq!(
        (older.fields.duration, older.fields.create_time),
        (Some(15.0), Some(time("2026-03-08T20:00:00Z")))
    );
    assert_eq!(older.fields.platform_data, Some(json!({"region_code": "US", "hashtag_names": ["a"]})));
    let requests = server.requests();
    assert!(
        requests[0].contains("grant_type=client_credentials")
            && requests[0].starts_with("POST /base/oauth/token/ ")
    );
    assert!(requests[1].starts_with("POST /base/research/user/info/?fields="));
    assert!(!requests[1].contains("likes_count"), "nothing reads it");
    assert!(
        requests[2].contains(r#""start_date":"20260301""#)
            && requests[2].contains(r#""end_date":"20260310""#)
    );
}

#[tokio::test]
async fn search_windows_end_at_the_depth() {
    let windows = async |videos: u64, not_before: &str| {
        let server =
            CannedServer::start(vec![token("clt.a", 7200), profile(videos), page(&[], 0, false)]).await;
        let source = research_source(&server.url, LIMITS, 100);
        source.fetch_account(&key("joe"), depth(50, not_before), now()).await.expect("the fetch succeeds");
        let day =
            |request: &String, name: &str| request.split_once(name).map(|(_, rest)| rest[..8].to_owned());
        server.requests()[2..]
            .iter()
            .map(|request| (day(request, r#"start_date":""#), day(request, r#"end_date":""#)))
            .map(|(start, end)| format!("{}-{}", start.unwrap_or_default(), end.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        windows(5, "2026-01-05").await,
        ["20260209-20260310", "20260110-20260208", "20260105-20260109"]
    );
    assert!(windows(0, "2026-01-05").await.is_empty(), "no search for an account without videos");
}

#[tokio::test]
async fn short_pages_are_read_until_has_more_is_false() {
    let script = vec![
        token("clt.a", 7200),
        profile(3),
        page(&[1], 2, true),
        page(&[], 4, true),
        page(&[2, 3], 6, false),
    ];
    let server = CannedServer::start(script).await;
    let fetched = research_source(&server.url, LIMITS, 2)
        .fetch_account(&key("joe"), depth(9, "2026-03-01"), now())
        .await;
    assert_eq!(fetched.expect("the fetch succeeds").posts.len(), 3);
    let requests = server.requests();
    assert!(
        requests[3].contains(r#""cursor":2"#) && requests[3].contains(r#""search_id":"7201388525814961198""#)
    );
    assert!(!requests[2].contains("search_id"));
}

#[tokio::test]
async fn expired_search_restarts_without_duplicates() {
    for message in ["Search Id 7201388525814961198 is invalid or expired", "Invalid count or cursor"] {
        let script = vec![
            token("clt.a", 7200),
            profile(3),
            page(&[1, 2], 2, true),
            failure(400, "invalid_params", message),
            page(&[1, 2], 2, true),
            page(&[3], 4, false),
        ];
        let server = CannedServer::start(script).await;
        let fetched = research_source(&server.url, LIMITS, 2)
            .fetch_account(&key("joe"), depth(9, "2026-03-01"), now())
            .await;
        let ids: Vec<String> =
            fetched.expect("the fetch succeeds").posts.into_iter().map(|post| post.external_id).collect();
        assert_eq!(ids, ["3", "2", "1"]);
        assert!(server.requests()[4].contains(r#""cursor":0"#));
    }
    let invalid_cursor = failure(400, "invalid_params", "Invalid count or cursor");
    let error = fetch_error(vec![token("clt.a", 7200), profile(3), invalid_cursor]).await;
    assert!(matches!(error, SourceError::Transient(_)), "{error}");
}

#[tokio::test]
async fn repeated_cursor_is_malformed() {
    let error = fetch_error(vec![token("clt.a", 7200), profile(300), page(&[1], 0, true)]).await;
    assert!(matches!(error, SourceError::Malformed(_)), "{error}");
}

#[tokio::test]
async fn token_is_shared_and_replaced_once_if_rejected() {
    let script = vec![token("clt.a", 7200), profile(0)];
    let server = CannedServer::start(script).await;
    let source = Arc::new(research_source(&server.url, LIMITS, 100));
    let callers = (0..8).map(|_| {
        let source = Arc::clone(&source);
        tokio::spawn(
            async move { source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.is_ok() },
        )
    });
    for caller in callers.collect::<Vec<_>>() {
        assert!(caller.await.expect("no caller panics"));
    }
    let fetched = server.requests().iter().filter(|request| request.contains("/oauth/token/")).count();
    assert_eq!((fetched, server.requests().len()), (1, 9));

    let rejected = failure(401, "access_token_invalid", "The access token is invalid");
    let server =
        CannedServer::start(vec![token("clt.a", 7200), rejected.clone(), token("clt.b", 7200), profile(0)])
            .await;
    let source = research_source(&server.url, LIMITS, 100);
    source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect("the second token works");
    assert!(server.requests()[3].to_lowercase().contains("authorization: bearer clt.b"));

    let error =
        fetch_error(vec![token("clt.a", 7200), rejected.clone(), token("clt.b", 7200), rejected]).await;
    assert!(matches!(error, SourceError::Credentials(_)), "{error}");
}

#[tokio::test]
async fn token_is_renewed_before_it_expires() {
    // The first token expires at once.
    let script = vec![token("clt.a", 0), profile(0), token("clt.b", 7200), profile(0)];
    let server = CannedServer::start(script).await;
    let source = research_source(&server.url, LIMITS, 100);
    for _ in 0..3 {
        source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect("the fetch succeeds");
    }
    let fetched = server.requests().iter().filter(|request| request.contains("/oauth/token/")).count();
    assert_eq!(fetched, 2);
}

#[tokio::test]
async fn error_code_decides_the_source_error() {
    let midnight = time("2026-03-11T00:00:00Z");
    let minute = now() + TimeDelta::minutes(1);
    let first = |error: CannedResponse| vec![token("clt.a", 7200), error];
    let limited = |until| SourceError::RateLimited { until };
    assert_eq!(fetch_error(first(failure(429, "rate_limit_exceeded", "slow"))).await, limited(minute));
    assert_eq!(
        fetch_error(first(failure(429, "daily_quota_limit_exceeded", "enough"))).await,
        limited(midnight)
    );
    let with_header = CannedResponse::Full(429, vec![("retry-after", "90".to_owned())], "<html>".to_owned());
    assert_eq!(fetch_error(first(with_header)).await, limited(now() + TimeDelta::seconds(90)));
    for (response, expected) in [
        (failure(400, "invalid_params", "cannot find the user joe"), "not found"),
        (failure(401, "scope_not_authorized", "no"), "credentials"),
        (failure(500, "internal_error", "oops"), "temporary"),
        (failure(503, "", ""), "temporary"),
        (failure(400, "invalid_params", "no such field"), "malformed"),
        // Also with status 200.
        (failure(200, "internal_error", "oops"), "temporary"),
        (success(json!({})), "not found"),
        (canned::json(200, &json!({"data": [1]})), "malformed"),
    ] {
        let error = fetch_error(first(response)).await;
        assert!(error.to_string().starts_with(expected), "{error} instead of {expected}");
    }
    for (body, expected) in [
        (
            json!({"error": "invalid_client", "error_description": "wrong sandbox-client-secret", "log_id": "1"}),
            "credentials",
        ),
        (json!({"error": "temporarily_unavailable", "error_description": "later"}), "temporary"),
        (json!({"error": {"code": "invalid_request", "message": "no"}}), "credentials"),
        (json!({}), "malformed"),
    ] {
        let error = fetch_error(vec![canned::json(400, &body)]).await;
        assert!(error.to_string().starts_with(expected), "{error} instead of {expected}");
        assert!(!error.to_string().contains("sandbox-client-secret"), "{error}");
    }
}

fn limited_source(server: &CannedServer, daily_limit: u32) -> TiktokResearch {
    TiktokResearch::new(TiktokResearchConfig {
        base: server.url.clone(),
        client_key: "k".to_owned(),
        client_secret: Secret::new("s"),
        page_size: 100,
        throttle: RateThrottle::new("tiktok-research", 1, Some(daily_limit), RequestBudget::in_memory()),
        limits: LIMITS,
    })
    .expect("a valid configuration")
}

#[tokio::test]
async fn retry_with_a_new_token_counts_as_a_request() {
    let rejected = failure(401, "access_token_invalid", "The access token is invalid");
    for (daily_limit, is_ok) in [(1, false), (2, true)] {
        let script = vec![token("clt.a", 7200), rejected.clone(), token("clt.b", 7200), profile(0)];
        let server = CannedServer::start(script).await;
        let source = limited_source(&server, daily_limit);
        let fetch = async || source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await;
        assert_eq!(fetch().await.is_ok(), is_ok, "{daily_limit}");
        assert!(matches!(fetch().await, Err(SourceError::RateLimited { .. })));
        assert_eq!(server.requests().len(), if is_ok { 4 } else { 3 });
    }
}

#[tokio::test]
async fn failed_request_for_a_token_spends_no_budget() {
    let outage = failure(500, "internal_error", "try later");
    let server = CannedServer::start(vec![outage.clone(), outage, token("clt.a", 7200), profile(0)]).await;
    let source = limited_source(&server, 1);
    let fetch = async || source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await;
    for _ in 0..2 {
        assert!(matches!(fetch().await, Err(SourceError::Transient(_))));
    }
    assert!(fetch().await.is_ok());
}

#[tokio::test]
async fn daily_budget_resets_at_midnight() {
    let server = CannedServer::start(vec![token("clt.a", 7200), profile(0)]).await;
    let source = limited_source(&server, 2);
    let midnight = time("2026-03-11T00:00:00Z");
    let fetch = async |now| source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now).await;
    assert!(fetch(now()).await.is_ok() && fetch(now()).await.is_ok());
    assert_eq!(fetch(now()).await, Err(SourceError::RateLimited { until: midnight }));
    assert_eq!(server.requests().len(), 3, "no request over the budget");
    assert!(fetch(midnight).await.is_ok());
}

#[tokio::test]
async fn post_is_searched_on_the_day_in_its_id() {
    let id = ((1_772_900_000_u64 << 32) | 77).to_string();
    let server = CannedServer::start(vec![
        token("clt.a", 7200),
        success(json!({"videos": [{"id": id, "create_time": 1_772_900_000, "username": "joe"}], "has_more": false})),
    ])
    .await;
    let source = research_source(&server.url, LIMITS, 100);
    let post = |id: &str| PostKey { external_id: Some(id.to_owned()), shortcode: None, username: None };
    assert_eq!(source.fetch_post(&post(&id), now()).await.expect("the post").external_id, id);
    let request = &server.requests()[1];
    assert!(
        request.contains(r#""field_name":"video_id""#) && request.contains(r#""start_date":"20260306""#),
        "{request}"
    );
    // Ids that cannot be of a video.
    for id in ["abc", "5", "18446744073709551615"] {
        let fetched = source.fetch_post(&post(id), now()).await;
        assert!(matches!(fetched, Err(SourceError::NotFound(_))), "{id}: {fetched:?}");
    }
    let other = ((1_772_900_000_u64 << 32) | 78).to_string();
    assert!(
        matches!(source.fetch_post(&post(&other), now()).await, Err(SourceError::NotFound(_))),
        "not in the response"
    );
    assert_eq!(server.requests().len(), 3);
    let by_shortcode = PostKey { external_id: None, shortcode: Some("x".to_owned()), username: None };
    assert_eq!(source.fetch_post(&by_shortcode, now()).await, Err(SourceError::Unsupported));
}
