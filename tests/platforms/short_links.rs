//! Short links: the video that a redirect names, and redirects that must not be followed.

use std::sync::Arc;
use std::time::Duration;

use sandbox::Fault;
use sandbox::population::Population;
use sandbox::server::start;
use sandbox::world::World;
use tidemark::model::identifier::{ShortLink, VideoIdentifier, VideoReference};
use tidemark::model::platform::Platform;
use tidemark::platforms::short_links::{ShortLinkError, resolve};
use url::Url;

use crate::canned::{CannedResponse, CannedServer, text};
use crate::time;

fn link(text: &str) -> ShortLink {
    match VideoIdentifier::parse(Platform::Tiktok, text) {
        Ok(VideoIdentifier::ShortLink(link)) => link,
        other => panic!("{text} is no short link: {other:?}"),
    }
}

fn redirect(to: &str) -> CannedResponse {
    CannedResponse::Full(301, vec![("location", to.to_owned())], String::new())
}

async fn resolve_link(script: Vec<CannedResponse>) -> (Result<VideoReference, ShortLinkError>, Vec<String>) {
    let server = CannedServer::start(script).await;
    let outcome = resolve(link("https://vm.tiktok.com/ZMabc/?k=1"), Some(&server.url)).await;
    let paths = server.requests();
    (outcome, paths.iter().map(|request| request.split(' ').nth(1).unwrap_or_default().to_owned()).collect())
}

#[tokio::test]
async fn video_url_of_a_redirect_is_parsed_not_requested() {
    for address in [
        "https://www.tiktok.com/@some.one/video/7301234567890123456?_r=1&u_code=x",
        "//m.tiktok.com/@some.one/photo/7301234567890123456",
        "http://tiktok.com/@Some.One/video/7301234567890123456/",
    ] {
        let (outcome, paths) = resolve_link(vec![redirect(address)]).await;
        let video = outcome.unwrap_or_else(|error| panic!("{address}: {error}"));
        assert_eq!(video.ids.external_id(), Some("7301234567890123456"), "{address}");
        assert_eq!(video.username.as_deref(), Some("some.one"), "{address}");
        assert_eq!(paths, ["/base/vm.tiktok.com/ZMabc/"], "{address}");
    }
}

#[tokio::test]
async fn only_short_links_are_followed_a_few_times() {
    let video = "https://www.tiktok.com/@a1/video/7301234567890123456";
    let (outcome, paths) =
        resolve_link(vec![redirect("https://vt.tiktok.com/ZSdef?x=1"), redirect("/t/no"), redirect(video)])
            .await;
    assert_eq!(outcome, Err(ShortLinkError::NoVideo), "there is no /t/ on that host");
    assert_eq!(paths, ["/base/vm.tiktok.com/ZMabc/", "/base/vt.tiktok.com/ZSdef/"]);
    let (outcome, paths) =
        resolve_link(vec![redirect("https://www.tiktok.com/t/ZTdef/"), redirect(video)]).await;
    assert!(outcome.is_ok());
    assert_eq!(paths[1], "/base/www.tiktok.com/t/ZTdef/");
    let (outcome, paths) = resolve_link(vec![redirect("https://vm.tiktok.com/ZMabc/")]).await;
    assert!(matches!(outcome, Err(ShortLinkError::Failed(_))), "{outcome:?}");
    assert_eq!(paths.len(), 4);
}

#[tokio::test]
async fn other_redirect_target_is_never_requested() {
    let elsewhere = CannedServer::start(vec![text(200, "secret")]).await;
    for address in [
        elsewhere.url.as_str(),
        "http://169.254.169.254/latest/meta-data/",
        "https://www.instagram.com/p/CfUjwr8vyv2/",
        "https://vm.tiktok.com.evil.example/ZMabc/",
        "https://www.tiktok.com/",
        "https://www.tiktok.com/@some.one?_r=1",
        "https://www.tiktok.com/login?redirect_url=https%3A%2F%2Fwww.tiktok.com%2F%40a1%2Fvideo%2F7",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        let (outcome, paths) = resolve_link(vec![redirect(address)]).await;
        assert_eq!((outcome, paths.len()), (Err(ShortLinkError::NoVideo), 1), "{address}");
    }
    assert!(elsewhere.requests().is_empty());
    for status in [404, 410] {
        assert_eq!(resolve_link(vec![text(status, "")]).await.0, Err(ShortLinkError::NoVideo), "{status}");
    }
}

