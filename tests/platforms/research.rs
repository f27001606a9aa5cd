//! The Research API: tokens, windows, searches that break off, its budget and its errors.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};
use tidemark::model::secret::Secret;
use tidemark::platforms::source::{PostKey, Source, SourceError};
use tidemark::platforms::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use tidemark::platforms::{RateThrottle, RequestBudget};

use crate::canned::{self, Canned, Say};
use crate::{LIMITS, depth, key, now, research_source, time};

const ID: u64 = 7_612_345_678_901_234_567;

fn token(text: &str, seconds: u64) -> Say {
    canned::json(200, &json!({"access_token": text, "expires_in": seconds, "token_type": "Bearer"}))
}

fn good(data: Value) -> Say {
    canned::json(200, &json!({"data": data, "error": {"code": "ok", "message": "", "log_id": "1"}}))
}

fn bad(status: u16, code: &str, message: &str) -> Say {
    canned::json(status, &json!({"data": {}, "error": {"code": code, "message": message, "log_id": "1"}}))
}

fn profile(videos: u64) -> Say {
    good(json!({"display_name": "Joe", "follower_count": "12", "is_verified": true, "video_count": videos}))
}

fn page(ids: &[u64], cursor: u64, has_more: bool) -> Say {
    let videos: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "create_time": 1_772_900_000 + id, "view_count": 5, "username": "joe"}))
        .collect();
    good(
        json!({"videos": videos, "cursor": cursor, "has_more": has_more, "search_id": "7201388525814961198"}),
    )
}

async fn refused(script: Vec<Say>) -> SourceError {
    let server = Canned::start(script).await;
    let source = research_source(&server.url, LIMITS, 2);
    source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect_err("a refusal")
}

