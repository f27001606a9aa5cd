//! What every source does with a service that is down, slow, endless, redirecting or talking of something else.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::source::SourceError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use url::Url;

use crate::canned::{self, Canned, Say};
use crate::{LIMITS, depth, every_source, key, now};

async fn refusals(base: &Url, limits: RequestLimits) -> Vec<(&'static str, SourceError)> {
    let mut refusals = Vec::new();
    for source in every_source(base, limits) {
        let asked = source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await;
        refusals.push((source.name(), asked.expect_err("a refusal")));
    }
    refusals
}

#[tokio::test]
async fn nobody_there_is_temporary_and_tells_no_address() {
    // Bound, so that it is nobody else's, and not listened on.
    let bound = TcpSocket::new_v4().expect("a socket");
    bound.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = bound.local_addr().expect("an address");
    let base = Url::parse(&format!("http://{address}/some/where")).expect("a URL");
    for (name, refusal) in refusals(&base, LIMITS).await {
        assert!(matches!(refusal, SourceError::Transient(_)), "{name}: {refusal}");
        assert!(!refusal.to_string().contains("/some/where"), "{name}: {refusal}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_limit() {
    let server = Canned::start(vec![Say::Endless]).await;
    let limits = RequestLimits { timeout: Duration::from_secs(20), max_response_bytes: 100_000 };
    let started = Instant::now();
    for (name, refusal) in refusals(&server.url, limits).await {
        assert_eq!(
            refusal,
            SourceError::Malformed("the response is larger than 100000 bytes".to_owned()),
            "{name}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(10), "the limit, not the clock, ends it");
}

#[tokio::test]
async fn an_answer_is_measured_after_it_was_unpacked() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![b' '; 30_000_000]).expect("a vector takes every byte");
    let packed = packed.finish().expect("a vector takes every byte");
    assert!(packed.len() < 100_000);
    let server = Canned::start(vec![Say::Gzip(packed)]).await;
    for (name, refusal) in
        refusals(&server.url, RequestLimits { max_response_bytes: 100_000, ..LIMITS }).await
    {
        assert_eq!(
            refusal,
            SourceError::Malformed("the response is larger than 100000 bytes".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn https_is_spoken_in_earnest() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("https://{}/base", listener.local_addr().expect("an address"));
    let heard = tokio::spawn(async move {
        let mut heard = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut hello = [0; 3];
            stream.read_exact(&mut hello).await.expect("the beginning of a handshake");
            heard.push([hello[0], hello[1]]);
            // Whoever speaks plainly after this is an impostor.
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .await
                .expect("the caller listens");
        }
        heard
    });
    for (name, refusal) in refusals(&Url::parse(&base).expect("a URL"), LIMITS).await {
        assert!(
            matches!(&refusal, SourceError::Transient(said) if said.contains("cannot connect")),
            "{name}: {refusal}"
        );
    }
    assert_eq!(heard.await.expect("no panic"), [[0x16, 0x03]; 3], "a TLS handshake, three times");
}

#[tokio::test]
async fn an_answer_that_never_ends_in_time_is_given_up() {
    for say in [Say::Endless, Say::Silent] {
        let server = Canned::start(vec![say]).await;
        let limits = RequestLimits { timeout: Duration::from_millis(200), max_response_bytes: usize::MAX };
        for (name, refusal) in refusals(&server.url, limits).await {
            assert_eq!(
                refusal,
                SourceError::Transient("no complete response within 0.2 s".to_owned()),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server =
        Canned::start(vec![Say::Answer(302, vec![("location", "/base/again".to_owned())], String::new())])
            .await;
    for (name, refusal) in refusals(&server.url, LIMITS).await {
        assert!(
            matches!(&refusal, SourceError::Malformed(said) if said.contains("redirects")),
            "{name}: {refusal}"
        );
    }
    assert_eq!(server.requests().len(), 3, "one request each");
}

#[tokio::test]
async fn an_answer_cut_off_is_temporary() {
    let server = Canned::start(vec![Say::CutOff]).await;
    for (name, refusal) in refusals(&server.url, LIMITS).await {
        assert!(matches!(refusal, SourceError::Transient(_)), "{name}: {refusal}");
    }
}

#[tokio::test]
async fn what_is_not_json_is_told_by_its_status() {
    for (status, body, temporary) in [
        (200, "<!doctype html><title>hello</title>", false),
        (200, r#"{"data": {"videos""#, false),
        (200, "", false),
        (403, "<html>blocked</html>", false),
        (502, "<html>bad gateway</html>", true),
        (503, "", true),
    ] {
        let server = Canned::start(vec![canned::text(status, body)]).await;
        for (name, refusal) in refusals(&server.url, LIMITS).await {
            match refusal {
                SourceError::Transient(_) => assert!(temporary, "{name}, HTTP {status}"),
                SourceError::Malformed(_) => assert!(!temporary, "{name}, HTTP {status}"),
                other => panic!("{name}, HTTP {status}: {other}"),
            }
        }
    }
}

#[tokio::test]
async fn json_of_no_shape_at_all_is_no_reason_to_panic() {
    for body in [
        json!(null),
        json!([]),
        json!("x"),
        json!(1),
        json!({}),
        json!({"error": null}),
        json!({"error": []}),
    ] {
        for status in [200, 400] {
            let server = Canned::start(vec![canned::json(status, &body)]).await;
            for (name, refusal) in refusals(&server.url, LIMITS).await {
                assert!(
                    matches!(refusal, SourceError::Malformed(_) | SourceError::Credentials(_)),
                    "{name}, HTTP {status}, {body}: {refusal}"
                );
            }
        }
    }
}