/// Links that try to reach another host, each with the URL that is requested; `None` is rejected.
const ATTACKS: [(&str, Option<&str>); 52] = [
    // other hosts
    ("https://evil.example/ZMabc", None),
    ("https://vm.tiktok.com.evil.example/ZMabc", None),
    ("https://evilvm.tiktok.com/ZMabc", None),
    ("https://vm-tiktok.com/ZMabc", None),
    ("https://evil.example/vm.tiktok.com/ZMabc", None),
    ("https://evil.example/?u=https://vm.tiktok.com/ZMabc", None),
    ("https://evil.example#vm.tiktok.com/ZMabc", None),
    ("//evil.example/ZMabc", None),
    ("https:///evil.example/ZMabc", None),
    // this machine, internal networks, cloud metadata
    ("http://localhost/t/ZMabc", None),
    ("http://127.0.0.1/t/ZMabc", None),
    ("http://127.1/t/ZMabc", None),
    ("http://2130706433/t/ZMabc", None),
    ("http://0x7f000001/t/ZMabc", None),
    ("http://0177.0.0.1/t/ZMabc", None),
    ("http://0/t/ZMabc", None),
    ("http://[::1]/t/ZMabc", None),
    ("http://[::ffff:169.254.169.254]/t/ZMabc", None),
    ("http://[fd00:ec2::254]/t/ZMabc", None),
    ("http://169.254.169.254/latest/meta-data/", None),
    ("http://metadata.google.internal/t/ZMabc", None),
    ("http://10.0.0.1/ZMabc", None),
    // users, passwords, ports
    ("https://vm.tiktok.com@evil.example/ZMabc", None),
    ("vm.tiktok.com@evil.example/ZMabc", None),
    ("https://vm.tiktok.com:x@evil.example/ZMabc", None),
    ("https://evil.example@vm.tiktok.com/ZMabc", None),
    ("https://:x@vm.tiktok.com/ZMabc", None),
    ("https://vm.tiktok.com:8443/ZMabc", None),
    ("https://vm.tiktok.com:22/ZMabc", None),
    ("https://vm.tiktok.com:443/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    // other schemes
    ("file://vm.tiktok.com/ZMabc", None),
    ("gopher://vm.tiktok.com/ZMabc", None),
    ("ftp://vm.tiktok.com/ZMabc", None),
    ("javascript://vm.tiktok.com/ZMabc", None),
    ("http://vm.tiktok.com/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    // spellings of the host: TikTok's is normalized, any other is rejected
    ("https://vm.tiktok.com./ZMabc", None),
    ("https://VM.TikTok.COM/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://vm。tiktok。com/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://vm.tiktok%2Ecom/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://ｖｍ.tiktok.com/ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://vm.tıktok.com/ZMabc", None),
    ("https://vm.xn--tktok-q4a.com/ZMabc", None),
    ("https://vm.tiktok.com\t.evil.example/ZMabc", None),
    ("https://evil.example\\.vm.tiktok.com/ZMabc", None),
    // paths
    ("https://vm.tiktok.com/../ZMabc", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://vm.tiktok.com/ZMabc/../../admin", Some("https://vm.tiktok.com/admin/")),
    ("https://vm.tiktok.com/a%2Fb", None),
    ("https://vm.tiktok.com/a/b", None),
    ("https://vm.tiktok.com/%2e%2e", None),
    ("https://vm.tiktok.com/ZMabc%0d%0aHost:evil.example", None),
    ("https://vm.tiktok.com/ZMabc?next=https://evil.example#x", Some("https://vm.tiktok.com/ZMabc/")),
    ("https://www.tiktok.com/t/ZTabc/@evil.example", None),
];

#[test]
fn parsed_short_link_is_a_tiktok_https_url() {
    for (text, requested) in ATTACKS {
        match VideoIdentifier::parse(Platform::Tiktok, text) {
            Ok(VideoIdentifier::ShortLink(link)) => {
                assert_eq!(Some(link.url().as_str()), requested, "{text}")
            }
            other => assert_eq!((other.is_err(), requested), (true, None), "{text}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn redirect_to_another_host_is_never_requested() {
    for (to, next) in ATTACKS {
        let (outcome, paths) = resolve_link(vec![redirect(to), text(404, "")]).await;
        assert!(outcome.is_err(), "{to}: {outcome:?}");
        // A header that is not ASCII is ignored, and a path is relative to the redirecting host.
        let next = next.filter(|_| to.is_ascii() && to.contains("://"));
        let expected = next.map(|next| format!("/base/{}", next.trim_start_matches("https://")));
        assert_eq!(paths.get(1), expected.as_ref(), "{to}");
    }
}

/// Only the head of a response is read, up to a limit.
#[tokio::test]
async fn response_size_is_limited() {
    let head = vec![("location", format!("https://www.tiktok.com/@a1/video/7?{}", "x".repeat(2 << 20)))];
    let (outcome, _) = resolve_link(vec![CannedResponse::Full(301, head, String::new())]).await;
    assert!(matches!(outcome, Err(ShortLinkError::Failed(_))), "{outcome:?}");
    let video = "https://www.tiktok.com/@a1/video/7301234567890123456";
    let long = CannedResponse::Full(301, vec![("location", video.to_owned())], "x".repeat(32 << 20));
    assert!(resolve_link(vec![long]).await.0.is_ok(), "the body is not read");
}

#[tokio::test]
async fn response_without_redirect_is_an_error() {
    for response in [
        text(200, "<!doctype html>checking your browser"),
        text(403, ""),
        text(429, ""),
        text(503, ""),
        text(302, "without a location"),
        redirect("https://"),
        CannedResponse::Endless,
        CannedResponse::Truncated,
    ] {
        let (outcome, _) = resolve_link(vec![response]).await;
        assert!(matches!(outcome, Err(ShortLinkError::Failed(_))), "{outcome:?}");
    }
    let unreachable = Url::parse("http://127.0.0.1:1").expect("a URL");
    let outcome = resolve(link("vm.tiktok.com/ZMabc"), Some(&unreachable)).await;
    assert!(matches!(outcome, Err(ShortLinkError::Failed(_))), "{outcome:?}");
}

#[tokio::test]
async fn sandbox_resolves_short_links() {
    let world =
        World::open(Population::new(5, 8), None, Some(time("2026-03-10T12:00:00Z"))).expect("a new world");
    let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.expect("a free port");
    let base = Url::parse(&format!("{}/short", sandbox.url)).expect("a URL");
    let accounts = sandbox.world.population().accounts();
    let account =
        accounts.iter().find(|account| account.platform == sandbox::Platform::Tiktok).expect("an account");
    let post = account.posts_at(sandbox.world.now()).next().expect("a post");
    for host in ["vm.tiktok.com", "vt.tiktok.com", "www.tiktok.com/t"] {
        let video = resolve(link(&format!("https://{host}/ZM{}", post.id)), Some(&base)).await;
        let video = video.unwrap_or_else(|error| panic!("{host}: {error}"));
        assert_eq!(video.ids.external_id(), Some(post.id.as_str()));
        assert_eq!(video.username.as_ref(), Some(&account.username));
    }
    for code in [format!("ZU{}", account.username.replace('.', "")), "ZM1".to_owned(), "nothing".to_owned()] {
        let outcome = resolve(link(&format!("https://vm.tiktok.com/{code}")), Some(&base)).await;
        assert_eq!(outcome, Err(ShortLinkError::NoVideo), "{code}");
    }
    let resolve_video = || resolve(link(&format!("https://vm.tiktok.com/ZM{}", post.id)), Some(&base));
    for fault in [Fault::Error, Fault::RateLimit, Fault::Unauthorized, Fault::Html] {
        sandbox.world.fail_next(sandbox::Platform::Tiktok, fault, 1);
        let outcome = resolve_video().await;
        assert!(matches!(outcome, Err(ShortLinkError::Failed(_))), "{fault:?}: {outcome:?}");
    }
    sandbox.world.fail_next(sandbox::Platform::Tiktok, Fault::Hang, 1);
    let hung = tokio::time::timeout(Duration::from_millis(300), resolve_video()).await;
    assert!(hung.is_err(), "{hung:?}");
    sandbox.stop().await;
}
