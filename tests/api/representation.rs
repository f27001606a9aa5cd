//! Entity tags, conditional requests, compression and HEAD.

use std::io::Read;

use harness::{TestApi, send};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn matching_etag_is_304() {
    let api = TestApi::start().await;
    for path in [
        "/v2/meta",
        "/v2/whoami",
        "/v2/accounts",
        "/v2/creators?limit=1",
        "/v2/accounts/stats",
        "/v2/search?q=x",
    ] {
        let full = api.get(path).await;
        let tag = full.header("etag");
        assert!(tag.starts_with('"') && tag.len() > 10, "{path} {tag}");
        assert_eq!(full.header("cache-control"), "private, no-cache");
        assert_eq!(full.header("vary"), "Accept-Encoding, Authorization");
        for sent in [tag.to_owned(), format!("W/{tag}"), format!("\"a,b\", {tag}"), "*".to_owned()] {
            let again = send(api.request(Method::GET, path).header("If-None-Match", &sent)).await;
            assert_eq!((again.status, again.body_text()), (304, ""), "{path} {sent}");
            for name in ["etag", "cache-control", "link", "x-ratelimit-limit", "vary"] {
                assert_eq!(again.header(name), full.header(name), "{path} {name}");
            }
        }
        let changed = send(api.request(Method::GET, path).header("If-None-Match", "\"other\"")).await;
        assert_eq!((changed.status, changed.header("etag")), (200, tag));
    }
    let before = api.get("/v2/creators").await;
    api.create("/v2/creators", json!({"name": "new"})).await;
    let request = api.request(Method::GET, "/v2/creators").header("If-None-Match", before.header("etag"));
    assert_eq!(send(request).await.status, 200);
}

#[tokio::test]
async fn compressed_responses_have_their_own_etag() {
    let api = TestApi::start().await;
    for n in 0..10 {
        api.create("/v2/creators", json!({"name": format!("creator {n}")})).await;
    }
    let plain = api.get("/v2/creators").await;
    let decode = |coding: &str, bytes: &[u8]| {
        let mut text = String::new();
        match coding {
            "gzip" => drop(flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap()),
            "zstd" => text = String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap(),
            _ => drop(brotli::Decompressor::new(bytes, 4096).read_to_string(&mut text).unwrap()),
        }
        text
    };
    let mut tags = vec![plain.header("etag").to_owned()];
    for coding in ["gzip", "zstd", "br"] {
        let request = || api.request(Method::GET, "/v2/creators").header("Accept-Encoding", coding);
        let response = request().send().await.unwrap();
        assert_eq!(response.headers()["content-encoding"], coding);
        assert_eq!(response.headers()["vary"], "Accept-Encoding, Authorization");
        let tag = response.headers()["etag"].to_str().unwrap().to_owned();
        assert_eq!(decode(coding, &response.bytes().await.unwrap()), plain.body_text());
        let again = send(request().header("If-None-Match", &tag)).await;
        assert_eq!((again.status, again.header("etag")), (304, tag.as_str()));
        assert!(tag.starts_with('"'), "{tag} is not strong");
        tags.push(tag);
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 4);
    let short = api.request(Method::GET, "/v2/whoami").header("Accept-Encoding", "gzip");
    assert_eq!(send(short).await.header("content-encoding"), "");
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let api = TestApi::start().await;
    for path in ["/v2/health", "/v2/meta", "/v2/accounts", "/v2/accounts/stats", "/v2/creators", "/v2/search"]
    {
        let (get, head) = (api.get(path).await, send(api.request(Method::HEAD, path)).await);
        assert_eq!((head.status, head.body_text()), (get.status, ""), "{path}");
        for name in ["content-type", "link", "vary", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
        if path != "/v2/health" {
            assert_eq!(head.header("etag"), get.header("etag"), "{path}");
            assert_eq!(head.header("content-length"), get.body_text().len().to_string(), "{path}");
        }
    }
    let missing = send(api.request(Method::HEAD, "/v2/accounts/@missing")).await;
    assert_eq!((missing.status, missing.body_text()), (404, ""));
}
