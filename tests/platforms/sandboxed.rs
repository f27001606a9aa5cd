//! The real clients against the sandbox: the same accounts and the same numbers through every wire format.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tidemark::model::counters::Counters;
use tidemark::model::platform::Platform;
use tidemark::platforms::RequestBudget;
use tidemark::platforms::http_client::{HttpClient, RequestLimits};
use tidemark::platforms::source::{AccountKey, Post, PostKey, Source, SourceError};
use tidemark::platforms::sources::Sources;
use tidemark::sandbox::population::{Population, graph_counters};
use tidemark::sandbox::server::{SandboxServer, start};
use tidemark::sandbox::world::{Fault, World};
use url::Url;

use crate::{LIMITS, depth, graph_source, http_source, key, research_source, time};

pub async fn sandbox() -> SandboxServer {
    let world =
        World::open(Population::new(5, 8), None, Some(time("2026-03-10T12:00:00Z"))).expect("a new world");
    start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.expect("a free port")
}

pub fn base(sandbox: &SandboxServer, path: &str) -> Url {
    Url::parse(&format!("{}{path}", sandbox.url)).expect("a URL")
}

/// Each source with the address and the platform that it has in the sandbox; pages are small, so that there are many.
fn sources(sandbox: &SandboxServer, limits: RequestLimits) -> Vec<Arc<dyn Source>> {
    vec![
        Arc::new(graph_source(&base(sandbox, "/graph/v25.0"), limits, 7)),
        Arc::new(research_source(&base(sandbox, "/tiktok/v2"), limits, 3)),
        Arc::new(http_source(&base(sandbox, "/http"), limits, Platform::Instagram)),
        Arc::new(http_source(&base(sandbox, "/http"), limits, Platform::Tiktok)),
    ]
}

/// An account that the population has on a platform.
pub fn someone(sandbox: &SandboxServer, platform: Platform) -> AccountKey {
    let population = sandbox.world.population();
    let account =
        population.accounts().iter().rfind(|account| account.platform == platform).expect("an account");
    AccountKey { username: account.username.clone(), platform_id: None }
}

fn expected(
    sandbox: &SandboxServer,
    name: &str,
    platform: Platform,
    now: DateTime<Utc>,
) -> Vec<(String, Counters)> {
    let seen = sandbox.world.find_by_username(platform, name).expect("the account");
    seen.account.posts_at(now).map(|post| (post.id.clone(), post.counters_at(now))).collect()
}

fn ids(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.external_id.as_str()).collect()
}

