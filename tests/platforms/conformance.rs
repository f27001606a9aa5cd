//! `tidemark source check`: conforming collectors pass, and each rule detects its violation.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::platforms::conformance::{Collector, RuleOutcome, RuleResult, Samples, check};
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::source::Source;
use tokio::net::TcpListener;
use url::Url;

use crate::collector::{
    CollectorRequest, CollectorResponse, TOKEN, all_posts, conforming, error, response, serve,
};
use crate::example::Example;
use crate::{LIMITS, depth, http_source, key, now};

fn sample(username: &str) -> Samples {
    Samples { username: Some(username.to_owned()), ..Samples::default() }
}

fn rules(results: &[RuleResult], outcome: RuleOutcome) -> BTreeSet<&'static str> {
    results.iter().filter(|result| result.outcome == outcome).map(|result| result.rule).collect()
}

/// Checks a collector whose conforming responses are changed, and returns the failed rules.
async fn failed_rules(
    change: impl Fn(&CollectorRequest, CollectorResponse) -> CollectorResponse + Send + Sync + 'static,
) -> (Vec<&'static str>, Vec<RuleResult>) {
    let collector = serve(move |request| change(request, conforming(request))).await;
    let results = check(&collector, Platform::Instagram, &sample("some.one")).await.unwrap();
    (rules(&results, RuleOutcome::Fail).into_iter().collect(), results)
}

#[tokio::test]
async fn conforming_collector_passes() {
    let (failed, results) = failed_rules(|_, conforming| conforming).await;
    assert_eq!(failed, [""; 0], "{results:#?}");
    assert_eq!(rules(&results, RuleOutcome::Skip), BTreeSet::new(), "{results:#?}");
    assert_eq!(results.len(), 16, "{results:#?}");
}

type Change = Box<dyn Fn(&CollectorRequest, CollectorResponse) -> CollectorResponse + Send + Sync>;

/// Changes of all responses and of accounts, each with the rule that it violates.
fn account_violations() -> Vec<(&'static str, Change)> {
    vec![
        ("json", Box::new(|_, valid| CollectorResponse { content_type: "text/html", ..valid })),
        (
            "schema",
            Box::new(|request, mut valid| {
                if valid.is_ok() && request.is_account() {
                    valid.body["posts"][0]["like_count"] = json!("1");
                }
                valid
            }),
        ),
        (
            "errors",
            Box::new(
                |_, valid| if valid.is_ok() { valid } else { CollectorResponse { status: 400, ..valid } },
            ),
        ),
        (
            "account",
            Box::new(|request, mut valid| {
                if valid.is_ok() && request.is_account() && request.get("id").is_none() {
                    valid.body["profile"]["username"] = json!("other.one");
                }
                valid
            }),
        ),
        (
            "values",
            Box::new(|request, mut valid| {
                if valid.is_ok() && request.is_account() {
                    valid.body["posts"][0]["view_count"] = json!(9_223_372_036_854_775_807_i64);
                }
                valid
            }),
        ),
        (
            "account-by-id",
            Box::new(|request, valid| {
                let by_id = request.get("id").is_some() && request.username() == "some.one";
                if by_id { error(404, "not_found") } else { valid }
            }),
        ),
        (
            "rename",
            Box::new(|request, mut valid| {
                if valid.is_ok() && request.is_account() && request.username() != "some.one" {
                    valid.body["profile"] = json!({"id": "999", "username": "another.one"});
                }
                valid
            }),
        ),
        (
            "unknown-account",
            Box::new(|request, valid| {
                let is_unknown = request.is_account() && valid.status == 404;
                let empty = || response(200, json!({"profile": {}, "posts": [], "next": null}));
                if is_unknown { empty() } else { valid }
            }),
        ),
    ]
}

