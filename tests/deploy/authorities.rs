//! A machine without trusted CA certificates, as in small container images: all HTTP clients can be built.

use std::process::Stdio;

use harness::{IsolatedStores, command, http_client, wait_until};

use crate::output_text;

#[tokio::test(flavor = "multi_thread")]
async fn processes_start_without_ca_certificates() {
    // Both variables: either may name certificates.
    let none = [("SSL_CERT_FILE", "/dev/null".to_owned()), ("SSL_CERT_DIR", String::new())];
    let databases = IsolatedStores::create().await;
    let clock = format!("{}/_clock", databases.connection.sandbox_url);
    let [file, folder] = none.clone();
    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1".to_owned());
    let variables = [file, folder, collector, ("TIDEMARK_CLOCK_URL", clock)];
    let (_api, base) = databases.serve(&variables);
    let tracker = databases.track(&variables);
    let metrics = wait_until("the tracker listens", || async { tracker.metrics_url() }).await;
    let ready = metrics.replace("/metrics", "/readyz");
    wait_until("the tracker is ready", || async {
        let response = http_client().get(&ready).send().await.ok()?;
        response.status().is_success().then_some(())
    })
    .await;
    let health = format!("{base}/health");
    let output = tokio::task::spawn_blocking(move || {
        command().args(["probe", &health]).envs(none).stdin(Stdio::null()).output().unwrap()
    });
    let output = output.await.unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
}