#[tokio::test]
async fn an_account_is_read_with_what_the_platform_says() {
    let videos = json!([
        {"id": ID, "video_description": "one", "create_time": 1_773_000_000, "view_count": 10, "like_count": "9",
         "comment_count": 0, "share_count": -4, "favorites_count": 3, "username": "joe", "video_duration": 15,
         "region_code": "US", "hashtag_names": ["a"]},
        {"id": "7612345678901234568", "create_time": 1_773_000_100, "favourites_count": 8, "username": "joe"},
    ]);
    let data = json!({"videos": videos, "cursor": 2, "has_more": false, "search_id": "7"});
    let server = Canned::start(vec![token("clt.a", 7200), profile(2), good(data)]).await;
    let source = research_source(&server.url, LIMITS, 100);
    let answer = source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect("an answer");
    assert_eq!((answer.profile.platform_id, answer.profile.follower_count), (None, Some(12)));
    assert_eq!(answer.profile.is_verified, Some(true));
    let [newest, older] = answer.posts.as_slice() else { panic!("two posts: {:?}", answer.posts) };
    assert_eq!(newest.external_id, "7612345678901234568");
    assert_eq!((newest.counters.saved_count, newest.counters.view_count), (Some(8), None));
    assert_eq!(older.external_id, ID.to_string());
    assert_eq!(older.url.as_deref(), Some("https://www.tiktok.com/@joe/video/7612345678901234567"));
    assert_eq!((older.counters.saved_count, older.counters.like_count), (Some(3), Some(9)));
    assert_eq!((older.counters.share_count, older.counters.play_count), (None, Some(10)));
    assert_eq!((older.duration, older.create_time), (Some(15.0), Some(time("2026-03-08T20:00:00Z"))));
    assert_eq!(older.platform_data, json!({"region_code": "US", "hashtag_names": ["a"]}));
    let requests = server.requests();
    assert!(
        requests[0].contains("grant_type=client_credentials")
            && requests[0].starts_with("POST /base/oauth/token/ ")
    );
    assert!(requests[1].starts_with("POST /base/research/user/info/?fields="));
    assert!(
        requests[2].contains(r#""start_date":"20260301""#)
            && requests[2].contains(r#""end_date":"20260310""#)
    );
}

#[tokio::test]
async fn windows_go_back_no_further_than_the_depth_or_the_number_of_videos() {
    let windows = async |videos: u64, not_before: &str| {
        let server = Canned::start(vec![token("clt.a", 7200), profile(videos), page(&[], 0, false)]).await;
        let source = research_source(&server.url, LIMITS, 100);
        source.fetch_account(&key("joe"), depth(50, not_before), now()).await.expect("an answer");
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
    assert!(windows(0, "2026-01-05").await.is_empty(), "an account without videos costs no search");
}

#[tokio::test]
async fn short_pages_go_on_until_there_is_no_more() {
    let script = vec![
        token("clt.a", 7200),
        profile(3),
        page(&[1], 2, true),
        page(&[], 4, true),
        page(&[2, 3], 6, false),
    ];
    let server = Canned::start(script).await;
    let answer = research_source(&server.url, LIMITS, 2)
        .fetch_account(&key("joe"), depth(9, "2026-03-01"), now())
        .await;
    assert_eq!(answer.expect("an answer").posts.len(), 3);
    let requests = server.requests();
    assert!(
        requests[3].contains(r#""cursor":2"#) && requests[3].contains(r#""search_id":"7201388525814961198""#)
    );
    assert!(!requests[2].contains("search_id"));
}

#[tokio::test]
async fn a_search_that_expires_is_begun_again_and_counts_nothing_twice() {
    for message in ["Search Id 7201388525814961198 is invalid or expired", "Invalid count or cursor"] {
        let script = vec![
            token("clt.a", 7200),
            profile(3),
            page(&[1, 2], 2, true),
            bad(400, "invalid_params", message),
            page(&[1, 2], 2, true),
            page(&[3], 4, false),
        ];
        let server = Canned::start(script).await;
        let answer = research_source(&server.url, LIMITS, 2)
            .fetch_account(&key("joe"), depth(9, "2026-03-01"), now())
            .await;
        let ids: Vec<String> =
            answer.expect("an answer").posts.into_iter().map(|post| post.external_id).collect();
        assert_eq!(ids, ["3", "2", "1"]);
        assert!(server.requests()[4].contains(r#""cursor":0"#));
    }
    let always = bad(400, "invalid_params", "Invalid count or cursor");
    let refusal = refused(vec![token("clt.a", 7200), profile(3), always]).await;
    assert!(matches!(refusal, SourceError::Transient(_)), "{refusal}");
}

#[tokio::test]
async fn a_cursor_that_stands_still_ends_the_walk() {
    let refusal = refused(vec![token("clt.a", 7200), profile(300), page(&[1], 0, true)]).await;
    assert!(matches!(refusal, SourceError::Malformed(_)), "{refusal}");
}

#[tokio::test]
async fn one_token_serves_many_callers_and_a_dead_one_is_replaced_once() {
    let script = vec![token("clt.a", 7200), profile(0)];
    let server = Canned::start(script).await;
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

    let dead = bad(401, "access_token_invalid", "The access token is invalid");
    let server =
        Canned::start(vec![token("clt.a", 7200), dead.clone(), token("clt.b", 7200), profile(0)]).await;
    let source = research_source(&server.url, LIMITS, 100);
    source
        .fetch_account(&key("joe"), depth(9, "2026-03-01"), now())
        .await
        .expect("an answer with the second token");
    assert!(server.requests()[3].to_lowercase().contains("authorization: bearer clt.b"));

    let refusal = refused(vec![token("clt.a", 7200), dead.clone(), token("clt.b", 7200), dead]).await;
    assert!(matches!(refusal, SourceError::Credentials(_)), "{refusal}");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    // A token of no life at all has expired by the time of the next request.
    let script = vec![token("clt.a", 0), profile(0), token("clt.b", 7200), profile(0)];
    let server = Canned::start(script).await;
    let source = research_source(&server.url, LIMITS, 100);
    for _ in 0..3 {
        source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now()).await.expect("an answer");
    }
    let fetched = server.requests().iter().filter(|request| request.contains("/oauth/token/")).count();
    assert_eq!(fetched, 2);
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let midnight = time("2026-03-11T00:00:00Z");
    let minute = now() + TimeDelta::minutes(1);
    let first = |error: Say| vec![token("clt.a", 7200), error];
    let limited = |until| SourceError::RateLimited { until };
    assert_eq!(refused(first(bad(429, "rate_limit_exceeded", "slow"))).await, limited(minute));
    assert_eq!(refused(first(bad(429, "daily_quota_limit_exceeded", "enough"))).await, limited(midnight));
    let told = Say::Answer(429, vec![("retry-after", "90".to_owned())], "<html>".to_owned());
    assert_eq!(refused(first(told)).await, limited(now() + TimeDelta::seconds(90)));
    for (say, expected) in [
        (bad(400, "invalid_params", "cannot find the user joe"), "not found"),
        (bad(401, "scope_not_authorized", "no"), "credentials"),
        (bad(500, "internal_error", "oops"), "temporary"),
        (bad(503, "", ""), "temporary"),
        (bad(400, "invalid_params", "no such field"), "malformed"),
        // A refusal inside of a 200 is a refusal.
        (bad(200, "internal_error", "oops"), "temporary"),
        (good(json!({})), "not found"),
        (canned::json(200, &json!({"data": [1]})), "malformed"),
    ] {
        let refusal = refused(first(say)).await;
        assert!(refusal.to_string().starts_with(expected), "{refusal} instead of {expected}");
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
        let refusal = refused(vec![canned::json(400, &body)]).await;
        assert!(refusal.to_string().starts_with(expected), "{refusal} instead of {expected}");
        assert!(!refusal.to_string().contains("sandbox-client-secret"), "{refusal}");
    }
}

#[tokio::test]
async fn the_days_budget_is_kept_and_begins_anew_at_midnight() {
    let server = Canned::start(vec![token("clt.a", 7200), profile(0)]).await;
    let source = TiktokResearch::new(TiktokResearchConfig {
        base: server.url.clone(),
        client_key: "k".to_owned(),
        client_secret: Secret::new("s"),
        page_size: 100,
        throttle: RateThrottle::new("tiktok-research", 1, Some(2), RequestBudget::in_memory()),
        limits: LIMITS,
    })
    .expect("the source is configured well");
    let midnight = time("2026-03-11T00:00:00Z");
    let ask = async |now| source.fetch_account(&key("joe"), depth(9, "2026-03-01"), now).await;
    assert!(ask(now()).await.is_ok() && ask(now()).await.is_ok());
    assert_eq!(ask(now()).await, Err(SourceError::RateLimited { until: midnight }));
    assert_eq!(server.requests().len(), 3, "what is over the budget is not asked");
    assert!(ask(midnight).await.is_ok());
}

#[tokio::test]
async fn a_post_is_found_by_the_day_in_its_id() {
    let id = ((1_772_900_000_u64 << 32) | 77).to_string();
    let server = Canned::start(vec![
        token("clt.a", 7200),
        good(json!({"videos": [{"id": id, "create_time": 1_772_900_000, "username": "joe"}], "has_more": false})),
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
    // Neither a text nor a number of another age can be a video.
    for id in ["abc", "5", "18446744073709551615"] {
        let asked = source.fetch_post(&post(id), now()).await;
        assert!(matches!(asked, Err(SourceError::NotFound(_))), "{id}: {asked:?}");
    }
    let other = ((1_772_900_000_u64 << 32) | 78).to_string();
    assert!(
        matches!(source.fetch_post(&post(&other), now()).await, Err(SourceError::NotFound(_))),
        "not in the answer"
    );
    assert_eq!(server.requests().len(), 3);
    let nameless = PostKey { external_id: None, shortcode: Some("x".to_owned()), username: None };
    assert_eq!(source.fetch_post(&nameless, now()).await, Err(SourceError::Unsupported));
}
