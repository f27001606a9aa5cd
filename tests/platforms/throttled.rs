//! Throttles and daily budgets of sources, and the next source in the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sandbox::Fault;
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::source::{AccountKey, Source, SourceError};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use url::Url;

use crate::canned::{self, CannedResponse, CannedServer};
use crate::sandboxed::{any_account, base, sandbox};
use crate::{LIMITS, depth, graph_source, http_source, key, now};

fn collector(base: &Url, platform: Platform, throttle: &RateThrottle) -> HttpSource {
    let config =
        HttpSourceConfig { base: base.clone(), token: None, throttle: throttle.clone(), limits: LIMITS };
    HttpSource::new(config, platform).expect("a valid configuration")
}

#[tokio::test]
async fn concurrency_limit_covers_both_platforms() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (running, max_running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let pair = Arc::new(Barrier::new(2));
    let counters = (Arc::clone(&running), Arc::clone(&max_running));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (running, max_running) = counters.clone();
            let pair = Arc::clone(&pair);
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    max_running.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // Responds to pairs only, so fewer concurrent requests would block.
                    pair.wait().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    let body = r#"{"profile": {}, "posts": []}"#;
                    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let throttle = RateThrottle::new("http", 2, None, RequestBudget::in_memory());
    let sources = Platform::ALL.map(|platform| collector(&base, platform, &throttle));
    let keys: Vec<AccountKey> = (0..10).map(|number| key(&format!("some.{number}"))).collect();
    let fetches = keys.iter().flat_map(|key| {
        sources.iter().map(move |source| source.fetch_account(key, depth(9, "2026-01-01"), now()))
    });
    let results = join_all(fetches).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((results.len(), max_running.load(Ordering::SeqCst)), (20, 2));
}

#[tokio::test]
async fn daily_budgets_are_per_source() {
    let sandbox = sandbox().await;
    let budget = RequestBudget::in_memory();
    let limited = |platform, name, daily| {
        let throttle = RateThrottle::new(name, 4, daily, budget.clone());
        collector(&base(&sandbox, "/http"), platform, &throttle)
    };
    // Two collectors of one platform, with different names.
    let now = sandbox.world.now();
    let name = any_account(&sandbox, Platform::Tiktok);
    let first = limited(Platform::Tiktok, "first", Some(2));
    let second = limited(Platform::Tiktok, "second", Some(3));
    let fetch =
        async |source: &HttpSource, now| source.fetch_account(&name, depth(5, "2026-01-01"), now).await;
    let mut successes = [0, 0];
    for _ in 0..4 {
        successes[0] += usize::from(fetch(&first, now).await.is_ok());
        successes[1] += usize::from(fetch(&second, now).await.is_ok());
    }
    assert_eq!(successes, [2, 3]);
    let tomorrow = now + chrono::TimeDelta::days(1);
    assert!(fetch(&first, tomorrow).await.is_ok() && fetch(&second, tomorrow).await.is_ok());

    // In a list, the second source takes over once the first has no requests left.
    let graph = limited_graph(&sandbox);
    let sources = Sources::new(vec![
        Arc::new(graph),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    let name = any_account(&sandbox, Platform::Instagram);
    let mut responded = Vec::new();
    for later in [now, now, tomorrow] {
        let fetched =
            sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), later, &[]).await;
        assert!(fetched.result.is_ok(), "{fetched:?}");
        responded.extend(fetched.responded);
    }
    assert_eq!(responded, ["instagram-graph", "http", "instagram-graph"]);
    sandbox.stop().await;
}

fn limited_graph(
    sandbox: &sandbox::server::SandboxServer,
) -> tidemark::platforms::instagram_graph::InstagramGraph {
    use tidemark::model::secret::Secret;
    use tidemark::platforms::instagram_graph::{InstagramGraph, InstagramGraphConfig};
    InstagramGraph::new(InstagramGraphConfig {
        base: base(sandbox, "/graph/v25.0"),
        user_id: sandbox::instagram_graph::USER_ID.to_owned(),
        token: Secret::new(sandbox::instagram_graph::TOKEN),
        page_size: 50,
        throttle: RateThrottle::new("instagram-graph", 4, Some(1), RequestBudget::in_memory()),
        limits: LIMITS,
    })
    .expect("a valid configuration")
}

