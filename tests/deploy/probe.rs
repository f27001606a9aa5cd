//! `tidemark probe`, the health check of containers and units.

use std::process::{Output, Stdio};

use harness::{Stack, WAIT_TIMEOUT, command};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::output_text;

fn probe(arguments: &[&str]) -> Output {
    command().arg("probe").args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_fails_with_one_sentence() {
    let connection = Stack::shared().connection;
    let health = format!("{}/health", connection.base_url);
    let output = probe(&[&health]);
    assert!(output.status.success() && output_text(&output).is_empty(), "{}", output_text(&output));
    let output = probe(&[&format!("{}/whoami", connection.base_url)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output_text(&output).starts_with("error: ")
            && output_text(&output).contains("responds with status 401"),
        "{}",
        output_text(&output)
    );
    let output = probe(&["http://127.0.0.1:1/"]);
    assert_eq!(
        (output.status.code(), output_text(&output).lines().count()),
        (Some(1), 1),
        "{}",
        output_text(&output)
    );
    assert_eq!(probe(&["nothing"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_times_out_and_retries() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let output = tokio::task::spawn_blocking({
        let url = url.clone();
        move || probe(&[&url])
    });
    let (_open, _) = listener.accept().await.unwrap();
    let output = tokio::time::timeout(WAIT_TIMEOUT, output).await.expect("the probe does not wait for ever");
    assert_eq!(output.unwrap().status.code(), Some(1));

    let output = tokio::task::spawn_blocking(move || probe(&["--wait-seconds", "60", &url]));
    for status in ["503 Service Unavailable", "204 No Content"] {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let response = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).await.unwrap();
    }
    assert!(output.await.unwrap().status.success());
}