#[tokio::test]
async fn every_wire_format_tells_the_same_story() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let platform = source.platform();
        let key = someone(&sandbox, platform);
        let now = sandbox.world.now();
        let answer = source.fetch_account(&key, depth(5000, "2020-01-01"), now).await.expect("an answer");
        let posts = expected(&sandbox, &key.username, platform, now);
        let expected_ids: Vec<&str> = posts.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids(&answer.posts), expected_ids, "{} on {platform}", source.name());
        for (post, (_, counters)) in answer.posts.iter().zip(&posts) {
            let visible =
                if source.name() == "instagram-graph" { graph_counters(*counters) } else { *counters };
            // A little time passes between the answer and this line.
            for (seen, meant) in post.counters.to_array().into_iter().zip(visible.to_array()) {
                assert_eq!(seen.is_some(), meant.is_some(), "{} on {platform}: {post:?}", source.name());
                let (seen, meant) = (seen.unwrap_or(0), meant.unwrap_or(0));
                assert!((seen - meant).abs() <= 1 + meant / 1000, "{seen} instead of {meant}");
            }
            assert!(post.create_time.is_some() && post.url.is_some() && post.description.is_some());
        }
        let seen = sandbox.world.find_by_username(platform, &key.username).expect("the account");
        assert_eq!(answer.profile.username, key.username);
        assert_eq!(answer.profile.post_count, Some(posts.len() as i64));
        assert_eq!(
            answer.profile.follower_count.map(|count| (count - seen.profile.follower_count).abs() < 50),
            Some(true)
        );
        let id = if source.name() == "tiktok-research" { None } else { Some(seen.account.id.clone()) };
        assert_eq!(answer.profile.platform_id, id);
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn a_walk_stops_at_its_depth() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let key = someone(&sandbox, source.platform());
        let now = sandbox.world.now();
        let all = expected(&sandbox, &key.username, source.platform(), now);
        let few = source.fetch_account(&key, depth(11, "2020-01-01"), now).await.expect("an answer");
        let newest: Vec<&str> = all[..11].iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids(&few.posts), newest, "{}", source.name());
        let recent = source.fetch_account(&key, depth(5000, "2026-01-15"), now).await.expect("an answer");
        let oldest = time("2026-01-15T00:00:00Z");
        assert!((6..9).contains(&recent.posts.len()), "{} posts in 54 days", recent.posts.len());
        assert!(recent.posts.iter().all(|post| post.create_time >= Some(oldest)));
        assert_eq!(
            source.fetch_account(&key, depth(0, "2020-01-01"), now).await.expect("an answer").posts,
            []
        );
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn every_ordered_failure_is_understood_and_passes() {
    let sandbox = sandbox().await;
    let brief = RequestLimits { timeout: Duration::from_millis(1_500), ..LIMITS };
    for fault in
        [Fault::Error, Fault::Hang, Fault::Html, Fault::Truncate, Fault::Unauthorized, Fault::RateLimit]
    {
        let limits = if fault == Fault::Hang { brief } else { LIMITS };
        for (source, patient) in sources(&sandbox, limits).into_iter().zip(sources(&sandbox, LIMITS)) {
            let key = someone(&sandbox, source.platform());
            let now = sandbox.world.now();
            sandbox.world.fail_next(source.platform(), fault, 1);
            let refusal =
                source.fetch_account(&key, depth(5, "2026-03-01"), now).await.expect_err("the failure");
            let is_meant = match fault {
                Fault::Error | Fault::Hang | Fault::Truncate => matches!(refusal, SourceError::Transient(_)),
                Fault::Html => matches!(refusal, SourceError::Malformed(_)),
                Fault::Unauthorized => matches!(refusal, SourceError::Credentials(_)),
                Fault::RateLimit => matches!(refusal, SourceError::RateLimited { until } if until > now
                    && until <= now + TimeDelta::seconds(62)),
            };
            assert!(is_meant, "{} at {fault:?}: {refusal}", source.name());
            let later = now + TimeDelta::minutes(2);
            let source = if fault == Fault::Hang { patient } else { source };
            source.fetch_account(&key, depth(5, "2026-03-01"), later).await.expect("the failure has passed");
        }
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn a_token_that_expired_meanwhile_is_renewed() {
    let sandbox = sandbox().await;
    let source = research_source(&base(&sandbox, "/tiktok/v2"), LIMITS, 100);
    let key = someone(&sandbox, Platform::Tiktok);
    for _ in 0..3 {
        source.fetch_account(&key, depth(5, "2026-03-01"), sandbox.world.now()).await.expect("an answer");
        sandbox.world.advance(3.0).expect("time passes");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn wrong_credentials_are_refused_as_such() {
    let sandbox = sandbox().await;
    let now = sandbox.world.now();
    let urls = [
        format!("--instagram-graph-url={}/graph/v25.0", sandbox.url),
        format!("--tiktok-research-url={}/tiktok/v2", sandbox.url),
        format!("--http-source-url={}/http", sandbox.url),
    ];
    let args = crate::config::args(&[
        &urls.each_ref().map(String::as_str),
        &[
            "--instagram-graph-user-id=17841400000000001",
            "--instagram-graph-token=stolen",
            "--tiktok-research-client-key=stolen",
            "--tiktok-research-client-secret=stolen",
            "--http-source-token=stolen",
        ],
    ]);
    let sources = Sources::from_args(&args, &RequestBudget::in_memory()).expect("a configuration");
    for platform in Platform::ALL {
        let refusal = sources
            .fetch_account(platform, &someone(&sandbox, platform), depth(5, "2026-03-01"), now, &[])
            .await
            .result;
        assert!(matches!(refusal, Err(SourceError::Credentials(_))), "{platform}: {refusal:?}");
    }
    let post = PostKey { external_id: None, shortcode: Some("abc".to_owned()), username: None };
    let refusal = sources.fetch_post(Platform::Instagram, &post, now, &[]).await.result;
    assert!(matches!(refusal, Err(SourceError::Credentials(_))), "{refusal:?}");
    sandbox.stop().await;
}

#[tokio::test]
async fn posts_are_read_by_every_name_that_a_source_understands() {
    let sandbox = sandbox().await;
    let sources = Sources::new(sources(&sandbox, LIMITS));
    let now = sandbox.world.now();
    for platform in Platform::ALL {
        let name = someone(&sandbox, platform).username;
        let account = sandbox.world.find_by_username(platform, &name).expect("the account").account;
        let post = account.posts_at(now).nth(3).expect("a fourth post");
        let by_id = PostKey { external_id: Some(post.id.clone()), shortcode: None, username: None };
        let read = sources.fetch_post(platform, &by_id, now, &[]).await.result.expect("the post");
        assert_eq!((read.external_id, read.shortcode), (post.id.clone(), post.shortcode.clone()));
        assert_eq!(read.create_time, Some(post.create_time));
        if post.shortcode.is_some() {
            let by_code = PostKey { external_id: None, shortcode: post.shortcode.clone(), username: None };
            assert_eq!(
                sources.fetch_post(platform, &by_code, now, &[]).await.result.expect("the post").external_id,
                post.id
            );
        }
        sandbox.world.set_account_deleted(platform, &name, true).expect("the account is lost");
        let refusal = sources.fetch_post(platform, &by_id, now, &[]).await.result;
        assert!(matches!(refusal, Err(SourceError::NotFound(_))), "{platform}: {refusal:?}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn a_rename_is_followed_by_id_where_a_source_can() {
    let sandbox = sandbox().await;
    let now = sandbox.world.now();
    let names_only = Sources::new(vec![Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50))]);
    let both = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    let mut known = someone(&sandbox, Platform::Instagram);
    let first = names_only
        .fetch_account(Platform::Instagram, &known, depth(5, "2026-01-01"), now, &[])
        .await
        .result
        .expect("an answer");
    known.platform_id = first.profile.platform_id.clone();
    let ask = async |sources: &Sources| {
        sources.fetch_account(Platform::Instagram, &known, depth(5, "2026-01-01"), now, &[]).await.result
    };

    sandbox.world.rename(Platform::Instagram, &known.username, "another.name").expect("a rename");
    assert!(matches!(ask(&names_only).await, Err(SourceError::NotFound(_))));
    let followed = ask(&both).await.expect("the account under its new name");
    assert_eq!(
        (followed.profile.username.as_str(), &followed.profile.platform_id),
        ("another.name", &known.platform_id)
    );
    assert_eq!(ids(&followed.posts), ids(&first.posts));

    // Somebody else takes the name that was given up.
    let other = sandbox.world.population().accounts()[0].username.clone();
    assert_ne!(other, known.username);
    sandbox.world.rename(Platform::Instagram, &other, &known.username).expect("a rename");
    let stranger = ask(&names_only).await.expect("an answer about somebody else");
    assert_ne!(stranger.profile.platform_id, known.platform_id);
    assert_eq!(ask(&both).await.expect("the account meant").profile.username, "another.name");

    // While the one that could tell is out of order, nothing is concluded.
    sandbox.world.rename(Platform::Instagram, &known.username, "third.name").expect("a rename");
    let graph_then_broken = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(
            &Url::parse("http://127.0.0.1:9/").expect("a URL"),
            LIMITS,
            Platform::Instagram,
        )),
    ]);
    assert!(matches!(ask(&graph_then_broken).await, Err(SourceError::Transient(_))));

    sandbox
        .world
        .set_account_deleted(Platform::Instagram, "another.name", true)
        .expect("the account is lost");
    assert!(matches!(ask(&both).await, Err(SourceError::NotFound(_))));
    sandbox.stop().await;
}

#[tokio::test]
async fn unknown_accounts_are_not_found_by_any_source() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let refusal =
            source.fetch_account(&key("nobody_at_all"), depth(5, "2026-01-01"), sandbox.world.now()).await;
        assert!(matches!(refusal, Err(SourceError::NotFound(_))), "{}: {refusal:?}", source.name());
    }
    sandbox.stop().await;
}

