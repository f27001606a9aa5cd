//! Exports traces, metrics and logs over OTLP, as the standard `OTEL_*` variables configure it.
//!
//! Queues are bounded and requests never wait: data that a collector does not accept in time is dropped.

use std::env;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, ResourceDetector};
use salvo::async_trait;
use tokio::runtime::Handle;
use url::Url;

use super::error::TelemetryError;
use crate::model::network::is_loopback;
use crate::tls;

/// How long a collector may take to accept a batch.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    /// Returns the signal's part of the names of variables.
    fn variable_part(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Metrics => "METRICS",
            Signal::Logs => "LOGS",
        }
    }
}

/// Reads a variable. An empty one counts as unset, because container tools pass it.
fn read_variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns the endpoint of a signal; `None` if it is not exported.
fn read_endpoint(signal: Signal) -> Result<Option<Url>, TelemetryError> {
    parse_endpoint(signal, read_variable)
}

/// Returns the hosts and ports of all endpoints, each once.
pub fn collector_addresses() -> Result<Vec<(String, u16)>, TelemetryError> {
    let mut addresses = Vec::new();
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        let Some(url) = read_endpoint(signal)? else { continue };
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        addresses.extend(host.zip(url.port_or_known_default()));
    }
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

fn parse_endpoint(
    signal: Signal,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Url>, TelemetryError> {
    let signal_variable = |name: &str| format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.variable_part());
    let first_set = |name: &str| {
        let names = [signal_variable(name), format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|candidate| variable(&candidate).map(|value| (candidate, value)))
    };
    let exporter = format!("OTEL_{}_EXPORTER", signal.variable_part());
    let is_enabled = match variable(&exporter).as_deref() {
        None => false,
        Some("otlp") => true,
        Some("none") => return Ok(None),
        Some(other) => return Err(TelemetryError::unsupported(&exporter, other, "otlp or none")),
    };
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let (endpoint_variable, url) = match first_set("ENDPOINT") {
        Some(found) => found,
        None if is_enabled => ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), "http://localhost:4318".to_owned()),
        None => return Ok(None),
    };
    if let Some((name, value)) = first_set("PROTOCOL").filter(|(_, value)| value != "http/protobuf") {
        let supported = "http/protobuf, with an endpoint such as http://localhost:4318";
        return Err(TelemetryError::unsupported(&name, &value, supported));
    }
    let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let supported = "an http or https URL such as http://localhost:4318";
    url.map(Some).ok_or_else(|| TelemetryError::unsupported(&endpoint_variable, "its value", supported))
}

/// Returns the resource attributes. Variables take precedence over `service_name`.
pub(super) fn resource(service_name: &'static str) -> Resource {
    let is_named = read_variable("OTEL_SERVICE_NAME").is_some()
        || EnvResourceDetector::new().detect().get(&"service.name".into()).is_some();
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attribute(version);
    if is_named { resource.build() } else { resource.with_service_name(service_name).build() }
}

/// Creates the client that sends a signal; `None` if the signal is not exported.
pub(super) fn create_client(
    signal: Signal,
    runtime: &Handle,
) -> Result<Option<CollectorClient>, TelemetryError> {
    read_endpoint(signal)?.map(|endpoint| CollectorClient::new(signal, &endpoint, runtime)).transpose()
}

/// Sends batches on the process's runtime. The exporters have threads of their own, without a runtime.
pub(super) struct CollectorClient {
    signal: Signal,
    client: reqwest::Client,
    runtime: Handle,
    is_failing: AtomicBool,
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}

impl CollectorClient {
    fn new(signal: Signal, endpoint: &Url, runtime: &Handle) -> Result<Self, TelemetryError> {
        let builder = tls::client_builder().map_err(TelemetryError::exporter)?;
        let mut builder = builder.timeout(EXPORT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        if is_loopback(endpoint) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(TelemetryError::exporter)?;
        Ok(CollectorClient { signal, client, runtime: runtime.clone(), is_failing: AtomicBool::new(false) })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let result = self.runtime.spawn(send(self.client.clone(), request)).await?;
        let reason = match &result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("HTTP {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        let signal = self.signal.variable_part().to_lowercase();
        match reason {
            Some(reason) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(
                    signal,
                    reason,
                    "export to the collector failed, dropping data until it works"
                );
            }
            None if self.is_failing.swap(false, Ordering::Relaxed) => {
                tracing::info!(signal, "export to the collector works again");
            }
            _ => {}
        }
        Ok(result?)
    }
}

/// Sends a request. Errors omit the URL, which may contain credentials.
async fn send(client: reqwest::Client, request: reqwest::Request) -> Result<Response<Bytes>, reqwest::Error> {
    let mut response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut result = Response::new(Bytes::new());
    *result.status_mut() = response.status();
    *result.headers_mut() = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    *result.body_mut() = body.into();
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        parse_endpoint(Signal::Traces, find)
            .map(|url| url.map(String::from))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn standard_variables_choose_the_endpoint() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let collector = Ok(Some("http://collector:4318/".to_owned()));
        assert_eq!(parsed(&[]), Ok(None));
        assert_eq!(parsed(&[common]), collector);
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/v1/traces");
        assert_eq!(parsed(&[common, own]), Ok(Some("https://traces/v1/traces".into())));
        assert_eq!(parsed(&[common, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
        assert_eq!(parsed(&[common, ("OTEL_METRICS_EXPORTER", "none")]), collector);
        assert_eq!(parsed(&[("OTEL_TRACES_EXPORTER", "otlp")]), Ok(Some("http://localhost:4318/".into())));
        assert_eq!(parsed(&[common, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(parsed(&[common, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]), collector);
    }

    #[test]
    fn unsupported_value_names_the_supported_one() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
        for (wrong, hint) in [
            (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "http/protobuf"),
            (("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"), "http/protobuf"),
            (("OTEL_TRACES_EXPORTER", "jaeger"), "otlp or none"),
            (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317"), "URL"),
        ] {
            let error = parsed(&[common, wrong]).unwrap_err();
            assert!(error.starts_with(wrong.0) && error.contains(hint), "{error}");
        }
    }
}
