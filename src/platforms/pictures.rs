//! Fetches pictures from the platforms' content delivery networks.
//!
//! A platform or a collector chooses the URLs, so requests go only to the networks' hosts, over https and to public
//! addresses, and to hosts that the operator allows. Redirects to another host are not followed, and no body is read
//! beyond its limit.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use sha2::{Digest, Sha256};
use url::{Host, Url};

use super::http_client::{HttpClient, RequestLimits, read_body};
use super::request_telemetry::measure;
use crate::model::network::AllowedHosts;
use crate::model::picture::{PictureKind, PictureSource};
use crate::model::platform::Platform;

/// How long one picture may take, all redirects together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 5 << 20;
const MAX_REDIRECTS: usize = 3;
/// Letters and digits in the name of a picture's file. Platforms' have more than thirty.
const MIN_PICTURE_NAME: usize = 20;
/// Parameters that change while the picture does not.
const SIGNATURE_PARAMETERS: [&str; 18] = [
    "ccb",
    "edm",
    "efg",
    "expires",
    "ext",
    "hash",
    "ig_cache_key",
    "lk3s",
    "nonce",
    "oe",
    "oh",
    "refresh_token",
    "sign",
    "signature",
    "x-expires",
    "x-orig-authkey",
    "x-orig-sign",
    "x-signature",
];
/// The name in metrics and traces.
const SERVICE: &str = "pictures";

/// Why a picture was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL, or the target of a redirect, is not one of a picture.
    #[error("the URL leads to a host without pictures")]
    OtherHost,
    /// The URL expired, or the picture was deleted.
    #[error("the picture does not exist (HTTP {0})")]
    Gone(u16),
    #[error("the picture is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the picture was not fetched: {0}")]
    Failed(String),
}

/// The domains of a platform's pictures, whichever source reports them.
const fn domains(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::Instagram => &["cdninstagram.com", "fbcdn.net"],
        Platform::Tiktok => &[
            "tiktokcdn.com",
            "tiktokcdn-us.com",
            "tiktokcdn-eu.com",
            "ttwstatic.com",
            "ibyteimg.com",
            "muscdn.com",
        ],
    }
}

fn find_domain(platform: Platform, host: &str) -> Option<&'static str> {
    let is_in = |domain: &&&str| {
        host.strip_suffix(**domain).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    };
    domains(platform).iter().find(is_in).copied()
}

fn is_platform_host(host: &str) -> bool {
    Platform::ALL.into_iter().any(|platform| find_domain(platform, host).is_some())
}

/// A client for pictures. Cheap to clone.
#[derive(Clone)]
pub struct PictureClient {
    /// For the platforms' hosts.
    public: HttpClient,
    /// For hosts of the operator.
    direct: HttpClient,
    allowed: Arc<AllowedHosts>,
}

/// A URL that may be requested.
struct PictureUrl<'a> {
    url: Url,
    client: &'a HttpClient,
    /// The domain of a platform, or the operator's host.
    domain: String,
    /// Whether it is the operator's.
    is_direct: bool,
}

impl PictureClient {
    pub fn new(allowed: AllowedHosts) -> Result<Self, String> {
        let limits = RequestLimits { timeout: FETCH_TIMEOUT, max_response_bytes: MAX_BYTES };
        let public = HttpClient::for_public_hosts(SERVICE, is_platform_host, limits)?;
        let direct = HttpClient::without_proxy(SERVICE, limits)?;
        Ok(PictureClient { public, direct, allowed: Arc::new(allowed) })
    }

