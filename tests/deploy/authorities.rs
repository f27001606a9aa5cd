//! A machine without a list of certificate authorities, as a small container image is one: every HTTP client of the service
//! can be made there all the same.

use std::process::Stdio;

use crate::harness::{IsolatedStores, command, http_client, wait_until};
use crate::told;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_of_authorities_everything_starts_and_is_healthy() {
    // A folder that the machine's environment names counts beside the file.
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
        let answer = http_client().get(&ready).send().await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let health = format!("{base}/health");
    let probed = tokio::task::spawn_blocking(move || {
        command().args(["probe", &health]).envs(none).stdin(Stdio::null()).output().unwrap()
    });
    let probed = probed.await.unwrap();
    assert!(probed.status.success(), "{}", told(&probed));
}
