//! How many statements a request for analytics sends to Postgres, besides that of authentication every few seconds.

use harness::{CapturedLog, Organization, Stack, send};
use reqwest::Method;
use serde_json::json;

use crate::response_cache::CacheTest;

/// The statements of an uncached request. The first one returns the version and the records to compute from.
fn expected_statements(path: &str) -> usize {
    let (resource, query) = path.split_once('?').unwrap_or((path, ""));
    match resource {
        // All accounts' posts, while ClickHouse computes their gains; then what is shown of a page, and its tracking.
        "/accounts/top" if query.contains("metric=new_posts") => 4,
        "/accounts/top" => 3,
        // Posts: of all creators, while ClickHouse computes their gains, or of those that are shown.
        "/creators/top" => 2,
        // The videos of the account, also without a gain, and those of the page.
        "/content/top" if query.contains("account_id") && query.contains("include_all") => 3,
        "/content/top" | "/content/breakouts" => 2,
        // Its posts, with a plan for them.
        _ if resource.ends_with("/benchmarks") => 2,
        _ => 1,
    }
}

/// The statements since the last call, besides those of authentication and of new connections.
fn statements(log: &CapturedLog) -> Vec<String> {
    let text = log.take().join(" ");
    let statements = text.split("DEBUG sqlx::query").skip(1).map(str::to_owned);
    // sqlx asks each connection once for the ids of types that have names only.
    let others = ["from api_keys", "\"set ", "pg_catalog.pg_type"];
    let is_counted = |statement: &String| !others.iter().any(|text| statement.contains(text));
    statements.filter(is_counted).collect()
}

/// Sends a GET and returns its statements.
async fn get(log: &CapturedLog, client: &Organization, path: &str) -> Vec<String> {
    log.take();
    client.get(path).await.ok(200);
    statements(log)
}

#[tokio::test]
async fn analytics_request_reads_records_and_version_in_one_statement() {
    let test = CacheTest::start().await;
    let records = test.load().await;
    let mut paths = test.paths(&records);
    paths.extend(
        [
            "/accounts/top?metric=likes",
            "/accounts/top?status=active",
            "/creators/top?metric=new_posts",
            "/overview?category=none",
            "/analytics/timeseries?category=none",
            "/tracking/coverage",
        ]
        .map(str::to_owned),
    );
    let account = records.account;
    paths.push(format!("/content/top?account_id={account}&metric=likes"));
    paths.push(format!("/content/breakouts?account_id={account}&min_multiple=1"));
    paths.push(format!("/accounts/timeseries?account_ids={account}&metric=new_posts"));
    let ((_, uncached), (_, cached)) = (&test.uncached, &test.cached[0]);
    // Before the first request: a connection keeps the log with which it was accepted.
    let (log, _guard) = CapturedLog::start("sqlx::query=debug");
    for client in [uncached, cached] {
        // The first request checks the schema.
        client.get("/whoami").await.ok(200);
    }
    for path in &paths {
        for client in [uncached, cached] {
            let sent = get(&log, client, path).await;
            assert_eq!(sent.len(), expected_statements(path), "{path}: {sent:#?}");
        }
        // Tracking has no version.
        if !path.contains("status=") {
            let sent = get(&log, cached, path).await;
            let expected = if path.starts_with("/accounts/top") { 2 } else { 1 };
            assert_eq!(sent.len(), expected, "{path}, cached: {sent:#?}");
        }
    }
    let body = json!({"account_ids": [account], "creator_ids": [records.creator], "video_ids": [account]});
    for path in ["/accounts/metrics", "/creators/metrics", "/videos/metrics", "/videos/deltas"] {
        let ids = match path {
            "/accounts/metrics" => "account_ids",
            "/creators/metrics" => "creator_ids",
            _ => "video_ids",
        };
        log.take();
        uncached.post(path, json!({ids: body[ids]})).await.ok(200);
        assert_eq!(statements(&log).len(), 1, "POST {path}");
    }

    test.import(&[test.row("tiktok", "ann", 0, 5_000)]).await;
    test.organization.wait_applied().await;
    for path in paths.iter().filter(|path| path.contains("period=30d") && !path.starts_with("/content")) {
        let sent = get(&log, cached, path).await;
        assert_eq!(sent.len(), expected_statements(path), "{path} after a change: {sent:#?}");
    }
}

#[tokio::test]
async fn records_of_another_organization_are_unknown() {
    let test = CacheTest::start().await;
    let records = test.load().await;
    let (process, owner) = &test.cached[0];
    let other = process.client_for(&Stack::shared().unlimited_organization().await);
    let ids = [records.account, records.creator].map(|id| id.to_string());
    for path in test.paths(&records) {
        owner.get(&path).await.ok(200);
        let etag = owner.get(&path).await.header("etag").to_owned();
        let conditional = other.request(Method::GET, &path).header("if-none-match", etag);
        let response = send(conditional).await;
        let (resource, query) = path.split_once('?').unwrap_or((&path, ""));
        let is_batch = query.contains("_ids=") || query.starts_with("ids=");
        let names_record = ids.iter().any(|id| path.contains(id)) || resource.split('/').count() > 3;
        match response.status {
            404 => assert!(names_record && !is_batch, "{path}"),
            200 if is_batch => {
                let not_found = response.list("/meta/not_found");
                assert!(!not_found.is_empty() && response.json["meta"]["data_as_of"].is_null(), "{path}");
            }
            200 => assert!(!names_record, "{path}: {response}"),
            status => panic!("{path}: {status}"),
        }
    }
}
