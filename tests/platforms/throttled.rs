//! What one source may be asked, and who takes its place while it rests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::source::{AccountKey, Source, SourceError};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tidemark::sandbox::world::Fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use url::Url;

use crate::canned::{self, Canned, Say};
use crate::sandboxed::{base, sandbox, someone};
use crate::{LIMITS, depth, graph_source, http_source, key, now};

fn collector(base: &Url, platform: Platform, throttle: &RateThrottle) -> HttpSource {
    let config =
        HttpSourceConfig { base: base.clone(), token: None, throttle: throttle.clone(), limits: LIMITS };
    HttpSource::new(config, platform).expect("the source is configured well")
}

#[tokio::test]
async fn a_source_is_asked_by_as_many_at_a_time_as_it_allows_on_both_platforms_together() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (there, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let pair = Arc::new(Barrier::new(2));
    let counted = (Arc::clone(&there), Arc::clone(&most));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (there, most) = counted.clone();
            let pair = Arc::clone(&pair);
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    most.fetch_max(there.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // Answered in twos: with fewer at a time, nothing would go on.
                    pair.wait().await;
                    there.fetch_sub(1, Ordering::SeqCst);
                    let body = r#"{"profile": {}, "posts": []}"#;
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let throttle = RateThrottle::new("http", 2, None, RequestBudget::in_memory());
    let sources = Platform::ALL.map(|platform| collector(&base, platform, &throttle));
    let names: Vec<AccountKey> = (0..10).map(|number| key(&format!("some.{number}"))).collect();
    let asked = names.iter().flat_map(|name| {
        sources.iter().map(move |source| source.fetch_account(name, depth(9, "2026-01-01"), now()))
    });
    let answers =
        tokio::time::timeout(std::time::Duration::from_secs(20), join_all(asked)).await.expect("it goes on");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!((answers.len(), most.load(Ordering::SeqCst)), (20, 2));
}

#[tokio::test]
async fn each_source_has_a_day_of_its_own_and_the_next_one_takes_its_place() {
    let sandbox = sandbox().await;
    let budget = RequestBudget::in_memory();
    let limited = |platform, name, daily| {
        let throttle = RateThrottle::new(name, 4, daily, budget.clone());
        collector(&base(&sandbox, "/http"), platform, &throttle)
    };
    // Two collectors of one platform, under names of their own.
    let now = sandbox.world.now();
    let name = someone(&sandbox, Platform::Tiktok);
    let first = limited(Platform::Tiktok, "first", Some(2));
    let second = limited(Platform::Tiktok, "second", Some(3));
    let ask = async |source: &HttpSource, now| source.fetch_account(&name, depth(5, "2026-01-01"), now).await;
    let mut answered = [0, 0];
    for _ in 0..4 {
        answered[0] += usize::from(ask(&first, now).await.is_ok());
        answered[1] += usize::from(ask(&second, now).await.is_ok());
    }
    assert_eq!(answered, [2, 3]);
    let tomorrow = now + chrono::TimeDelta::days(1);
    assert!(ask(&first, tomorrow).await.is_ok() && ask(&second, tomorrow).await.is_ok());

    // In a list, what the first has no requests left for is asked of the second.
    let graph = limited_graph(&sandbox);
    let sources = Sources::new(vec![
        Arc::new(graph),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    let name = someone(&sandbox, Platform::Instagram);
    let mut by = Vec::new();
    for later in [now, now, tomorrow] {
        let reading =
            sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), later, &[]).await;
        assert!(reading.result.is_ok(), "{reading:?}");
        by.extend(reading.responded);
    }
    assert_eq!(by, ["instagram-graph", "http", "instagram-graph"]);
    sandbox.stop().await;
}

fn limited_graph(
    sandbox: &tidemark::sandbox::server::SandboxServer,
) -> tidemark::platforms::instagram_graph::InstagramGraph {
    use tidemark::model::secret::Secret;
    use tidemark::platforms::instagram_graph::{InstagramGraph, InstagramGraphConfig};
    InstagramGraph::new(InstagramGraphConfig {
        base: base(sandbox, "/graph/v25.0"),
        user_id: tidemark::sandbox::instagram_graph::USER_ID.to_owned(),
        token: Secret::new(tidemark::sandbox::instagram_graph::TOKEN),
        page_size: 50,
        throttle: RateThrottle::new("instagram-graph", 4, Some(1), RequestBudget::in_memory()),
        limits: LIMITS,
    })
    .expect("the source is configured well")
}

#[tokio::test]
async fn a_source_that_rests_or_is_refused_leaves_its_place_to_the_next() {
    let sandbox = sandbox().await;
    let now = sandbox.world.now();
    let name = someone(&sandbox, Platform::Instagram);
    for fault in [Fault::RateLimit, Fault::Unauthorized] {
        let sources = Sources::new(vec![
            Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
            Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
        ]);
        let ask = async |skip: &[&'static str]| {
            sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), now, skip).await
        };
        sandbox.world.fail_next(Platform::Instagram, fault, 1);
        let reading = ask(&[]).await;
        assert!(reading.result.is_ok(), "{fault:?}: {reading:?}");
        assert_eq!(reading.responded, ["http"]);
        assert_eq!(reading.paused.len(), 1, "{reading:?}");
        assert_eq!(reading.paused[0].0, "instagram-graph");
        // Who is left out is not asked.
        let before = sandbox.world.requests()[&Platform::Instagram];
        assert_eq!(ask(&["instagram-graph"]).await.responded, ["http"]);
        assert_eq!(sandbox.world.requests()[&Platform::Instagram] - before, 1);
        // With nobody left, the first refusal stands.
        sandbox.world.fail_next(Platform::Instagram, fault, 1);
        let reading = ask(&["instagram-graph"]).await;
        assert!(
            matches!(reading.result, Err(SourceError::RateLimited { .. } | SourceError::Credentials(_))),
            "{reading:?}"
        );
        assert!(reading.responded.is_empty());
    }
    // An outage is tried again later, not paid for elsewhere.
    let sources = Sources::new(vec![
        Arc::new(graph_source(&base(&sandbox, "/graph/v25.0"), LIMITS, 50)),
        Arc::new(http_source(&base(&sandbox, "/http"), LIMITS, Platform::Instagram)),
    ]);
    sandbox.world.fail_next(Platform::Instagram, Fault::Error, 1);
    let reading = sources.fetch_account(Platform::Instagram, &name, depth(5, "2026-01-01"), now, &[]).await;
    assert!(matches!(reading.result, Err(SourceError::Transient(_))), "{reading:?}");
    // While the one that looks up by id rests, nobody concludes that a renamed account is gone.
    let lost = AccountKey { username: "nobody.here".to_owned(), platform_id: Some("178".to_owned()) };
    let reading =
        sources.fetch_account(Platform::Instagram, &lost, depth(5, "2026-01-01"), now, &["http"]).await;
    assert!(matches!(reading.result, Err(SourceError::Transient(_))), "{reading:?}");
    sandbox.stop().await;
}

