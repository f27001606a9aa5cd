//! `tidemark probe`, by which containers and units know that a process works.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{Stack, command};
use crate::told;

fn probe(arguments: &[&str]) -> Output {
    command().arg("probe").args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_answers_is_healthy_and_what_is_wrong_is_told() {
    let connection = Stack::shared().connection;
    let health = format!("{}/health", connection.base_url);
    let output = probe(&[&health]);
    assert!(output.status.success() && told(&output).is_empty(), "{}", told(&output));
    let output = probe(&[&format!("{}/whoami", connection.base_url)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told(&output).starts_with("error: ") && told(&output).contains("answers 401"),
        "{}",
        told(&output)
    );
    let output = probe(&["http://127.0.0.1:1/"]);
    assert_eq!((output.status.code(), told(&output).lines().count()), (Some(1), 1), "{}", told(&output));
    assert_eq!(probe(&["nothing"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_silent_is_given_up_and_one_that_starts_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let begun = Instant::now();
    let asked = tokio::task::spawn_blocking({
        let url = url.clone();
        move || probe(&[&url])
    });
    let (_held, _) = listener.accept().await.unwrap();
    assert_eq!(asked.await.unwrap().status.code(), Some(1));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());

    let asked = tokio::task::spawn_blocking(move || probe(&["--wait-seconds", "60", &url]));
    for answer in ["503 Service Unavailable", "204 No Content"] {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    assert!(asked.await.unwrap().status.success());
}
