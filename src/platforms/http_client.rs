//! The one way out to a platform: a request with a deadline, a bounded answer and no redirects.
//!
//! A platform can be slow, endless or misconfigured; whatever it does, the caller gets an [`Answer`] or a
//! [`Refusal`] in time, and no error carries the address that was asked, which may hold credentials.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode};
use serde_json::Value;
use url::Url;

use super::request_telemetry::Call;
use super::source::SourceError;
use crate::model::network::{is_loopback, is_public};
use crate::tls;

/// How long a request may take and how large its answer may be.
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

/// A client for one service, with its limits.
#[derive(Clone)]
pub struct HttpClient {
    /// What metrics and traces call the service.
    service: &'static str,
    client: Client,
    limits: RequestLimits,
}

/// What a service answered, whatever its status.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl HttpClient {
    /// Makes a client for the service at `base`. A service on this machine is reached without the proxy that
    /// the environment may name.
    pub fn new(service: &'static str, base: &Url, limits: RequestLimits) -> Result<Self, String> {
        let mut builder = client_builder(limits)?;
        if is_loopback(base) {
            builder = builder.no_proxy();
        }
        Self::from_builder(service, builder, limits)
    }

    /// Makes a client for addresses that strangers choose among: it speaks TLS alone, and the names that are asked for
    /// lead to the public internet or nowhere.
    pub fn for_public_hosts(
        service: &'static str,
        asked_for: fn(&str) -> bool,
        limits: RequestLimits,
    ) -> Result<Self, String> {
        let resolver = PublicResolver { asked_for, look_up: system_lookup };
        Self::from_builder(service, client_builder(limits)?.https_only(true).dns_resolver(resolver), limits)
    }

    fn from_builder(
        service: &'static str,
        builder: ClientBuilder,
        limits: RequestLimits,
    ) -> Result<Self, String> {
        let client = builder.build().map_err(|error| format!("the HTTP client cannot be set up: {error}"))?;
        Ok(HttpClient { service, client, limits })
    }

    /// The client, to begin a request with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request and reads its answer to the end, within the limits.
    pub async fn send(&self, request: RequestBuilder) -> Result<HttpResponse, SourceError> {
        let (call, request) = Call::begin(self.service, request);
        let exchanged = call.watch(self.exchange(request)).await;
        call.end(exchanged.as_ref().map(|answer| answer.status));
        exchanged.map_err(|failure| self.source_error(failure))
    }

    /// Sends a request and reads of its answer only the status and the headers, a redirect's too.
    pub async fn fetch_head(&self, request: RequestBuilder) -> Result<(StatusCode, HeaderMap), SourceError> {
        let (call, request) = Call::begin(self.service, request);
        let sent = call.watch(request.send()).await;
        call.end(sent.as_ref().map(reqwest::Response::status));
        let response = sent.map_err(|error| self.source_error(error.into()))?;
        Ok((response.status(), response.headers().clone()))
    }

    fn source_error(&self, failure: ExchangeError) -> SourceError {
        match failure {
            ExchangeError::Source(refusal) => refusal,
            ExchangeError::Http(error) if error.is_timeout() => SourceError::Transient(format!(
                "no complete answer within {} s",
                self.limits.timeout.as_secs_f64()
            )),
            ExchangeError::Http(error) => {
                SourceError::Transient(describe_transport_error(&error.without_url()))
            }
        }
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<HttpResponse, ExchangeError> {
        let mut response = request.send().await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(ExchangeError::Source(SourceError::Malformed(format!(
                "the service redirects elsewhere (HTTP {}), which is not followed; correct the source's URL",
                status.as_u16()
            ))));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > self.limits.max_response_bytes {
                return Err(ExchangeError::Source(SourceError::Malformed(format!(
                    "the answer is larger than {} bytes",
                    self.limits.max_response_bytes
                ))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse { status, headers: response.headers().clone(), body })
    }
}

impl HttpResponse {
    /// Reads the body as JSON. Without JSON in it, the status alone says why nothing was learned.
    pub fn json(&self, now: DateTime<Utc>) -> Result<Value, SourceError> {
        serde_json::from_slice(&self.body).map_err(|_| {
            let status = self.status.as_u16();
            match status {
                429 => SourceError::RateLimited {
                    until: now + self.retry_after().unwrap_or(TimeDelta::minutes(1)),
                },
                500..=599 => SourceError::Transient(format!("HTTP {status} without a JSON body")),
                _ => SourceError::Malformed(format!("HTTP {status} whose body is not JSON")),
            }
        })
    }

    /// How long `Retry-After` asks to wait: a second at least, a day at most.
    pub fn retry_after(&self) -> Option<TimeDelta> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = match text.parse::<i64>() {
            Ok(seconds) => TimeDelta::try_seconds(seconds)?,
            Err(_) => DateTime::parse_from_rfc2822(text).ok()?.to_utc() - Utc::now(),
        };
        Some(wait.clamp(TimeDelta::seconds(1), TimeDelta::days(1)))
    }
}

/// A door that a source shuts on itself when the platform asks for a pause: calling while throttled prolongs it.
#[derive(Debug, Default)]
pub struct Cooldown(Mutex<Option<DateTime<Utc>>>);

impl Cooldown {
    /// The end of the latest pause.
    pub fn paused_until(&self) -> Option<DateTime<Utc>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses while the pause lasts.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(), SourceError> {
        match self.paused_until() {
            Some(until) if now < until => Err(SourceError::RateLimited { until }),
            _ => Ok(()),
        }
    }

    /// Shuts the door until then, or longer if it was to stay shut longer.
    pub fn extend_until(&self, until: DateTime<Utc>) {
        let mut closed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *closed = Some(closed.map_or(until, |known| known.max(until)));
    }

    /// Takes note of a refusal for rate on its way out.
    pub fn record<T>(&self, result: Result<T, SourceError>) -> Result<T, SourceError> {
        if let Err(SourceError::RateLimited { until }) = &result {
            self.extend_until(*until);
        }
        result
    }
}

/// A client that follows nothing and gives up in time.
fn client_builder(limits: RequestLimits) -> Result<ClientBuilder, String> {
    let builder = tls::client()
        .map_err(|error| error.to_string())?
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(limits.timeout)
        .timeout(limits.timeout)
        .user_agent(concat!("tidemark/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// Asks for the addresses of a name.
type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Resolves names, those that are asked for to public addresses alone. What is connected to is what was looked at: a name
/// that says something else a moment later changes nothing.
struct PublicResolver {
    /// Whether a name is asked for; any other is a proxy's, which the operator has chosen.
    asked_for: fn(&str) -> bool,
    look_up: Lookup,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let anywhere = !(self.asked_for)(name.as_str());
        let found = (self.look_up)(name.as_str().to_owned());
        async move {
            let mut addresses = found.await?;
            addresses.retain(|address| anywhere || is_public(address.ip()));
            if addresses.is_empty() {
                return Err(Box::from("its name leads to no address of the public internet"));
            }
            Ok::<Addrs, Box<dyn Error + Send + Sync>>(Box::new(addresses.into_iter()))
        }
        .boxed()
    }
}

fn system_lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed()
}

enum ExchangeError {
    Http(reqwest::Error),
    Source(SourceError),
}

impl From<reqwest::Error> for ExchangeError {
    fn from(error: reqwest::Error) -> Self {
        ExchangeError::Http(error)
    }
}

/// Says in words what went wrong on the way, without the address.
fn describe_transport_error(error: &reqwest::Error) -> String {
    let what = if error.is_connect() {
        "the service cannot be reached"
    } else if error.is_body() || error.is_decode() {
        "the answer broke off"
    } else {
        "the request failed"
    };
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("{what}: {cause}")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn addresses(of: &[&str]) -> io::Result<Vec<SocketAddr>> {
        Ok(of.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect())
    }

    async fn resolved(look_up: Lookup, name: &str) -> Result<Vec<String>, String> {
        let resolver = PublicResolver { asked_for: |name| name == "asked.example", look_up };
        let found = resolver.resolve(name.parse().unwrap()).await.map_err(|error| error.to_string())?;
        Ok(found.map(|address| address.ip().to_string()).collect())
    }

    #[tokio::test]
    async fn a_name_that_is_asked_for_leads_to_public_addresses_or_nowhere() {
        let mixed: Lookup =
            |_| async { addresses(&["10.0.0.7", "1.1.1.1", "::1", "2606:4700::1111"]) }.boxed();
        assert_eq!(resolved(mixed, "asked.example").await.unwrap(), ["1.1.1.1", "2606:4700::1111"]);
        let inside: Lookup =
            |_| async { addresses(&["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.7"]) }.boxed();
        let told = resolved(inside, "asked.example").await.unwrap_err();
        assert!(told.contains("no address of the public internet"), "{told}");
        assert_eq!(resolved(inside, "proxy.internal").await.unwrap().len(), 3);
        let nowhere: Lookup = |_| async { Err(io::Error::other("no such name")) }.boxed();
        assert!(resolved(nowhere, "asked.example").await.is_err());
    }

    /// What a name says the second time, once it was found harmless, is not asked.
    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

    #[tokio::test]
    async fn a_name_is_looked_up_once_for_a_connection_and_an_inner_address_is_not_connected_to() {
        let inner = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        inner.set_nonblocking(true).unwrap();
        let look_up: Lookup = |_| {
            LOOKED_UP.fetch_add(1, Ordering::Relaxed);
            async { addresses(&["127.0.0.1"]) }.boxed()
        };
        let limits = RequestLimits { timeout: Duration::from_secs(5), ..RequestLimits::default() };
        let asked_for = |name: &str| name == "asked.example";
        let builder = client_builder(limits).unwrap().no_proxy().https_only(true);
        let builder = builder.dns_resolver(PublicResolver { asked_for, look_up });
        let outbound = HttpClient::from_builder("test", builder, limits).unwrap();
        let url = format!("https://asked.example:{}/", inner.local_addr().unwrap().port());
        let refusal = outbound.fetch_head(outbound.client().get(url)).await.unwrap_err().to_string();
        assert!(refusal.contains("no address of the public internet"), "{refusal}");
        assert_eq!(LOOKED_UP.load(Ordering::Relaxed), 1);
        assert!(inner.accept().is_err(), "somebody connected");
        let plain = outbound.fetch_head(outbound.client().get("http://asked.example/")).await;
        assert!(plain.is_err(), "it was asked without TLS");
        assert_eq!(LOOKED_UP.load(Ordering::Relaxed), 1);
    }
}
