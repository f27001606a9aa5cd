//! `tidemark source check`: collectors that keep to the contract pass, and each rule fails where it is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::model::secret::Secret;
use tidemark::platforms::conformance::{Collector, RuleOutcome, RuleResult, Samples, check};
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::source::Source;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

use crate::example::Example;
use crate::{LIMITS, depth, http_source, key, now};

const TOKEN: &str = "the-right-token";
const ID: &str = "178";

/// A request as the small collector below sees it.
struct Asked {
    path: String,
    query: BTreeMap<String, String>,
    token: Option<String>,
}

impl Asked {
    fn get(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    fn is_account(&self) -> bool {
        self.path.contains("/accounts/")
    }

    fn username(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// What it answers.
#[derive(Clone)]
struct Reply {
    status: u16,
    content_type: &'static str,
    location: bool,
    body: Value,
}

fn reply(status: u16, body: Value) -> Reply {
    Reply { status, content_type: "application/json", location: false, body }
}

fn refusal(status: u16, code: &str) -> Reply {
    reply(status, json!({"error": {"code": code, "message": "no"}}))
}

/// Seven posts, a day apart, the newest first.
fn every_post() -> Vec<Value> {
    (1..=7)
        .rev()
        .map(|day| {
            json!({"id": format!("90{day}"), "shortcode": format!("C{day}"), "create_time": format!("2026-03-0{day}T10:00:00Z"),
                "view_count": day, "like_count": 1})
        })
        .collect()
}

/// Answers as the contract says: one account, pages of three.
fn right(asked: &Asked) -> Reply {
    if asked.token.as_deref() != Some(TOKEN) {
        return refusal(401, "unauthorized");
    }
    if !asked.is_account() {
        let found = every_post().into_iter().find(|post| match asked.get("id") {
            Some(id) => post["id"] == id,
            None => asked.get("shortcode").is_some_and(|code| post["shortcode"] == code),
        });
        return found.map_or(refusal(404, "not_found"), |post| reply(200, json!({"post": post})));
    }
    if asked.get("id").map_or(asked.username() != "some.one", |id| id != ID) {
        return refusal(404, "not_found");
    }
    let posts: Vec<Value> = every_post()
        .into_iter()
        .filter(|post| asked.get("not_before").is_none_or(|day| post["create_time"].as_str().unwrap() >= day))
        .collect();
    let start = asked.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let wanted: usize = asked.get("max_posts").map_or(3, |most| most.parse().unwrap());
    let end = posts.len().min(start + wanted.min(3));
    let next = (end < posts.len()).then(|| end.to_string());
    reply(
        200,
        json!({"profile": {"id": ID, "username": "some.one", "follower_count": 5},
        "posts": posts[start.min(end)..end], "next": next}),
    )
}

/// Serves answers that a test has a hand in.
async fn serve(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Collector {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}/api", listener.local_addr().unwrap())).unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).await.is_err() {
                        return;
                    }
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap();
                let url = Url::parse(&format!("http://x{target}")).unwrap();
                let token = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
                let asked = Asked {
                    path: url.path().to_owned(),
                    query: url.query_pairs().into_owned().collect(),
                    token: token.map(str::to_owned),
                };
                let Reply { status, content_type, location, body } = answer(&asked);
                let body = body.to_string();
                let location = if location { "location: /api/\r\n" } else { "" };
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\n{location}content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    Collector { base, token: Some(Secret::new(TOKEN)), limits: LIMITS }
}

fn known(username: &str) -> Samples {
    Samples { username: Some(username.to_owned()), ..Samples::default() }
}

fn rules(findings: &[RuleResult], outcome: RuleOutcome) -> BTreeSet<&'static str> {
    findings.iter().filter(|finding| finding.outcome == outcome).map(|finding| finding.rule).collect()
}

/// Checks a collector whose right answers are changed, and returns the rules that it breaks.
async fn broken(
    change: impl Fn(&Asked, Reply) -> Reply + Send + Sync + 'static,
) -> (Vec<&'static str>, Vec<RuleResult>) {
    let collector = serve(move |asked| change(asked, right(asked))).await;
    let findings = check(&collector, Platform::Instagram, &known("some.one")).await.unwrap();
    (rules(&findings, RuleOutcome::Fail).into_iter().collect(), findings)
}

#[tokio::test]
async fn a_collector_that_keeps_to_the_contract_passes() {
    let (fails, findings) = broken(|_, right| right).await;
    assert_eq!(fails, [""; 0], "{findings:#?}");
    assert_eq!(rules(&findings, RuleOutcome::Skip), BTreeSet::new(), "{findings:#?}");
    assert_eq!(findings.len(), 16, "{findings:#?}");
}

#[tokio::test]
async fn each_rule_fails_where_it_is_broken() {
    let ok = |reply: &Reply| reply.status == 200;
    let on_posts = ["post-by-id", "post-by-shortcode", "unknown-post"];
    let (fails, findings) = broken(|asked, right| match asked.is_account() {
        true => right,
        false => Reply { location: true, ..reply(302, json!({})) },
    })
    .await;
    assert_eq!(fails[0], "answers", "{findings:#?}");
    assert_eq!(fails[1..], on_posts);
    type Change = Box<dyn Fn(&Asked, Reply) -> Reply + Send + Sync>;
    let cases: Vec<(&str, Change)> = vec![
        ("json", Box::new(|_, right| Reply { content_type: "text/html", ..right })),
        (
            "schema",
            Box::new(move |asked, mut right| {
                if ok(&right) && asked.is_account() {
                    right.body["posts"][0]["like_count"] = json!("1");
                }
                right
            }),
        ),
        ("errors", Box::new(move |_, right| if ok(&right) { right } else { Reply { status: 400, ..right } })),
        (
            "account",
            Box::new(move |asked, mut right| {
                if ok(&right) && asked.is_account() && asked.get("id").is_none() {
                    right.body["profile"]["username"] = json!("other.one");
                }
                right
            }),
        ),
        (
            "paging",
            Box::new(move |asked, mut right| {
                // The last post of a page comes again on the next one.
                if asked.get("cursor") == Some("3") {
                    right.body["posts"].as_array_mut().unwrap().insert(0, every_post()[2].clone());
                }
                right
            }),
        ),
        (
            "values",
            Box::new(move |asked, mut right| {
                if ok(&right) && asked.is_account() {
                    right.body["posts"][0]["view_count"] = json!(9_223_372_036_854_775_807_i64);
                }
                right
            }),
        ),
        (
            "newest",
            Box::new(move |asked, mut right| {
                if asked.get("max_posts") == Some("2") && asked.get("id").is_none() && ok(&right) {
                    right.body["posts"] = json!([every_post()[6], every_post()[5]]);
                }
                right
            }),
        ),
        (
            "not-before",
            Box::new(move |asked, mut right| {
                let day = asked.get("not_before").unwrap_or_default().to_owned();
                if let Some(posts) = right.body["posts"].as_array_mut() {
                    posts.retain(|post| !post["create_time"].as_str().unwrap().starts_with(&day));
                }
                right
            }),
        ),
        (
            "account-by-id",
            Box::new(move |asked, right| {
                let by_id = asked.get("id").is_some() && asked.username() == "some.one";
                if by_id { refusal(404, "not_found") } else { right }
            }),
        ),
        (
            "rename",
            Box::new(move |asked, mut right| {
                if ok(&right) && asked.is_account() && asked.username() != "some.one" {
                    right.body["profile"] = json!({"id": "999", "username": "somebody.else"});
                }
                right
            }),
        ),
        (
            "unknown-account",
            Box::new(move |asked, right| {
                let unknown = asked.is_account() && right.status == 404;
                if unknown { reply(200, json!({"profile": {}, "posts": [], "next": null})) } else { right }
            }),
        ),
        (
            "unknown-post",
            Box::new(move |asked, right| {
                let unknown = asked.get("id").is_some() && !asked.is_account() && right.status == 404;
                if unknown { reply(200, json!({"post": every_post()[0]})) } else { right }
            }),
        ),
        (
            "post-by-id",
            Box::new(move |asked, right| {
                let known = asked.get("id").is_some() && !asked.is_account() && ok(&right);
                if known { reply(200, json!({"post": every_post()[4]})) } else { right }
            }),
        ),
        (
            "post-by-shortcode",
            Box::new(move |asked, right| {
                let unknown = asked.get("shortcode").is_some() && right.status == 404;
                if unknown { reply(200, json!({"post": {"id": "5"}})) } else { right }
            }),
        ),
        (
            "token",
            Box::new(move |asked, _| {
                right(&Asked {
                    token: Some(TOKEN.to_owned()),
                    path: asked.path.clone(),
                    query: asked.query.clone(),
                })
            }),
        ),
    ];
    for (rule, change) in cases {
        let (fails, findings) = broken(change).await;
        assert_eq!(fails, [rule], "{rule}: {findings:#?}");
        let finding = findings.iter().find(|finding| finding.rule == rule).unwrap();
        assert!(finding.detail.as_ref().is_some_and(|detail| detail.len() > 10), "{finding:?}");
    }
}

#[tokio::test]
async fn paging_without_end_and_a_server_without_answer_end_the_check() {
    let (fails, findings) = broken(|asked, mut right| {
        if asked.is_account() && right.status == 200 {
            right.body["next"] = json!("1");
        }
        right
    })
    .await;
    assert_eq!(fails, ["paging"], "{findings:#?}");
    assert!(rules(&findings, RuleOutcome::Skip).contains("newest"), "{findings:#?}");

    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}", silent.local_addr().unwrap())).unwrap();
    let limits = RequestLimits { timeout: Duration::from_millis(50), ..LIMITS };
    let began = Instant::now();
    let collector = Collector { base, token: None, limits };
    let findings = check(&collector, Platform::Tiktok, &known("some.one")).await.unwrap();
    assert!(
        rules(&findings, RuleOutcome::Fail).is_superset(&BTreeSet::from(["answers", "account"])),
        "{findings:#?}"
    );
    assert_eq!(rules(&findings, RuleOutcome::Pass), BTreeSet::new());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Runs the command, and returns its status and its findings by rule.
async fn command(line: &[&str]) -> (Option<i32>, BTreeMap<String, Value>, String) {
    let line: Vec<String> = line.iter().map(|part| (*part).to_owned()).collect();
    let ended = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["source", "check", "--json"])
            .args(line)
            .output()
            .unwrap()
    });
    let ended = ended.await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    let by_rule = findings.into_iter().map(|finding| (finding["rule"].as_str().unwrap().to_owned(), finding));
    (ended.status.code(), by_rule.collect(), said)
}