/// The document, the client and the sandbox know the same fields.
#[tokio::test]
async fn the_open_contract_is_what_its_document_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/http-source.openapi.json");
    let text = std::fs::read_to_string(path).expect("the document is in the repository");
    let document: Value = serde_json::from_str(&text).expect("the document is JSON");
    let fields = |schema: &str| -> BTreeSet<String> {
        let properties =
            document.pointer(&format!("/components/schemas/{schema}/properties")).and_then(Value::as_object);
        properties.unwrap_or_else(|| panic!("no schema {schema}")).keys().cloned().collect()
    };
    let sandbox = sandbox().await;
    let name = someone(&sandbox, Platform::Instagram).username;
    let client =
        HttpClient::for_service("test", &base(&sandbox, ""), LIMITS).expect("a client").client().clone();
    let get = async |path: String| -> Value {
        let answer = client.get(format!("{}/http{path}", sandbox.url)).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    };
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };

    let account = get(format!("/v1/instagram/accounts/{name}?max_posts=3")).await;
    assert_eq!(keys(&account), fields("AccountResponse"));
    assert_eq!(keys(&account["profile"]), fields("Profile"));
    let optional = BTreeSet::from(["video_url".to_owned(), "platform_data".to_owned()]);
    let mut post = keys(&account["posts"][0]);
    assert!(post.is_disjoint(&optional));
    post.extend(optional);
    assert_eq!(post, fields("Post"));
    assert!(Counters::NAMES.iter().all(|name| post.contains(*name)));
    let id = account["posts"][0]["id"].as_str().expect("an id");
    assert_eq!(keys(&get(format!("/v1/instagram/posts?id={id}")).await), fields("PostResponse"));
    let error = get("/v1/instagram/posts?id=1".to_owned()).await;
    assert_eq!(keys(&error), fields("ErrorResponse"));
    let codes = document.pointer("/components/schemas/ErrorResponse/properties/error/properties/code/enum");
    assert!(codes.and_then(Value::as_array).is_some_and(|codes| codes.contains(&error["error"]["code"])));
    sandbox.stop().await;
}