    /// Identifies the picture of a URL: by domain and path, while platforms change the servers and the signature in the query.
    /// Where the path does not name a picture, by the rest of the query too, and on hosts of the operator by scheme and port.
    /// `None` if the URL must not be requested.
    pub fn identify(&self, platform: Platform, kind: PictureKind, url: &str) -> Option<PictureSource> {
        let PictureUrl { url, domain, is_direct, .. } = self.check(platform, url)?;
        let mut digest = Sha256::new_with_prefix(kind.as_str());
        digest.update([0]);
        digest.update(domain);
        digest.update(url.path());
        if is_direct {
            digest.update(format!("\n{} {:?}", url.scheme(), url.port_or_known_default()));
        }
        if is_direct || !has_picture_name(&url) {
            for (name, value) in url.query_pairs().filter(|(name, _)| !is_signature(name)) {
                digest.update(format!("\n{name}={value}"));
            }
        }
        let digest: [u8; 32] = digest.finalize().into();
        Some(PictureSource::from_bytes(std::array::from_fn(|n| digest[n])))
    }

    /// Fetches a picture. Whatever the server does, this takes no longer than its timeout.
    pub async fn fetch(&self, platform: Platform, url: &str) -> Result<Vec<u8>, FetchError> {
        let PictureUrl { mut url, client, .. } = self.check(platform, url).ok_or(FetchError::OtherHost)?;
        let fetched = async {
            for _ in 0..=MAX_REDIRECTS {
                let request = client.client().get(url.clone());
                let response = measure(SERVICE, request, |request| request.send(), Response::status).await;
                let response = response.map_err(describe)?;
                if !response.status().is_redirection() {
                    return read_picture(response).await;
                }
                url = redirect_target(&url, &response)?;
            }
            Err(FetchError::Failed(format!("more than {MAX_REDIRECTS} redirects")))
        };
        let timed_out =
            |_| FetchError::Failed(format!("no complete response within {} s", FETCH_TIMEOUT.as_secs()));
        tokio::time::timeout(FETCH_TIMEOUT, fetched).await.map_err(timed_out)?
    }

    fn check(&self, platform: Platform, url: &str) -> Option<PictureUrl<'_>> {
        let url = Url::parse(url).ok()?;
        if let Some(allowed) = self.allowed.find(&url) {
            let is_http = matches!(url.scheme(), "http" | "https");
            let domain = allowed.to_owned();
            return is_http.then_some(PictureUrl { url, client: &self.direct, domain, is_direct: true });
        }
        let Some(Host::Domain(host)) = url.host() else { return None };
        let domain = find_domain(platform, host)?.to_owned();
        let is_https = url.scheme() == "https" && url.port().is_none();
        is_https.then_some(PictureUrl { url, client: &self.public, domain, is_direct: false })
    }
}

/// Whether the last segment of a path is as long as the names that platforms give to pictures.
fn has_picture_name(url: &Url) -> bool {
    let file = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    file.bytes().filter(u8::is_ascii_alphanumeric).count() >= MIN_PICTURE_NAME
}

/// Whether a parameter is part of a signature, or tells how a server delivers a picture.
fn is_signature(name: &str) -> bool {
    SIGNATURE_PARAMETERS.contains(&name) || name.starts_with("_nc_")
}

/// Returns the target of a redirect, which is on the same server.
fn redirect_target(url: &Url, response: &Response) -> Result<Url, FetchError> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let target = location.and_then(|location| url.join(location).ok());
    let target = target.ok_or_else(|| FetchError::Failed("the redirect leads nowhere".to_owned()))?;
    if target.origin() == url.origin() { Ok(target) } else { Err(FetchError::OtherHost) }
}

async fn read_picture(mut response: Response) -> Result<Vec<u8>, FetchError> {
    match response.status() {
        StatusCode::OK => {}
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => {
            return Err(FetchError::Gone(response.status().as_u16()));
        }
        status => return Err(FetchError::Failed(format!("HTTP {}", status.as_u16()))),
    }
    if response.content_length().is_some_and(|length| length > MAX_BYTES as u64) {
        return Err(FetchError::TooLarge);
    }
    read_body(&mut response, MAX_BYTES).await.map_err(describe)?.ok_or(FetchError::TooLarge)
}

