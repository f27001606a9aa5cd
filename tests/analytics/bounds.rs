//! Limits of ClickHouse queries: settings, request ids, cancellation by the client, and fair permits.

use chrono::Days;
use harness::{
    CapturedLog, Organization, ProxiedApi, Stack, WAIT_TIMEOUT, query_seconds, send, slow_reads, wait_until,
};
use tidemark::app::{Databases, Settings};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use super::model::History;

/// An organization without a noticeable rate limit.
async fn unlimited_organization() -> Organization {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    Stack::shared().organization_with(options, NewKey::named("test")).await
}

/// A request that runs one query, different for each number.
fn one_query(number: u64) -> String {
    format!("/content/breakouts?age_days=7&min_multiple={}", number + 2)
}

#[tokio::test]
async fn every_query_has_limits_and_the_request_id() {
    let process = ProxiedApi::start(Settings { rollup_cache_bytes: 0, ..Settings::default() }).await;
    let organization = process.client_for(&unlimited_organization().await);
    let get = organization.request(reqwest::Method::GET, "/overview").header("x-request-id", "trace:of/me");
    send(get).await.ok(200);
    let requests = process.clickhouse.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for address in requests {
        let url = url::Url::parse("http://clickhouse").unwrap().join(&address).unwrap();
        let settings: std::collections::HashMap<_, _> = url.query_pairs().collect();
        assert_eq!(settings["log_comment"], "trace:of/me GET /v2/overview");
        for (name, max) in [
            ("max_execution_time", 5),
            ("max_memory_usage", 4_000_000_000),
            ("max_rows_to_read", 10_000_000_000_u64),
            ("max_result_rows", 10_000_000),
        ] {
            let limit: u64 = settings[name].parse().unwrap();
            assert!((1..=max).contains(&limit), "{name} {limit}");
        }
    }
}

#[tokio::test]
async fn query_with_too_many_rows_is_503_with_advice() {
    let process = ProxiedApi::start(Settings { rollup_cache_bytes: 0, ..Settings::default() }).await;
    let organization = unlimited_organization().await;
    let mut history = History::default();
    let now = organization.stack.databases.clock.now().await;
    for _ in 0..2 {
        let video = history.video("tiktok", None, true, None);
        history.observe(video, now - Days::new(1), [Some(5); 9]);
    }
    history.load(&organization).await;
    let client = process.client_for(&organization);
    client.get("/accounts/top?metric=followers").await.ok(200);
    process.clickhouse.replace("max_result_rows=5000000", "max_result_rows=0000001");
    let response = client.get("/accounts/top").await.problem(503, "SERVICE_UNAVAILABLE");
    assert!(response.text("/detail").contains("narrow the window or the filters"), "{response}");
}

/// The query runs for longer than a test waits, unless it is cancelled. On one thread, so that the log is captured.
#[tokio::test]
async fn query_is_cancelled_when_the_client_disconnects() {
    let organization = unlimited_organization().await;
    let stack = &organization.stack;
    let mut history = History::default();
    let now = stack.databases.clock.now().await;
    let video = history.video("tiktok", None, true, None);
    (0..90).for_each(|days| history.observe(video, now - Days::new(days), [Some(5); 9]));
    let (id, _) = history.load(&organization).await.videos[0];

    let slow = |databases: &mut Databases| {
        databases.clickhouse = slow_reads(&databases.clickhouse, "video_snapshots");
    };
    let api = ProxiedApi::start_with(Settings::default(), slow).await;
    api.clickhouse.replace("max_execution_time=4", "max_execution_time=0");
    let first_day = (now - Days::new(89)).date_naive();
    let path = format!("/videos/{id}/analytics?start_date={first_day}");
    let client = api.client_for(&organization);
    let request = client.request(reqwest::Method::GET, &path).header("x-request-id", id.to_string());
    let pending = tokio::spawn(send(request));
    let seconds = || query_seconds(stack.clickhouse(), id);
    wait_until("the query runs", seconds).await;
    assert_eq!(api.app.history.load(), (1, 0));
    let (log, _guard) = CapturedLog::start("tidemark=error");
    pending.abort();
    wait_until("the query ends", async || seconds().await.is_none().then_some(())).await;
    assert_eq!(api.app.history.load(), (0, 0));
    assert!(log.take().is_empty(), "the request was not dropped, but timed out");
}

/// Two organizations share one permit; one of them sends many requests.
#[tokio::test]
async fn other_organization_waits_for_one_query_only() {
    let process = ProxiedApi::start(Settings {
        analytics_concurrency: 1,
        rollup_cache_bytes: 0,
        ..Settings::default()
    })
    .await;
    let (many, other) = (
        process.client_for(&unlimited_organization().await),
        process.client_for(&unlimited_organization().await),
    );
    // Cache both keys, so that requests wait for the permit only.
    many.get("/whoami").await.ok(200);
    other.get("/whoami").await.ok(200);
    process.clickhouse.hold();
    let fetch = |organization: &Organization, day| {
        let organization = organization.clone();
        tokio::spawn(async move { organization.get(&one_query(day)).await })
    };
    let waiting: Vec<_> = (0..4).map(|day| fetch(&many, day)).collect();
    wait_until("one query runs and the others wait", async || {
        (process.app.history.load() == (1, 3)).then_some(())
    })
    .await;
    let last = {
        let other = other.clone();
        let get = other.request(reqwest::Method::GET, &one_query(0)).header("x-request-id", "the-other");
        tokio::spawn(async move { send(get).await })
    };
    wait_until("the other organization waits too", async || {
        (process.app.history.load() == (1, 4)).then_some(())
    })
    .await;
    process.clickhouse.release();
    last.await.unwrap().ok(200);
    for pending in waiting {
        pending.await.unwrap().ok(200);
    }
    let requests = process.clickhouse.requests();
    let position = requests.iter().position(|address| address.contains("the-other")).unwrap();
    assert_eq!(position, 1, "right after the running query");
}

#[tokio::test]
async fn permit_timeout_returns_503_with_retry_after() {
    let process = ProxiedApi::start(Settings {
        analytics_concurrency: 1,
        rollup_cache_bytes: 0,
        ..Settings::default()
    })
    .await;
    let organization = process.client_for(&unlimited_organization().await);
    process.clickhouse.hold();
    let first = {
        let organization = organization.clone();
        tokio::spawn(async move { organization.get(&one_query(0)).await })
    };
    wait_until("one query runs", async || (process.app.history.load() == (1, 0)).then_some(())).await;
    let rejected =
        tokio::time::timeout(WAIT_TIMEOUT, organization.get(&one_query(1))).await.expect("a response");
    let response = rejected.problem(503, "SERVICE_UNAVAILABLE");
    assert_eq!(process.clickhouse.request_count(), 1, "the rejected request sends no query");
    assert_eq!(response.header("retry-after"), "1");
    assert!(response.text("/detail").contains("at once"), "{response}");
    first.await.unwrap().problem(503, "SERVICE_UNAVAILABLE");
    process.clickhouse.release();
    organization.get(&one_query(1)).await.ok(200);
}