/// Changes of posts and of the token check, each with the rule that it violates.
fn post_violations() -> Vec<(&'static str, Change)> {
    vec![
        (
            "paging",
            Box::new(|request, mut valid| {
                // The last post of a page is repeated on the next one.
                if request.get("cursor") == Some("3") {
                    valid.body["posts"].as_array_mut().unwrap().insert(0, all_posts()[2].clone());
                }
                valid
            }),
        ),
        (
            "newest",
            Box::new(|request, mut valid| {
                if request.get("max_posts") == Some("2") && request.get("id").is_none() && valid.is_ok() {
                    valid.body["posts"] = json!([all_posts()[6], all_posts()[5]]);
                }
                valid
            }),
        ),
        (
            "not-before",
            Box::new(|request, mut valid| {
                let day = request.get("not_before").unwrap_or_default().to_owned();
                if let Some(posts) = valid.body["posts"].as_array_mut() {
                    posts.retain(|post| !post["create_time"].as_str().unwrap().starts_with(&day));
                }
                valid
            }),
        ),
        (
            "not-before",
            Box::new(|request, mut valid| {
                // A page of older posts comes first.
                let is_limited = request.get("not_before") != Some("2010-01-01");
                if request.is_account() && valid.is_ok() && is_limited && request.get("cursor").is_none() {
                    let time = |day: i32| format!("2025-01-{day}T10:00:00Z");
                    let older = (10..20).map(|day| json!({"id": day, "create_time": time(day)}));
                    valid.body["posts"] = older.collect();
                    valid.body["next"] = json!("0");
                }
                valid
            }),
        ),
        (
            "unknown-post",
            Box::new(|request, valid| {
                let is_unknown = request.get("id").is_some() && !request.is_account() && valid.status == 404;
                if is_unknown { response(200, json!({"post": all_posts()[0]})) } else { valid }
            }),
        ),
        (
            "post-by-id",
            Box::new(|request, valid| {
                let by_id = request.get("id").is_some() && !request.is_account() && valid.is_ok();
                if by_id { response(200, json!({"post": all_posts()[4]})) } else { valid }
            }),
        ),
        (
            "post-by-shortcode",
            Box::new(|request, valid| {
                let is_unknown = request.get("shortcode").is_some() && valid.status == 404;
                if is_unknown { response(200, json!({"post": {"id": "5"}})) } else { valid }
            }),
        ),
        (
            "token",
            Box::new(|request, _| {
                conforming(&CollectorRequest {
                    token: Some(TOKEN.to_owned()),
                    path: request.path.clone(),
                    query: request.query.clone(),
                })
            }),
        ),
    ]
}

#[tokio::test]
async fn each_rule_detects_its_violation() {
    for (rule, change) in account_violations().into_iter().chain(post_violations()) {
        let (failed, results) = failed_rules(change).await;
        assert_eq!(failed, [rule], "{rule}: {results:#?}");
        let result = results.iter().find(|result| result.rule == rule).unwrap();
        assert!(result.detail.as_ref().is_some_and(|detail| detail.len() > 10), "{result:?}");
    }
}

#[tokio::test]
async fn over_delivery_is_a_remark() {
    // The collector ignores the depth.
    let collector = serve(|request| {
        let mut query = request.query.clone();
        query.retain(|name, _| name != "not_before" && name != "max_posts");
        conforming(&CollectorRequest { path: request.path.clone(), query, token: request.token.clone() })
    })
    .await;
    let results = check(&collector, Platform::Instagram, &sample("some.one")).await.unwrap();
    assert_eq!(rules(&results, RuleOutcome::Fail), BTreeSet::new(), "{results:#?}");
    let detail =
        |rule: &str| results.iter().find(|result| result.rule == rule).unwrap().detail.clone().unwrap();
    assert_eq!(detail("newest"), "over-delivery: 3 posts with max_posts=2");
    assert_eq!(
        detail("not-before"),
        "over-delivery: with not_before=2026-03-04, 3 of 7 posts and all posts of 1 of 3 pages are older"
    );
}

#[tokio::test]
async fn redirect_fails_the_rules_of_its_operation() {
    let (failed, results) = failed_rules(|request, valid| match request.is_account() {
        true => valid,
        false => CollectorResponse { has_location: true, ..response(302, json!({})) },
    })
    .await;
    assert_eq!(failed[0], "answers", "{results:#?}");
    assert_eq!(failed[1..], ["post-by-id", "post-by-shortcode", "unknown-post"]);
}

