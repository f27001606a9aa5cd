//! How every source handles a service that is down, slow, redirects or responds with something else.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::source::SourceError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use url::Url;

use crate::canned::{self, CannedResponse, CannedServer};
use crate::{LIMITS, all_sources, depth, key, now};

async fn fetch_errors(base: &Url, limits: RequestLimits) -> Vec<(&'static str, SourceError)> {
    let mut errors = Vec::new();
    for source in all_sources(base, limits) {
        let fetched = source.fetch_account(&key("some.one"), depth(9, "2026-01-01"), now()).await;
        errors.push((source.info().name, fetched.expect_err("the fetch fails")));
    }
    errors
}

#[tokio::test]
async fn connection_failure_is_transient_and_hides_the_path() {
    // Bound but not listening, so that connections are refused.
    let bound = TcpSocket::new_v4().expect("a socket");
    bound.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let address = bound.local_addr().expect("an address");
    let base = Url::parse(&format!("http://{address}/some/where")).expect("a URL");
    for (name, error) in fetch_errors(&base, LIMITS).await {
        assert!(matches!(error, SourceError::Transient(_)), "{name}: {error}");
        assert!(!error.to_string().contains("/some/where"), "{name}: {error}");
    }
}

#[tokio::test]
async fn endless_response_ends_at_the_size_limit() {
    let server = CannedServer::start(vec![CannedResponse::Endless]).await;
    let limits = RequestLimits { timeout: Duration::from_secs(20), max_response_bytes: 100_000 };
    for (name, error) in fetch_errors(&server.url, limits).await {
        assert_eq!(
            error,
            SourceError::Malformed("the response is larger than 100000 bytes".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn size_limit_applies_after_decompression() {
    let mut compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    compressed.write_all(&vec![b' '; 30_000_000]).expect("writing to a vector");
    let compressed = compressed.finish().expect("writing to a vector");
    assert!(compressed.len() < 100_000);
    let server = CannedServer::start(vec![CannedResponse::Gzip(compressed)]).await;
    for (name, error) in
        fetch_errors(&server.url, RequestLimits { max_response_bytes: 100_000, ..LIMITS }).await
    {
        assert_eq!(
            error,
            SourceError::Malformed("the response is larger than 100000 bytes".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn https_url_uses_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("https://{}/base", listener.local_addr().expect("an address"));
    let received = tokio::spawn(async move {
        let mut received = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut hello = [0; 3];
            stream.read_exact(&mut hello).await.expect("the start of a handshake");
            received.push([hello[0], hello[1]]);
            // A response without TLS must be rejected.
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .await
                .expect("the client reads");
        }
        received
    });
    for (name, error) in fetch_errors(&Url::parse(&base).expect("a URL"), LIMITS).await {
        assert!(
            matches!(&error, SourceError::Transient(reason) if reason.contains("cannot connect")),
            "{name}: {error}"
        );
    }
    assert_eq!(received.await.expect("no panic"), [[0x16, 0x03]; 3], "a TLS handshake, three times");
}

#[tokio::test]
async fn incomplete_response_times_out() {
    for response in [CannedResponse::Endless, CannedResponse::Silent] {
        let server = CannedServer::start(vec![response]).await;
        let limits = RequestLimits { timeout: Duration::from_millis(200), max_response_bytes: usize::MAX };
        for (name, error) in fetch_errors(&server.url, limits).await {
            assert_eq!(
                error,
                SourceError::Transient("no complete response within 0.2 s".to_owned()),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let server = CannedServer::start(vec![CannedResponse::Full(
        302,
        vec![("location", "/base/again".to_owned())],
        String::new(),
    )])
    .await;
    for (name, error) in fetch_errors(&server.url, LIMITS).await {
        assert!(
            matches!(&error, SourceError::Malformed(reason) if reason.contains("redirects")),
            "{name}: {error}"
        );
    }
    assert_eq!(server.requests().len(), 3, "one request each");
}

#[tokio::test]
async fn truncated_response_is_transient() {
    let server = CannedServer::start(vec![CannedResponse::Truncated]).await;
    for (name, error) in fetch_errors(&server.url, LIMITS).await {
        assert!(matches!(error, SourceError::Transient(_)), "{name}: {error}");
    }
}

#[tokio::test]
async fn non_json_response_is_classified_by_status() {
    for (status, body, is_transient) in [
        (200, "<!doctype html><title>hello</title>", false),
        (200, r#"{"data": {"videos""#, false),
        (200, "", false),
        (403, "<html>blocked</html>", false),
        (502, "<html>bad gateway</html>", true),
        (503, "", true),
    ] {
        let server = CannedServer::start(vec![canned::text(status, body)]).await;
        for (name, error) in fetch_errors(&server.url, LIMITS).await {
            match error {
                SourceError::Transient(_) => assert!(is_transient, "{name}, HTTP {status}"),
                SourceError::Malformed(_) => assert!(!is_transient, "{name}, HTTP {status}"),
                other => panic!("{name}, HTTP {status}: {other}"),
            }
        }
    }
}

#[tokio::test]
async fn unexpected_json_is_malformed() {
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
            let server = CannedServer::start(vec![canned::json(status, &body)]).await;
            for (name, error) in fetch_errors(&server.url, LIMITS).await {
                assert!(
                    matches!(error, SourceError::Malformed(_) | SourceError::Credentials(_)),
                    "{name}, HTTP {status}, {body}: {error}"
                );
            }
        }
    }
}