#[tokio::test]
async fn next_source_takes_over_for_a_paused_one() {
    let sandbox = sandbox().await;
    let now = sandbox.world.now();
    let name = any_account(&sandbox, Platform::Instagram);
    for fault in [Fault::RateLimit, Fault::Unauthorized] {
        let sources = Sources::new(vec![
            Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
            Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
        ]);
        let fetch = async |skip: &[&'static str]| {
            sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), now, skip).await
        };
        sandbox.world.fail_next(sandbox::Platform::Instagram, fault, 1);
        let fetched = fetch(&[]).await;
        assert!(fetched.result.is_ok(), "{fault:?}: {fetched:?}");
        assert_eq!(fetched.responded, ["http"]);
        assert_eq!(fetched.paused.len(), 1, "{fetched:?}");
        assert_eq!(fetched.paused[0].0, "instagram-graph");
        // A skipped source gets no request.
        let before = sandbox.world.requests()[&sandbox::Platform::Instagram];
        assert_eq!(fetch(&["instagram-graph"]).await.responded, ["http"]);
        assert_eq!(sandbox.world.requests()[&sandbox::Platform::Instagram] - before, 1);
        // Without another source, the first error is returned.
        sandbox.world.fail_next(sandbox::Platform::Instagram, fault, 1);
        let fetched = fetch(&["instagram-graph"]).await;
        assert!(
            matches!(fetched.result, Err(SourceError::RateLimited { .. } | SourceError::Credentials(_))),
            "{fetched:?}"
        );
        assert!(fetched.responded.is_empty());
    }
    // After an outage the same source is retried later.
    let sources = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Error, 1);
    let fetched = sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), now, &[]).await;
    assert!(matches!(fetched.result, Err(SourceError::Transient(_))), "{fetched:?}");
    // While the source that finds by id is skipped, a renamed account is not reported as missing.
    let renamed = AccountKey { username: "old.name".to_owned(), platform_id: Some("178".to_owned()) };
    let fetched =
        sources.fetch_account(Platform::Instagram, &renamed, depth(5, "2026-01-01"), now, &["http"]).await;
    assert!(matches!(fetched.result, Err(SourceError::Transient(_))), "{fetched:?}");
    sandbox.stop().await;
}

#[tokio::test]
async fn fetch_timeout_covers_all_pages() {
    let page = |next: usize| {
        let profile = json!({"id": "9", "username": "some.one"});
        canned::json(200, &json!({"profile": profile, "posts": [], "next": format!("page {next}")}))
    };
    let script = (0..3).map(page).chain([CannedResponse::Silent]).collect();
    let server = CannedServer::start(script).await;
    let source: Arc<dyn Source> = Arc::new(http_source(&server.url, LIMITS, Platform::Tiktok));
    let sources = Sources::new(vec![source]).with_timeout(Duration::from_secs(3));
    let (key, depth) = (key("some.one"), depth(9, "2026-01-01"));
    let fetched = sources.fetch_account(Platform::Tiktok, &key, depth, now(), &[]).await;
    let Err(SourceError::Transient(reason)) = &fetched.result else { panic!("{:?}", fetched.result) };
    assert!(reason.contains("not all pages were read within 3 s"), "{reason}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn fetch_timeout_excludes_waiting_for_a_permit() {
    let found = canned::json(200, &json!({"profile": {"id": "9", "username": "some.one"}, "posts": []}));
    let server = CannedServer::start(vec![CannedResponse::Silent, found]).await;
    let throttle = RateThrottle::new("http", 1, None, RequestBudget::in_memory());
    let sources = |millis| {
        let source: Arc<dyn Source> = Arc::new(collector(&server.url, Platform::Tiktok, &throttle));
        Sources::new(vec![source]).with_timeout(Duration::from_millis(millis))
    };
    let (key, depth, now) = (key("some.one"), depth(9, "2026-01-01"), now());
    let fetch =
        async |sources: Sources| sources.fetch_account(Platform::Tiktok, &key, depth, now, &[]).await.result;
    let (first, second) = futures_util::join!(fetch(sources(3_000)), fetch(sources(2_000)));
    assert!(matches!(first, Err(SourceError::Transient(_))), "{first:?}");
    assert!(second.is_ok(), "{second:?}");
}