#[tokio::test]
async fn a_walk_of_many_pages_ends_in_time_though_each_of_them_comes() {
    let page = |next: usize| {
        let profile = json!({"id": "9", "username": "some.one"});
        canned::json(200, &json!({"profile": profile, "posts": [], "next": format!("page {next}")}))
    };
    let script = (0..3).map(page).chain([Say::Silent]).collect();
    let server = Canned::start(script).await;
    let source: Arc<dyn Source> = Arc::new(http_source(&server.url, LIMITS, Platform::Tiktok));
    let sources = Sources::new(vec![source]).with_timeout(Duration::from_secs(3));
    let (key, depth) = (key("some.one"), depth(9, "2026-01-01"));
    let reading = sources.fetch_account(Platform::Tiktok, &key, depth, now(), &[]).await;
    let Err(SourceError::Transient(told)) = &reading.result else { panic!("{:?}", reading.result) };
    assert!(told.contains("not all pages were read within 3 s"), "{told}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn what_a_read_waits_behind_others_is_not_its_own_time() {
    let found = canned::json(200, &json!({"profile": {"id": "9", "username": "some.one"}, "posts": []}));
    let server = Canned::start(vec![Say::Silent, found]).await;
    let throttle = RateThrottle::new("http", 1, None, RequestBudget::in_memory());
    let sources = |millis| {
        let source: Arc<dyn Source> = Arc::new(collector(&server.url, Platform::Tiktok, &throttle));
        Sources::new(vec![source]).with_timeout(Duration::from_millis(millis))
    };
    let (key, depth, now) = (key("some.one"), depth(9, "2026-01-01"), now());
    let ask =
        async |sources: Sources| sources.fetch_account(Platform::Tiktok, &key, depth, now, &[]).await.result;
    let (first, second) = futures_util::join!(ask(sources(1_000)), ask(sources(300)));
    assert!(matches!(first, Err(SourceError::Transient(_))), "{first:?}");
    assert!(second.is_ok(), "{second:?}");
}
