//! A collector that is down or hangs blocks neither requests nor shutdown, and is logged once.

use futures_util::future::join_all;
use harness::{IsolatedStores, WAIT_TIMEOUT, http_client, wait_until};

/// Accepts connections and never responds.
async fn start_hanging_collector() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut connections = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            connections.push(connection);
        }
    });
    url
}

#[tokio::test]
async fn requests_and_shutdown_ignore_a_collector_outage() {
    let databases = IsolatedStores::create().await;
    let hanging_collector = start_hanging_collector().await;
    let (mut api, base) = databases.serve(&[
        ("TIDEMARK_LOG", "info,tidemark=debug".to_owned()),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", hanging_collector),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "16".to_owned()),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8".to_owned()),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "16".to_owned()),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "8".to_owned()),
    ]);
    let client = http_client();
    let trace_export_failures = || {
        let lines = api.lines();
        let trace_lines = lines.iter().filter(|line| line["signal"] == "traces");
        trace_lines.filter(|line| line["message"].as_str().unwrap_or_default().contains("collector")).count()
    };
    let request = async || {
        let response = client.get(format!("{base}/meta")).send().await.unwrap();
        assert_eq!(response.status(), 200);
    };
    request().await;
    wait_until("the failed export is logged", || async { (trace_export_failures() > 0).then_some(()) }).await;
    // Far more than the queues hold. If requests waited for exports, each batch of 8 would take an export timeout.
    let requests = async {
        for _ in 0..10 {
            join_all((0..20).map(|_| request())).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, requests).await.expect("requests must not wait for exports");
    assert_eq!(trace_export_failures(), 1, "{}", api.log());
    assert_eq!(api.stop().await, Some(0));
    assert!(api.log().contains("telemetry was not flushed in time"), "{}", api.log());
}
