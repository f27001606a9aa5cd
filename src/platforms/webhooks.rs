//! Sends messages to the receivers of webhooks.
//!
//! API clients choose the URLs, so requests go over https to public addresses only, and to hosts that the operator allows. No
//! redirect is followed, and no response is read beyond its first bytes.

use std::error::Error;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::http_client::{HttpClient, RequestLimits};
use super::request_telemetry::measure;
use crate::model::limits::MAX_RESPONSE_BYTES;
use crate::model::network::AllowedHosts;
use crate::model::webhook::check_url;

/// How long a receiver may take.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// The name in metrics and traces.
const SERVICE: &str = "webhooks";

/// The response of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverResponse {
    pub status: u16,
    /// The first bytes, as text.
    pub body: String,
}

/// A client for receivers. Cheap to clone.
#[derive(Clone)]
pub struct WebhookClient {
    /// For hosts that organizations choose.
    public: HttpClient,
    /// For hosts that the operator allows.
    direct: HttpClient,
    allowed: Arc<AllowedHosts>,
}

impl WebhookClient {
    pub fn new(allowed: AllowedHosts) -> Result<Self, String> {
        let limits = RequestLimits { timeout: SEND_TIMEOUT, max_response_bytes: MAX_RESPONSE_BYTES };
        let public = HttpClient::for_public_hosts(SERVICE, is_receiver_host, limits)?;
        let direct = HttpClient::without_proxy(SERVICE, limits)?;
        Ok(WebhookClient { public, direct, allowed: Arc::new(allowed) })
    }

    /// Sends a message. Whatever the receiver does, this takes no longer than the timeout. The error says why there is no
    /// response, without the URL.
    pub async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: String,
    ) -> Result<ReceiverResponse, String> {
        let checked = check_url(url, &self.allowed).map_err(|message| format!("the URL {message}"))?;
        let client = if self.allowed.find(&checked).is_some() { &self.direct } else { &self.public };
        if self.allowed.find(&checked).is_none()
            && checked.host_str().is_none_or(|host| !is_receiver_host(host))
        {
            return Err("the URL leads to a proxy".to_owned());
        }
        let deadline = Instant::now() + SEND_TIMEOUT;
        let request = client.client().post(checked).headers(headers).header(CONTENT_TYPE, "application/json");
        let exchange = measure(SERVICE, request.body(body), |request| request.send(), Response::status);
        let mut response = match timeout_at(deadline, exchange).await {
            Err(_) => return Err(timed_out()),
            Ok(Err(error)) => return Err(describe(&error)),
            Ok(Ok(response)) => response,
        };
        let mut start = Vec::new();
        // What the receiver answered is known: a body that does not end changes nothing.
        while start.len() < MAX_RESPONSE_BYTES
            && let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await
        {
            start.extend_from_slice(&chunk[..chunk.len().min(MAX_RESPONSE_BYTES - start.len())]);
        }
        let text = String::from_utf8_lossy(&start).replace('\0', "\u{fffd}");
        Ok(ReceiverResponse { status: response.status().as_u16(), body: text })
    }
}

/// The hosts of the proxies that the environment names. They may have private addresses.
static PROXY_HOSTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let variables = ["http_proxy", "https_proxy", "all_proxy"].into_iter();
    let names = variables.flat_map(|name| [name.to_owned(), name.to_uppercase()]);
    let hosts = names.filter_map(|name| {
        let proxy = std::env::var(name).ok()?;
        let url = Url::parse(&proxy).or_else(|_| Url::parse(&format!("http://{proxy}"))).ok()?;
        url.host_str().map(str::to_owned)
    });
    hosts.collect()
});

fn is_receiver_host(host: &str) -> bool {
    !PROXY_HOSTS.iter().any(|proxy| proxy == host)
}

fn timed_out() -> String {
    format!("no response within {} s", SEND_TIMEOUT.as_secs())
}

/// Describes a failed request without the URL.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return timed_out();
    }
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let what = if error.is_connect() { "cannot connect" } else { "the request failed" };
    match error.source() {
        Some(_) => format!("{what}: {cause}"),
        None => what.to_owned(),
    }
}
