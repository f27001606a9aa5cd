//! A collector that is down or hangs: requests do not notice, the log says it once, and the process ends in time.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::harness::{IsolatedStores, http_client, wait_until};

/// Takes connections and never answers on them.
async fn silent() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
        }
    });
    url
}

#[tokio::test]
async fn a_collector_that_is_down_or_hangs_costs_requests_nothing() {
    let databases = IsolatedStores::create().await;
    let hangs = silent().await;
    let (mut api, base) = databases.serve(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces".to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", hangs),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "16".to_owned()),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8".to_owned()),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "16".to_owned()),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "8".to_owned()),
    ]);
    let client = http_client();
    let missed = || {
        let lines = api.lines();
        let of_traces = lines.iter().filter(|line| line["signal"] == "traces");
        of_traces.filter(|line| line["message"].as_str().unwrap_or_default().contains("collector")).count()
    };
    let ask = async || {
        let asked = Instant::now();
        let answer = client.get(format!("{base}/meta")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        asked.elapsed()
    };
    ask().await;
    wait_until("the log says that the collector is missed", || async { (missed() > 0).then_some(()) }).await;
    // Far more than the queues hold, before and after all of them are full.
    for _ in 0..10 {
        let slowest = join_all((0..20).map(|_| ask())).await.into_iter().max().unwrap();
        assert!(slowest < Duration::from_secs(5), "a request took {slowest:?}");
    }
    assert_eq!(missed(), 1, "{}", api.log());
    let took = api.stop();
    assert!(took < Duration::from_secs(10), "the end took {took:?}");
}
