//! The sources against the sandbox: the same accounts and counters through every wire format.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use harness::sandbox_platform;
use sandbox::population::{Population, graph_counters};
use sandbox::server::{SandboxServer, start};
use sandbox::world::World;
use sandbox::{Counters, Fault};
use serde_json::Value;
use tidemark::model::platform::Platform;
use tidemark::platforms::RequestBudget;
use tidemark::platforms::http_client::{HttpClient, RequestLimits};
use tidemark::platforms::source::{AccountKey, Post, PostKey, Source, SourceError};
use tidemark::platforms::sources::Sources;
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

/// Every source with its URL and platform in the sandbox. Pages are small, so that there are many.
fn sources(sandbox: &SandboxServer, limits: RequestLimits) -> Vec<Arc<dyn Source>> {
    vec![
        Arc::new(graph_source(&base(sandbox, "/graph/v25.0"), limits, 7)),
        Arc::new(research_source(&base(sandbox, "/tiktok/v2"), limits, 3)),
        Arc::new(http_source(&base(sandbox, "/http"), limits, Platform::Instagram)),
        Arc::new(http_source(&base(sandbox, "/http"), limits, Platform::Tiktok)),
    ]
}

/// Returns an account of a platform.
pub fn any_account(sandbox: &SandboxServer, platform: Platform) -> AccountKey {
    let population = sandbox.world.population();
    let account = population
        .accounts()
        .iter()
        .rfind(|account| account.platform == sandbox_platform(platform))
        .expect("an account");
    AccountKey { username: account.username.clone(), platform_id: None }
}

fn expected(
    sandbox: &SandboxServer,
    name: &str,
    platform: Platform,
    now: DateTime<Utc>,
) -> Vec<(String, Counters)> {
    let seen = sandbox.world.find_by_username(sandbox_platform(platform), name).expect("the account");
    seen.account.posts_at(now).map(|post| (post.id.clone(), post.counters_at(now))).collect()
}

fn ids(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.external_id.as_str()).collect()
}

