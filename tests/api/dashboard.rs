//! The files of the dashboard, which anyone may load.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::Command;

use harness::{TestApi, send};
use reqwest::Method;

/// The paths of scripts and style sheets that a file names.
fn asset_paths(text: &str) -> Vec<String> {
    let strings = text.split('"').filter(|text| text.starts_with("/assets/"));
    strings.map(str::to_owned).collect()
}

/// The paths of all files that the page may load.
async fn all_asset_paths(api: &TestApi) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut found = asset_paths(api.get("/").await.body_text());
    while let Some(path) = found.pop() {
        if paths.insert(path.clone()) {
            found.extend(asset_paths(api.get(&path).await.body_text()));
        }
    }
    paths
}

#[tokio::test]
async fn pages_are_served_without_a_key() {
    let api = TestApi::start().await;
    let assets = all_asset_paths(&api).await;
    let anonymous = |path: &str| reqwest::Client::new().get(format!("{}{path}", api.url())).send();
    for path in [
        "/",
        "/content",
        "/content/1",
        "/accounts",
        "/accounts/1",
        "/creators/1?period=7d",
        "/collections",
        "/collections/1?edit=true",
        "/events",
        "/tracking",
        "/api",
        "/shared",
    ] {
        let response = anonymous(path).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(headers["cache-control"], "no-cache");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(headers.contains_key("etag") && !headers.contains_key("x-ratelimit-limit"));
        assert_eq!(asset_paths(&response.text().await.unwrap()).len(), 4, "{path}");
        let link = headers["link"].to_str().unwrap();
        let script = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=modulepreload"));
        assert!(assets.contains(script.unwrap()), "{path}: {link}");
    }
    for path in
        ["/tracking/1", "/nothing", "/shared/1", "/content/1/2", "/assets", "/assets/x/app.js", "/index.html"]
    {
        assert_eq!(anonymous(path).await.unwrap().status(), 404, "{path}");
    }
    let posted = reqwest::Client::new().post(format!("{}/content", api.url())).send().await.unwrap();
    assert_eq!(posted.status(), 405);
}

#[tokio::test]
async fn unchanged_page_is_304() {
    let api = TestApi::start().await;
    let page = api.get("/").await;
    let request = api.request(Method::GET, "/accounts").header("If-None-Match", page.header("etag"));
    assert_eq!(send(request).await.status, 304);
}

#[tokio::test]
async fn assets_are_immutable_and_precompressed() {
    let api = TestApi::start().await;
    let paths = all_asset_paths(&api).await;
    let scripts = paths.iter().filter(|path| path.ends_with(".js")).count();
    assert_eq!(scripts, 20, "{paths:?}");
    for path in paths {
        let plain = api.get(&path).await;
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(plain.header("x-content-type-options"), "nosniff");
        let request = api.request(Method::GET, &path).header("Accept-Encoding", "br");
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-encoding"], "br");
        let compressed = response.bytes().await.unwrap();
        let mut text = String::new();
        brotli::Decompressor::new(&compressed[..], 4096).read_to_string(&mut text).unwrap();
        assert_eq!(text, plain.body_text());
        // The build compresses more than a response may take time for.
        assert!(compressed.len() * 2 < text.len(), "{} of {}", compressed.len(), text.len());
        let other = path.replace("/assets/", "/assets/x");
        assert_eq!(api.get(&other).await.status, 404, "{other}");
    }
}

#[tokio::test]
async fn committed_dashboard_is_built_from_its_sources() {
    let output =
        Command::new("node").arg("ui/verify.mjs").output().expect("node is installed (scripts/install-ui)");
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}
