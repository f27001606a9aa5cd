//! The HTTP client for platforms: every request has a timeout, a response of bounded size and no redirects.
//!
//! Whatever a platform does, the caller gets an [`HttpResponse`] or a [`SourceError`] in time. No error contains the
//! URL, which may hold credentials.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use url::Url;

use super::request_telemetry::measure;
use super::source::SourceError;
use crate::model::network::{is_loopback, is_public};
use crate::tls;

/// The cooldown when a platform reports a rate limit without saying how long it lasts.
pub(super) const DEFAULT_COOLDOWN: TimeDelta = TimeDelta::minutes(1);

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    pub timeout: Duration,
    pub max_response_bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits { timeout: Duration::from_secs(20), max_response_bytes: 16 * 1024 * 1024 }
    }
}

/// A client for one service.
#[derive(Clone)]
pub struct HttpClient {
    /// The name of the service in metrics and traces.
    service: &'static str,
    client: Client,
    limits: RequestLimits,
}

/// A response of any status.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl HttpClient {
    /// Creates a client for the service at `base`. A service on this machine is requested without the proxy that the
    /// environment may name.
    pub fn for_service(service: &'static str, base: &Url, limits: RequestLimits) -> Result<Self, String> {
        Self::build(service, limits, |builder| if is_loopback(base) { builder.no_proxy() } else { builder })
    }

    /// Creates a client for hosts of the operator's network. They are requested without the proxy that the environment may
    /// name.
    pub fn without_proxy(service: &'static str, limits: RequestLimits) -> Result<Self, String> {
        Self::build(service, limits, ClientBuilder::no_proxy)
    }

    /// Creates a client for URLs that untrusted callers choose: https only, and target hosts have to resolve to public
    /// addresses.
    pub fn for_public_hosts(
        service: &'static str,
        is_target_host: fn(&str) -> bool,
        limits: RequestLimits,
    ) -> Result<Self, String> {
        let resolver = PublicResolver { is_target_host, lookup: system_lookup };
        Self::build(service, limits, |builder| builder.https_only(true).dns_resolver(resolver))
    }

    fn build(
        service: &'static str,
        limits: RequestLimits,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, String> {
        let builder = tls::client_builder()
            .map_err(|error| error.to_string())?
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(limits.timeout)
            .timeout(limits.timeout)
            .user_agent(concat!("tidemark/", env!("CARGO_PKG_VERSION")));
        let client = configure(builder).build();
        let client = client.map_err(|error| format!("cannot create the HTTP client: {error}"))?;
        Ok(HttpClient { service, client, limits })
    }

    /// Returns the underlying client, to build requests with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, request: RequestBuilder) -> Result<HttpResponse, SourceError> {
        measure(self.service, request, |request| self.exchange(request), |response| response.status).await
    }

    /// Sends a request and returns status and headers, of redirects too. The body is not read.
    pub async fn fetch_head(&self, request: RequestBuilder) -> Result<(StatusCode, HeaderMap), SourceError> {
        let response = measure(self.service, request, RequestBuilder::send, Response::status).await;
        let response = response.map_err(|error| self.transport_error(error))?;
        Ok((response.status(), response.headers().clone()))
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<HttpResponse, SourceError> {
        let mut response = request.send().await.map_err(|error| self.transport_error(error))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(SourceError::Malformed(format!(
                "the service redirects (HTTP {}), which is not followed; correct the source's URL",
                status.as_u16()
            )));
        }
        let max_bytes = self.limits.max_response_bytes;
        let body = read_body(&mut response, max_bytes).await.map_err(|error| self.transport_error(error))?;
        let too_large = || SourceError::Malformed(format!("the response is larger than {max_bytes} bytes"));
        Ok(HttpResponse { status, headers: response.headers().clone(), body: body.ok_or_else(too_large)? })
    }

    /// Describes why there is no complete response, without the URL.
    fn transport_error(&self, error: reqwest::Error) -> SourceError {
        if error.is_timeout() {
            let seconds = self.limits.timeout.as_secs_f64();
            return SourceError::Transient(format!("no complete response within {seconds} s"));
        }
        let error = error.without_url();
        let what = if error.is_connect() {
            "cannot connect to the service"
        } else if error.is_body() || error.is_decode() {
            "the response is incomplete"
        } else {
            "the request failed"
        };
        let mut cause: &dyn Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        SourceError::Transient(format!("{what}: {cause}"))
    }
}

impl HttpResponse {
    /// Parses the body as JSON. If it is none, the error follows from the status.
    pub fn json(&self, now: DateTime<Utc>) -> Result<Value, SourceError> {
        serde_json::from_slice(&self.body).map_err(|_| match self.status.as_u16() {
            429 => self.rate_limited(now, DEFAULT_COOLDOWN),
            status @ 500..=599 => SourceError::Transient(format!("HTTP {status} without a JSON body")),
            status => SourceError::Malformed(format!("HTTP {status} without a JSON body")),
        })
    }