#[tokio::test]
async fn endless_paging_ends_the_check() {
    let (failed, results) = failed_rules(|request, mut valid| {
        if request.is_account() && valid.is_ok() {
            valid.body["next"] = json!("1");
        }
        valid
    })
    .await;
    assert_eq!(failed, ["paging"], "{results:#?}");
    assert!(rules(&results, RuleOutcome::Skip).contains("newest"), "{results:#?}");
}

#[tokio::test]
async fn silent_collector_ends_the_check() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}", silent.local_addr().unwrap())).unwrap();
    let limits = RequestLimits { timeout: Duration::from_millis(50), ..LIMITS };
    let collector = Collector { base, token: None, limits };
    let results = check(&collector, Platform::Tiktok, &sample("some.one")).await.unwrap();
    let failed = rules(&results, RuleOutcome::Fail);
    assert!(failed.is_superset(&BTreeSet::from(["answers", "account"])), "{results:#?}");
    assert_eq!(rules(&results, RuleOutcome::Pass), BTreeSet::new());
}

/// Runs the command, and returns its exit code, its results by rule and its standard error.
async fn run_command(arguments: &[&str]) -> (Option<i32>, BTreeMap<String, Value>, String) {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["source", "check", "--json"])
            .args(arguments)
            .output()
            .unwrap()
    });
    let output = output.await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let results: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let by_rule = results.into_iter().map(|result| (result["rule"].as_str().unwrap().to_owned(), result));
    (output.status.code(), by_rule.collect(), stderr)
}

#[tokio::test]
async fn sandbox_conforms_on_both_platforms() {
    let sandbox = crate::sandboxed::sandbox().await;
    for platform in Platform::ALL {
        let username = crate::sandboxed::any_account(&sandbox, platform).username;
        let url = format!("{}/http", sandbox.url);
        let token = format!("--token={}", sandbox::http_source::TOKEN);
        let arguments = [url.as_str(), "--platform", platform.as_str(), "--username", &username, &token];
        let (code, results, stderr) = run_command(&arguments).await;
        assert_eq!(code, Some(0), "{stderr} {results:#?}");
        for (rule, result) in &results {
            let expected =
                if platform == Platform::Tiktok && rule == "post-by-shortcode" { "skip" } else { "pass" };
            assert_eq!(result["outcome"], expected, "{result}");
        }
        assert!(results["paging"]["detail"].as_str().unwrap().contains("2 pages"), "{results:#?}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn documented_example_conforms_and_can_be_read() {
    for platform in Platform::ALL {
        let example = Example::start(Some("tide"));
        let arguments = [
            example.url.as_str(),
            "--platform",
            platform.as_str(),
            "--username",
            "@tide.lines",
            "--token",
            "tide",
        ];
        let (code, results, stderr) = run_command(&arguments).await;
        assert_eq!(code, Some(0), "{stderr} {results:#?}");
        let skipped: Vec<_> = results.values().filter(|result| result["outcome"] != "pass").collect();
        assert_eq!(skipped.len(), usize::from(platform == Platform::Tiktok), "{skipped:#?}");
    }
    let example = Example::start(None);
    let base = Url::parse(&example.url).unwrap();
    let source = http_source(&base, LIMITS, Platform::Instagram);
    let fetched = source
        .fetch_account(&key("tide.lines"), depth(100, "2000-01-01"), now())
        .await
        .expect("the fetch succeeds");
    assert_eq!((fetched.posts.len(), fetched.profile.counters.follower_count), (45, Some(4200)));
}

#[tokio::test]
async fn command_reports_failed_and_skipped_rules() {
    let (code, results, stderr) = run_command(&["http://127.0.0.1:9/"]).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(
        (&results["answers"]["outcome"], &results["newest"]["outcome"]),
        (&json!("fail"), &json!("skip"))
    );
    assert!(stderr.contains(" failed"), "{stderr}");
    let (code, _, stderr) = run_command(&["ftp://x/"]).await;
    assert!(code == Some(1) && stderr.contains("http or https URL"), "{stderr}");
    let (code, _, stderr) = run_command(&["http://127.0.0.1:9/", "--username", "a"]).await;
    assert!(code == Some(2) && stderr.contains("--platform"), "{stderr}");
}