/// Describes a failed request without the URL.
fn describe(error: reqwest::Error) -> FetchError {
    let what = match &error {
        error if error.is_timeout() => "no complete response in time",
        error if error.is_connect() => "cannot connect",
        error if error.is_body() || error.is_decode() => "the response is incomplete",
        _ => "the request failed",
    };
    FetchError::Failed(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(allowed: &str) -> PictureClient {
        PictureClient::new(allowed.parse().unwrap()).unwrap()
    }

    #[test]
    fn only_hosts_of_the_platform_and_allowed_ones_are_requested() {
        let client = client("Pictures.internal, 127.0.0.1:8480, [::1]");
        let is_allowed = |platform, url| client.check(platform, url).is_some();
        for url in [
            "https://scontent-fra3-1.cdninstagram.com/v/1.jpg?oe=1",
            "https://cdninstagram.com/1.jpg",
            "https://scontent.xx.fbcdn.net/1.jpg",
            "http://pictures.internal:81/1",
            "http://127.0.0.1:8480/1",
            "https://[::1]:9/1",
        ] {
            assert!(is_allowed(Platform::Instagram, url), "{url}");
        }
        for url in [
            "http://scontent.cdninstagram.com/1.jpg",
            "https://scontent.cdninstagram.com:8443/1.jpg",
            "https://evilcdninstagram.com/1.jpg",
            "https://cdninstagram.com.evil.example/1.jpg",
            "https://p16-sign.tiktokcdn-us.com/1.jpeg",
            "https://user@evil.example/cdninstagram.com",
            "http://127.0.0.1:8481/1",
            "http://169.254.169.254/latest",
            "ftp://pictures.internal/1",
            "data:image/png;base64,",
            "cdninstagram.com/1.jpg",
            "",
        ] {
            assert!(!is_allowed(Platform::Instagram, url), "{url}");
        }
        assert!(is_allowed(Platform::Tiktok, "https://p16-sign.tiktokcdn-us.com/1.jpeg"));
    }

    #[test]
    fn picture_is_identified_without_its_signature() {
        let client = client("");
        let identify = |kind, url: &str| client.identify(Platform::Instagram, kind, url).unwrap();
        let cover = identify(PictureKind::Cover, "https://a.cdninstagram.com/v/1.jpg?oe=1");
        assert_eq!(cover, identify(PictureKind::Cover, "https://b.x.cdninstagram.com/v/1.jpg?oe=2&oh=3"));
        for (kind, url) in [
            (PictureKind::Profile, "https://a.cdninstagram.com/v/1.jpg"),
            (PictureKind::Cover, "https://a.cdninstagram.com/v/2.jpg"),
            (PictureKind::Cover, "https://a.fbcdn.net/v/1.jpg"),
        ] {
            assert_ne!(cover, identify(kind, url), "{url}");
        }
        assert_eq!(client.identify(Platform::Instagram, PictureKind::Cover, "https://a.example/1"), None);

        let profile = |host: &str, url: &str| {
            self::client(host).identify(Platform::Instagram, PictureKind::Profile, url).unwrap()
        };
        let host = "pictures.internal";
        let one = profile(host, "http://pictures.internal/pic?id=1&oe=5");
        assert_eq!(one, profile(host, "http://pictures.internal/pic?oe=6&id=1&x-signature=a"));
        for other in [
            "http://pictures.internal/pic?id=2",
            "https://pictures.internal/pic?id=1",
            "http://pictures.internal:81/pic?id=1",
        ] {
            assert_ne!(one, profile(host, other), "{other}");
        }
        let lookup = |id: u8| profile("", &format!("https://a.fbcdn.net/profilepic/?asid={id}&ext=9&hash=b"));
        assert_ne!(lookup(1), lookup(2));
        let named = |query| {
            profile(
                "",
                &format!("https://a.fbcdn.net/v/t51/44884218_345707102882519_244606958973_n.jpg?{query}"),
            )
        };
        assert_eq!(named("new_parameter=1"), named("new_parameter=2"));
    }
}