#[tokio::test]
async fn all_sources_return_the_same_data() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let info = source.info();
        let platform = info.platform;
        let key = any_account(&sandbox, platform);
        let now = sandbox.world.now();
        let fetched =
            source.fetch_account(&key, depth(5000, "2020-01-01"), now).await.expect("the fetch succeeds");
        let posts = expected(&sandbox, &key.username, platform, now);
        let expected_ids: Vec<&str> = posts.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids(&fetched.posts), expected_ids, "{} on {platform}", info.name);
        for (post, (_, counters)) in fetched.posts.iter().zip(&posts) {
            let visible = if info.name == "instagram-graph" { graph_counters(*counters) } else { *counters };
            // Counters grow between the response and this line.
            for (actual, expected) in post.counters.to_array().into_iter().zip(visible.to_array()) {
                assert_eq!(actual.is_some(), expected.is_some(), "{} on {platform}: {post:?}", info.name);
                let (actual, expected) = (actual.unwrap_or(0), expected.unwrap_or(0));
                assert!((actual - expected).abs() <= 1 + expected / 1000, "{actual} instead of {expected}");
            }
            assert!(
                post.fields.create_time.is_some()
                    && post.fields.url.is_some()
                    && post.fields.description.is_some()
            );
        }
        let seen =
            sandbox.world.find_by_username(sandbox_platform(platform), &key.username).expect("the account");
        assert_eq!(fetched.profile.username, key.username);
        assert_eq!(fetched.profile.counters.profile_post_count, Some(posts.len() as i64));
        assert_eq!(
            fetched
                .profile
                .counters
                .follower_count
                .map(|count| (count - seen.profile.follower_count).abs() < 50),
            Some(true)
        );
        let id = if info.name == "tiktok-research" { None } else { Some(seen.account.id.clone()) };
        assert_eq!(fetched.profile.platform_id, id);
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn reading_stops_at_the_depth() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let key = any_account(&sandbox, source.info().platform);
        let now = sandbox.world.now();
        let all = expected(&sandbox, &key.username, source.info().platform, now);
        let few = source.fetch_account(&key, depth(11, "2020-01-01"), now).await.expect("the fetch succeeds");
        let newest: Vec<&str> = all[..11].iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids(&few.posts), newest, "{}", source.info().name);
        let recent =
            source.fetch_account(&key, depth(5000, "2026-01-15"), now).await.expect("the fetch succeeds");
        let oldest = time("2026-01-15T00:00:00Z");
        assert!((6..9).contains(&recent.posts.len()), "{} posts in 54 days", recent.posts.len());
        assert!(recent.posts.iter().all(|post| post.fields.create_time >= Some(oldest)));
        assert_eq!(
            source.fetch_account(&key, depth(0, "2020-01-01"), now).await.expect("the fetch succeeds").posts,
            []
        );
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn each_injected_fault_is_classified_and_ends() {
    let sandbox = sandbox().await;
    let short_timeout = RequestLimits { timeout: Duration::from_millis(1_500), ..LIMITS };
    for fault in
        [Fault::Error, Fault::Hang, Fault::Html, Fault::Truncate, Fault::Unauthorized, Fault::RateLimit]
    {
        let limits = if fault == Fault::Hang { short_timeout } else { LIMITS };
        for (source, without_timeout) in sources(&sandbox, limits).into_iter().zip(sources(&sandbox, LIMITS))
        {
            let key = any_account(&sandbox, source.info().platform);
            let now = sandbox.world.now();
            sandbox.world.fail_next(sandbox_platform(source.info().platform), fault, 1);
            let error = source.fetch_account(&key, depth(5, "2026-03-01"), now).await.expect_err("the fault");
            let after = sandbox.world.now();
            let is_expected = match fault {
                Fault::Error | Fault::Hang | Fault::Truncate => matches!(error, SourceError::Transient(_)),
                Fault::Html => matches!(error, SourceError::Malformed(_)),
                Fault::Unauthorized => matches!(error, SourceError::Credentials(_)),
                Fault::RateLimit => matches!(error, SourceError::RateLimited { until } if until > now
                    && until <= after + TimeDelta::seconds(62)),
            };
            assert!(is_expected, "{} at {fault:?}: {error}", source.info().name);
            let later = now + TimeDelta::minutes(2);
            let source = if fault == Fault::Hang { without_timeout } else { source };
            source.fetch_account(&key, depth(5, "2026-03-01"), later).await.expect("the fault is over");
        }
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn expired_token_is_renewed() {
    let sandbox = sandbox().await;
    let source = research_source(&base(&sandbox, "/tiktok/v2"), LIMITS, 100);
    let key = any_account(&sandbox, Platform::Tiktok);
    for _ in 0..3 {
        source
            .fetch_account(&key, depth(5, "2026-03-01"), sandbox.world.now())
            .await
            .expect("the fetch succeeds");
        sandbox.world.advance(3.0).expect("time passes");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn wrong_credentials_are_rejected() {
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
        let fetched = sources
            .fetch_account(platform, &any_account(&sandbox, platform), depth(5, "2026-03-01"), now, &[])
            .await
            .result;
        assert!(matches!(fetched, Err(SourceError::Credentials(_))), "{platform}: {fetched:?}");
    }
    let post = PostKey { external_id: None, shortcode: Some("abc".to_owned()), username: None };
    let fetched = sources.fetch_post(Platform::Instagram, &post, now, &[]).await.result;
    assert!(matches!(fetched, Err(SourceError::Credentials(_))), "{fetched:?}");
    sandbox.stop().await;
}

#[tokio::test]
async fn posts_are_read_by_every_supported_key() {
    let sandbox = sandbox().await;
    let sources = Sources::new(sources(&sandbox, LIMITS));
    let now = sandbox.world.now();
    for platform in Platform::ALL {
        let name = any_account(&sandbox, platform).username;
        let account =
            sandbox.world.find_by_username(sandbox_platform(platform), &name).expect("the account").account;
        let post = account.posts_at(now).nth(3).expect("a fourth post");
        let by_id = PostKey { external_id: Some(post.id.clone()), shortcode: None, username: None };
        let read = sources.fetch_post(platform, &by_id, now, &[]).await.result.expect("the post");
        assert_eq!((read.external_id, read.shortcode), (post.id.clone(), post.shortcode.clone()));
        assert_eq!(read.fields.create_time, Some(post.create_time));
        if post.shortcode.is_some() {
            let by_shortcode =
                PostKey { external_id: None, shortcode: post.shortcode.clone(), username: None };
            assert_eq!(
                sources
                    .fetch_post(platform, &by_shortcode, now, &[])
                    .await
                    .result
                    .expect("the post")
                    .external_id,
                post.id
            );
        }
        sandbox
            .world
            .set_deleted(sandbox_platform(platform), &name, None, true)
            .expect("the account is deleted");
        let fetched = sources.fetch_post(platform, &by_id, now, &[]).await.result;
        assert!(matches!(fetched, Err(SourceError::NotFound(_))), "{platform}: {fetched:?}");
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn rename_is_followed_by_id_where_supported() {
    let sandbox = sandbox().await;
    let now = sandbox.world.now();
    let by_name_only =
        Sources::new(vec![Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50))]);
    let both = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    let mut account = any_account(&sandbox, Platform::Instagram);
    let first = by_name_only
        .fetch_account(Platform::Instagram, &account, depth(5, "2026-01-01"), now, &[])
        .await
        .result
        .expect("the fetch succeeds");
    account.platform_id = first.profile.platform_id.clone();
    let fetch = async |sources: &Sources| {
        sources.fetch_account(Platform::Instagram, &account, depth(5, "2026-01-01"), now, &[]).await.result
    };

    sandbox.world.rename(sandbox::Platform::Instagram, &account.username, "another.name").expect("a rename");
    assert!(matches!(fetch(&by_name_only).await, Err(SourceError::NotFound(_))));
    let followed = fetch(&both).await.expect("the account under its new name");
    assert_eq!(
        (followed.profile.username.as_str(), &followed.profile.platform_id),
        ("another.name", &account.platform_id)
    );
    assert_eq!(ids(&followed.posts), ids(&first.posts));

    // Another account takes the old name.
    let other = sandbox.world.population().accounts()[0].username.clone();
    assert_ne!(other, account.username);
    sandbox.world.rename(sandbox::Platform::Instagram, &other, &account.username).expect("a rename");
    let other_account = fetch(&by_name_only).await.expect("another account");
    assert_ne!(other_account.profile.platform_id, account.platform_id);
    assert_eq!(fetch(&both).await.expect("the account with the id").profile.username, "another.name");

    // While the source that finds by id is down, the account is not reported as missing.
    sandbox.world.rename(sandbox::Platform::Instagram, &account.username, "third.name").expect("a rename");
    let graph_then_broken = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(
            &Url::parse("http://127.0.0.1:9/").expect("a URL"),
            LIMITS,
            Platform::Instagram,
        )),
    ]);
    assert!(matches!(fetch(&graph_then_broken).await, Err(SourceError::Transient(_))));

    sandbox
        .world
        .set_deleted(sandbox::Platform::Instagram, "another.name", None, true)
        .expect("the account is deleted");
    assert!(matches!(fetch(&both).await, Err(SourceError::NotFound(_))));
    sandbox.stop().await;
}