    /// Returns the wait that `Retry-After` names: at least a second, at most a day.
    pub fn retry_after(&self) -> Option<TimeDelta> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = match text.parse::<i64>() {
            Ok(seconds) => TimeDelta::try_seconds(seconds)?,
            Err(_) => DateTime::parse_from_rfc2822(text).ok()?.to_utc() - Utc::now(),
        };
        Some(wait.clamp(TimeDelta::seconds(1), TimeDelta::days(1)))
    }

    /// Creates the error for a rate limit that lasts as long as `Retry-After` names, else `default`.
    pub(super) fn rate_limited(&self, now: DateTime<Utc>, default: TimeDelta) -> SourceError {
        SourceError::RateLimited { until: now + self.retry_after().unwrap_or(default) }
    }
}

/// Reads a body; `None` if it is larger than `max_bytes`.
pub(super) async fn read_body(
    response: &mut Response,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Appends path segments to a base URL.
pub(super) fn extend_url<'a>(
    base: &Url,
    segments: impl IntoIterator<Item = &'a str>,
) -> Result<Url, SourceError> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| SourceError::Malformed("the source's URL cannot have a path".to_owned()))?
        .pop_if_empty()
        .extend(segments);
    Ok(url)
}

type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// A resolver that returns only public addresses for target hosts. The client connects to exactly the addresses that
/// were checked, so a DNS answer that changes afterwards (rebinding) has no effect.
struct PublicResolver {
    /// Whether a host is a target; any other is a proxy that the operator has chosen.
    is_target_host: fn(&str) -> bool,
    lookup: Lookup,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allows_private = !(self.is_target_host)(name.as_str());
        let lookup = (self.lookup)(name.as_str().to_owned());
        async move {
            let mut addresses = lookup.await?;
            addresses.retain(|address| allows_private || is_public(address.ip()));
            if addresses.is_empty() {
                return Err(Box::from("the host has no public address"));
            }
            Ok::<Addrs, Box<dyn Error + Send + Sync>>(Box::new(addresses.into_iter()))
        }
        .boxed()
    }
}

fn system_lookup(host: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move { Ok(tokio::net::lookup_host((host, 0)).await?.collect()) }.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn socket_addresses(ips: &[&str]) -> io::Result<Vec<SocketAddr>> {
        Ok(ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect())
    }

    async fn resolve(lookup: Lookup, host: &str) -> Result<Vec<String>, String> {
        let resolver = PublicResolver { is_target_host: |name| name == "target.example", lookup };
        let addresses = resolver.resolve(host.parse().unwrap()).await.map_err(|error| error.to_string())?;
        Ok(addresses.map(|address| address.ip().to_string()).collect())
    }

    #[tokio::test]
    async fn target_host_resolves_to_public_addresses_only() {
        let mixed: Lookup =
            |_| async { socket_addresses(&["10.0.0.7", "1.1.1.1", "::1", "2606:4700::1111"]) }.boxed();
        assert_eq!(resolve(mixed, "target.example").await.unwrap(), ["1.1.1.1", "2606:4700::1111"]);
        let private: Lookup =
            |_| async { socket_addresses(&["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.7"]) }.boxed();
        let error = resolve(private, "target.example").await.unwrap_err();
        assert!(error.contains("no public address"), "{error}");
        assert_eq!(resolve(private, "proxy.internal").await.unwrap().len(), 3);
        let unknown: Lookup = |_| async { Err(io::Error::other("no such host")) }.boxed();
        assert!(resolve(unknown, "target.example").await.is_err());
    }

    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);

    /// A second lookup could return another address than the one that was checked.
    #[tokio::test]
    async fn private_target_is_looked_up_once_and_not_connected_to() {
        let private = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        private.set_nonblocking(true).unwrap();
        let lookup: Lookup = |_| {
            LOOKUPS.fetch_add(1, Ordering::Relaxed);
            async { socket_addresses(&["127.0.0.1"]) }.boxed()
        };
        let limits = RequestLimits { timeout: Duration::from_secs(5), ..RequestLimits::default() };
        let is_target_host = |host: &str| host == "target.example";
        let resolver = PublicResolver { is_target_host, lookup };
        let client = HttpClient::build("test", limits, |builder| {
            builder.no_proxy().https_only(true).dns_resolver(resolver)
        });
        let client = client.unwrap();
        let url = format!("https://target.example:{}/", private.local_addr().unwrap().port());
        let error = client.fetch_head(client.client().get(url)).await.unwrap_err().to_string();
        assert!(error.contains("no public address"), "{error}");
        assert_eq!(LOOKUPS.load(Ordering::Relaxed), 1);
        assert!(private.accept().is_err(), "the client connected");
        let plain = client.fetch_head(client.client().get("http://target.example/")).await;
        assert!(plain.is_err(), "the client requested plain http");
        assert_eq!(LOOKUPS.load(Ordering::Relaxed), 1);
    }
}
