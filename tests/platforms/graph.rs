//! Business Discovery: what its errors mean, what its headers ask for, and what it may leave out.

use chrono::TimeDelta;
use serde_json::{Value, json};
use tidemark::platforms::source::{PostKey, Source, SourceError};

use crate::canned::{self, Canned, Say};
use crate::{LIMITS, depth, graph_source, key, now};

fn error(code: i64, subcode: i64, more: Value) -> Value {
    let mut error = json!({"message": "m", "type": "OAuthException", "code": code, "error_subcode": subcode});
    for (name, value) in more.as_object().into_iter().flatten() {
        error[name] = value.clone();
    }
    json!({"error": error})
}

async fn refused(status: u16, body: Value) -> SourceError {
    let server = Canned::start(vec![canned::json(status, &body)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await.expect_err("a refusal")
}

#[tokio::test]
async fn the_code_of_an_error_decides_what_is_done() {
    let name = |refusal: &SourceError| match refusal {
        SourceError::NotFound(_) => "not found",
        SourceError::RateLimited { .. } => "rate limited",
        SourceError::Credentials(_) => "credentials",
        SourceError::Transient(_) => "transient",
        SourceError::Malformed(_) => "malformed",
        SourceError::Unsupported => "unsupported",
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
        // An error is one whatever the status says, and whether its code is a number or a text.
        (200, 110, 2_207_013, json!({}), "not found"),
        (200, 190, 0, json!({"code": "190"}), "credentials"),
    ] {
        let refusal = refused(status, error(code, subcode, more)).await;
        assert_eq!(name(&refusal), expected, "HTTP {status}, code {code}: {refusal}");
    }
}

#[tokio::test]
async fn a_token_quoted_in_an_error_is_not_repeated() {
    let token = tidemark::sandbox::instagram_graph::TOKEN;
    let refusal =
        refused(400, error(190, 0, json!({"message": format!("Malformed access token {token}")}))).await;
    assert!(refusal.to_string().contains("[redacted]") && !refusal.to_string().contains(token), "{refusal}");
}

#[tokio::test]
async fn the_token_travels_in_a_header_and_not_in_the_address() {
    let server = Canned::start(vec![canned::json(200, &json!({"business_discovery": {"id": "1"}}))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await.expect("an answer");
    let request = &server.requests()[0];
    let line = request.lines().next().unwrap_or_default();
    assert!(line.starts_with("GET /base/17841400000000001?fields="), "{line}");
    assert!(!line.contains(tidemark::sandbox::instagram_graph::TOKEN));
    assert!(request.to_lowercase().contains("authorization: bearer sandbox-graph-token"));
}

#[tokio::test]
async fn usage_near_its_limit_makes_a_pause_without_asking_again() {
    let good = json!({"business_discovery": {"id": "1"}}).to_string();
    let header = ("x-app-usage", r#"{"call_count":90,"total_time":1,"total_cputime":1}"#.to_owned());
    let server = Canned::start(vec![Say::Answer(200, vec![header], good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let ask = async |later: i64| {
        source
            .fetch_account(&key("some.one"), depth(9, "2026-01-01"), now() + TimeDelta::seconds(later))
            .await
    };
    ask(0).await.expect("the answer at 90 percent is an answer");
    let until = now() + TimeDelta::seconds(330);
    assert_eq!(ask(1).await, Err(SourceError::RateLimited { until }));
    assert_eq!(server.requests().len(), 1, "a pause is a pause");
    ask(330).await.expect("the pause is over");
}

#[tokio::test]
async fn a_limit_that_was_hit_says_when_it_ends() {
    let case =
        r#"{"178":[{"type":"instagram","call_count":100,"estimated_time_to_regain_access":7}]}"#.to_owned();
    let body = error(80_002, 0, json!({})).to_string();
    let server = Canned::start(vec![Say::Answer(400, vec![("x-business-use-case-usage", case)], body)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    for later in [0, 60] {
        let asked =
            source.fetch_account(&key("a"), depth(9, "2026-01-01"), now() + TimeDelta::seconds(later)).await;
        assert_eq!(asked, Err(SourceError::RateLimited { until: now() + TimeDelta::minutes(7) }));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_version_without_view_counts_is_read_without_them() {
    let no_field =
        error(100, 0, json!({"message": "(#100) Please read documentation for supported fields."}));
    let good = json!({"business_discovery": {"id": "1", "media": {"data": [{"id": 5, "like_count": "7"}]}}});
    let server = Canned::start(vec![canned::json(400, &no_field), canned::json(200, &good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    for minutes in [0, 59, 60] {
        let later = now() + TimeDelta::minutes(minutes);
        let answer =
            source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), later).await.expect("an answer");
        assert_eq!(answer.posts[0].external_id, "5");
        assert_eq!(answer.posts[0].counters.like_count, Some(7));
    }
    let asked: Vec<bool> = server.requests().iter().map(|request| request.contains("view_count")).collect();
    assert_eq!(asked, [true, false, false, true], "what was refused is asked for again after an hour");
}

#[tokio::test]
async fn impossible_numbers_are_unknown_and_the_rest_is_kept() {
    let rows = json!([
        {"id": "1", "like_count": -1, "comments_count": 1e300, "view_count": "18446744073709551616",
         "timestamp": "yesterday", "caption": "a\u{0}b", "permalink": "javascript:alert(1)"},
        {"like_count": 5},
        {"id": "2", "timestamp": "2026-03-01T00:00:00+0000", "media_type": "VIDEO", "media_product_type": "REELS",
         "media_url": "https://scontent.example/2.mp4", "children": null},
    ]);
    let good = json!({"business_discovery": {"id": 17841401441775531_u64, "followers_count": -3, "website": "",
        "media": {"data": rows}}});
    let server = Canned::start(vec![canned::json(200, &good)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let answer =
        source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await.expect("an answer");
    assert_eq!(answer.profile.platform_id.as_deref(), Some("17841401441775531"));
    assert_eq!((answer.profile.follower_count, answer.profile.link_in_bio), (None, None));
    let [odd, reel] = answer.posts.as_slice() else {
        panic!("the row without an id is left out: {:?}", answer.posts)
    };
    assert!(odd.counters.is_empty());
    assert_eq!(
        (odd.create_time, odd.shortcode.as_deref(), odd.description.as_deref()),
        (None, None, Some("ab"))
    );
    assert_eq!(reel.media_type.as_deref(), Some("reel"));
    assert_eq!(reel.video_url.as_deref(), Some("https://scontent.example/2.mp4"));
    assert_eq!(reel.platform_data, json!({"media_product_type": "REELS"}));
}

#[tokio::test]
async fn a_walk_that_cannot_end_ends() {
    let page = json!({"business_discovery": {"id": "1", "media": {"data": [{"id": "5"}],
        "paging": {"cursors": {"after": "QVFIsame"}}}}});
    let server = Canned::start(vec![canned::json(200, &page)]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let refusal =
        source.fetch_account(&key("some.one"), depth(500, "2026-01-01"), now()).await.expect_err("a refusal");
    assert!(matches!(refusal, SourceError::Malformed(_)), "{refusal}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_name_that_would_change_the_question_is_never_sent() {
    let server = Canned::start(vec![canned::json(200, &json!({}))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    for name in ["x){id}", "", "a b", "é"] {
        let asked = source.fetch_account(&key(name), depth(9, "2026-01-01"), now()).await;
        assert!(matches!(asked, Err(SourceError::NotFound(_))), "{name}: {asked:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn single_posts_are_beyond_business_discovery() {
    let server = Canned::start(vec![canned::json(200, &json!({}))]).await;
    let post = PostKey { external_id: Some("1".into()), shortcode: Some("abc".into()), username: None };
    assert_eq!(
        graph_source(&server.url, LIMITS, 50).fetch_post(&post, now()).await,
        Err(SourceError::Unsupported)
    );
    assert!(server.requests().is_empty());
}