#[tokio::test]
async fn unknown_account_is_not_found() {
    let sandbox = sandbox().await;
    for source in sources(&sandbox, LIMITS) {
        let fetched =
            source.fetch_account(&key("unknown_account"), depth(5, "2026-01-01"), sandbox.world.now()).await;
        assert!(matches!(fetched, Err(SourceError::NotFound(_))), "{}: {fetched:?}", source.info().name);
    }
    sandbox.stop().await;
}

/// The document, the client and the sandbox have the same fields.
#[tokio::test]
async fn http_source_contract_matches_its_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/http-source.openapi.json");
    let text = std::fs::read_to_string(path).expect("the document is in the repository");
    let document: Value = serde_json::from_str(&text).expect("the document is JSON");
    let fields = |schema: &str| -> BTreeSet<String> {
        let properties =
            document.pointer(&format!("/components/schemas/{schema}/properties")).and_then(Value::as_object);
        properties.unwrap_or_else(|| panic!("no schema {schema}")).keys().cloned().collect()
    };
    let sandbox = sandbox().await;
    let name = any_account(&sandbox, Platform::Instagram).username;
    let client =
        HttpClient::for_service("test", &base(&sandbox, ""), LIMITS).expect("a client").client().clone();
    let get = async |path: String| -> Value {
        let response = client.get(format!("{}/http{path}", sandbox.url)).send().await.expect("a response");
        response.json().await.expect("JSON")
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
