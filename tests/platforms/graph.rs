//! The Instagram Graph API: error codes, usage headers and missing fields.

use chrono::TimeDelta;
use serde_json::{Value, json};
use tidemark::platforms::source::{PostKey, Source, SourceError};

use crate::canned::{self, CannedResponse, CannedServer};
use crate::{LIMITS, depth, graph_source, key, now};

fn error_body(code: i64, subcode: i64, more: Value) -> Value {
    let mut error = json!({"message": "m", "type": "OAuthException", "code": code, "error_subcode": subcode});
    for (name, value) in more.as_object().into_iter().flatten() {
        error[name] = value.clone();
    }
    json!({"error": error})
}

async fn fetch_error(status: u16, body: Value) -> SourceError {
    let server = CannedServer::start(vec![canned::json(status, &body)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await.expect_err("the fetch fails")
}

#[tokio::test]
async fn error_code_decides_the_source_error() {
    let name = |error: &SourceError| match error {
        SourceError::NotFound(_) => "not found",
        SourceError::RateLimited { .. } => "rate limited",
        SourceError::Credentials(_) => "credentials",
        SourceError::Transient(_) => "transient",
        SourceError::Malformed(_) => "malformed",
        SourceError::Unsupported => "unsupported",
        SourceError::RefreshShareUsed => "refresh share used",
        SourceError::BudgetUnavailable(_) => "uncounted",
    };
    for (status, code, subcode, more, expected) in [
        (400, 110, 2_207_013, json!({}), "not found"),
        (400, 100, 2_207_013, json!({}), "not found"),
        (400, 190, 460, json!({}), "credentials"),
        (403, 10, 0, json!({}), "credentials"),
        (403, 200, 0, json!({}), "credentials"),
        (403, 4, 0, json!({"is_transient": true}), "rate limited"),
        (400, 17, 0, json!({}), "rate limited"),
        (400, 80_002, 0, json!({}), "rate limited"),
        (400, 368, 0, json!({}), "rate limited"),
        (500, 1, 0, json!({}), "transient"),
        (400, 2, 0, json!({}), "transient"),
        (400, 9_999, 0, json!({"is_transient": true}), "transient"),
        (503, 9_999, 0, json!({}), "transient"),
        (400, 9_999, 0, json!({}), "malformed"),
        // Also with status 200, and with the code as text.
        (200, 110, 2_207_013, json!({}), "not found"),
        (200, 190, 0, json!({"code": "190"}), "credentials"),
    ] {
        let error = fetch_error(status, error_body(code, subcode, more)).await;
        assert_eq!(name(&error), expected, "HTTP {status}, code {code}: {error}");
    }
}

#[tokio::test]
async fn token_is_redacted_in_errors() {
    let token = sandbox::instagram_graph::TOKEN;
    let error =
        fetch_error(400, error_body(190, 0, json!({"message": format!("Malformed access token {token}")})))
            .await;
    assert!(error.to_string().contains("[redacted]") && !error.to_string().contains(token), "{error}");
}

#[tokio::test]
async fn token_is_sent_in_a_header() {
    let server =
        CannedServer::start(vec![canned::json(200, &json!({"business_discovery": {"id": "1"}}))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await.expect("the fetch succeeds");
    let request = &server.requests()[0];
    let line = request.lines().next().unwrap_or_default();
    assert!(line.starts_with("GET /base/17841400000000001?fields="), "{line}");
    assert!(!line.contains(sandbox::instagram_graph::TOKEN));
    assert!(request.to_lowercase().contains("authorization: bearer sandbox-graph-token"));
}

#[tokio::test]
async fn usage_near_the_limit_pauses_requests() {
    let good = json!({"business_discovery": {"id": "1"}}).to_string();
    let header = ("x-app-usage", r#"{"call_count":90,"total_time":1,"total_cputime":1}"#.to_owned());
    let server = CannedServer::start(vec![CannedResponse::Full(200, vec![header], good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let fetch = async |later: i64| {
        source
            .fetch_account(&key("some.one"), depth(9, "2026-01-01"), now() + TimeDelta::seconds(later))
            .await
    };
    fetch(0).await.expect("the response at 90 percent is used");
    let until = now() + TimeDelta::seconds(330);
    assert_eq!(fetch(1).await, Err(SourceError::RateLimited { until }));
    assert_eq!(server.requests().len(), 1, "no request during the pause");
    fetch(330).await.expect("the pause is over");
}

#[tokio::test]
async fn rate_limit_ends_at_the_time_in_the_header() {
    let usage =
        r#"{"178":[{"type":"instagram","call_count":100,"estimated_time_to_regain_access":7}]}"#.to_owned();
    let body = error_body(80_002, 0, json!({})).to_string();
    let server = CannedServer::start(vec![CannedResponse::Full(
        400,
        vec![("x-business-use-case-usage", usage)],
        body,
    )])
    .await;
    let source = graph_source(&server.url, LIMITS, 50);
    for later in [0, 60] {
        let fetched =
            source.fetch_account(&key("a"), depth(9, "2026-01-01"), now() + TimeDelta::seconds(later)).await;
        assert_eq!(fetched, Err(SourceError::RateLimited { until: now() + TimeDelta::minutes(7) }));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn rejected_view_count_field_is_omitted_for_an_hour() {
    let unknown_field =
        error_body(100, 0, json!({"message": "(#100) Please read documentation for supported fields."}));
    let good = json!({"business_discovery": {"id": "1", "media": {"data": [{"id": 5, "like_count": "7"}]}}});
    let server = CannedServer::start(vec![canned::json(400, &unknown_field), canned::json(200, &good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    for minutes in [0, 59, 60] {
        let later = now() + TimeDelta::minutes(minutes);
        let fetched = source
            .fetch_account(&key("some.one"), depth(9, "2026-01-01"), later)
            .await
            .expect("the fetch succeeds");
        assert_eq!(fetched.posts[0].external_id, "5");
        assert_eq!(fetched.posts[0].counters.like_count, Some(7));
    }
    let has_field: Vec<bool> =
        server.requests().iter().map(|request| request.contains("view_count")).collect();
    assert_eq!(has_field, [true, false, false, true]);
}

#[tokio::test]
async fn invalid_values_are_unknown() {
    let rows = json!([
        {"id": "1", "like_count": -1, "comments_count": 1e300, "view_count": "18446744073709551616",
         "timestamp": "yesterday", "caption": "a\u{0}b", "permalink": "javascript:alert(1)"},
        {"like_count": 5},
        {"id": "2", "timestamp": "2026-03-01T00:00:00+0000", "media_type": "VIDEO", "media_product_type": "REELS",
         "media_url": "https://scontent.example/2.mp4", "children": null},
    ]);
    let good = json!({"business_discovery": {"id": 17841401441775531_u64, "followers_count": -3, "website": "",
        "media": {"data": rows}}});
    let server = CannedServer::start(vec![canned::json(200, &good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let fetched = source
        .fetch_account(&key("some.one"), depth(9, "2026-01-01"), now())
        .await
        .expect("the fetch succeeds");
    assert_eq!(fetched.profile.platform_id.as_deref(), Some("17841401441775531"));
    assert_eq!((fetched.profile.counters.follower_count, fetched.profile.fields.link_in_bio), (None, None));
    let [invalid, reel] = fetched.posts.as_slice() else {
        panic!("the row without an id is left out: {:?}", fetched.posts)
    };
    assert!(invalid.counters.is_empty());
    assert_eq!(
        (invalid.fields.create_time, invalid.shortcode.as_deref(), invalid.fields.description.as_deref()),
        (None, None, Some("ab"))
    );
    assert_eq!(reel.fields.media_type.as_deref(), Some("reel"));
    assert_eq!(reel.fields.video_url.as_deref(), Some("https://scontent.example/2.mp4"));
    assert_eq!(reel.fields.platform_data, Some(json!({"media_product_type": "REELS"})));
}

#[tokio::test]
async fn repeated_cursor_is_malformed() {
    let page = json!({"business_discovery": {"id": "1", "media": {"data": [{"id": "5"}],
        "paging": {"cursors": {"after": "QVFIsame"}}}}});
    let server = CannedServer::start(vec![canned::json(200, &page)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let error = source
        .fetch_account(&key("some.one"), depth(500, "2026-01-01"), now())
        .await
        .expect_err("the fetch fails");
    assert!(matches!(error, SourceError::Malformed(_)), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn alternating_cursors_are_malformed() {
    let page = |id: &str, after: &str| {
        let media = json!({"data": [{"id": id}], "paging": {"cursors": {"after": after}}});
        canned::json(200, &json!({"business_discovery": {"id": "1", "media": media}}))
    };
    let server = CannedServer::start(vec![page("5", "a"), page("6", "b"), page("5", "a")]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let fetched = source.fetch_account(&key("some.one"), depth(500, "2026-01-01"), now()).await;
    assert!(matches!(fetched, Err(SourceError::Malformed(_))), "{fetched:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn invalid_username_is_never_sent() {
    let server = CannedServer::start(vec![canned::json(200, &json!({}))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    for name in ["x){id}", "", "a b", "é"] {
        let fetched = source.fetch_account(&key(name), depth(9, "2026-01-01"), now()).await;
        assert!(matches!(fetched, Err(SourceError::NotFound(_))), "{name}: {fetched:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn single_posts_are_unsupported() {
    let server = CannedServer::start(vec![canned::json(200, &json!({}))]).await;
    let post = PostKey { external_id: Some("1".into()), shortcode: Some("abc".into()), username: None };
    assert_eq!(
        graph_source(&server.url, LIMITS, 50).fetch_post(&post, now()).await,
        Err(SourceError::Unsupported)
    );
    assert!(server.requests().is_empty());
}