#[tokio::test]
async fn the_sandbox_keeps_every_rule_on_both_platforms() {
    let sandbox = crate::sandboxed::sandbox().await;
    for platform in Platform::ALL {
        let name = crate::sandboxed::someone(&sandbox, platform).username;
        let url = format!("{}/http", sandbox.url);
        let token = format!("--token={}", tidemark::sandbox::http_source::TOKEN);
        let line = [url.as_str(), "--platform", platform.as_str(), "--username", &name, &token];
        let (status, findings, said) = command(&line).await;
        assert_eq!(status, Some(0), "{said} {findings:#?}");
        for (rule, finding) in &findings {
            let expected =
                if platform == Platform::Tiktok && rule == "post-by-shortcode" { "skip" } else { "pass" };
            assert_eq!(finding["outcome"], expected, "{finding}");
        }
        assert!(findings["paging"]["detail"].as_str().unwrap().contains("2 pages"), "{findings:#?}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn the_example_of_the_documentation_keeps_every_rule_and_can_be_read() {
    for platform in Platform::ALL {
        let example = Example::start(Some("tide"));
        let line = [
            example.url.as_str(),
            "--platform",
            platform.as_str(),
            "--username",
            "@tide.lines",
            "--token",
            "tide",
        ];
        let (status, findings, said) = command(&line).await;
        assert_eq!(status, Some(0), "{said} {findings:#?}");
        let skipped: Vec<_> = findings.values().filter(|finding| finding["outcome"] != "pass").collect();
        assert_eq!(skipped.len(), usize::from(platform == Platform::Tiktok), "{skipped:#?}");
    }
    let example = Example::start(None);
    let base = Url::parse(&example.url).unwrap();
    let source = http_source(&base, LIMITS, Platform::Instagram);
    let answer =
        source.fetch_account(&key("tide.lines"), depth(100, "2000-01-01"), now()).await.expect("an answer");
    assert_eq!((answer.posts.len(), answer.profile.follower_count), (45, Some(4200)));
}

#[tokio::test]
async fn the_command_tells_what_is_broken_and_what_it_was_not_given() {
    let (status, findings, said) = command(&["http://127.0.0.1:9/"]).await;
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(
        (&findings["answers"]["outcome"], &findings["newest"]["outcome"]),
        (&json!("fail"), &json!("skip"))
    );
    assert!(said.contains("broken"), "{said}");
    let (status, _, said) = command(&["ftp://x/"]).await;
    assert!(status == Some(1) && said.contains("http or https URL"), "{said}");
    let (status, _, said) = command(&["http://127.0.0.1:9/", "--username", "a"]).await;
    assert!(status == Some(2) && said.contains("--platform"), "{said}");
}
