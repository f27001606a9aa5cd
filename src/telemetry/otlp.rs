//! What is sent to a collector: traces, metrics and logs over OTLP, where the standard `OTEL_*` variables name one.
//!
//! Sending happens beside the work, from bounded queues: a collector that is slow, down or hangs costs what it misses,
//! and nothing else. That it cannot be reached is told once, and once that it can again.

use std::env;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, ResourceDetector};
use salvo::async_trait;
use tokio::runtime::Handle;
use url::Url;

use super::StartError;
use crate::model::network::is_loopback;
use crate::tls;

/// How long a collector may take to accept a batch, and how much it may answer.
const LONGEST: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 1 << 20;

/// What can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    fn word(self) -> &'static str {
        match self {
            Signal::Traces => "TRACES",
            Signal::Metrics => "METRICS",
            Signal::Logs => "LOGS",
        }
    }
}

/// Reads a standard variable; an empty one counts as none, as container tools pass it.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Where a signal goes, by the standard variables; `None` where it is not asked for.
pub(super) fn endpoint(signal: Signal) -> Result<Option<Url>, StartError> {
    decide(signal, variable)
}

fn decide(signal: Signal, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Url>, StartError> {
    let of_signal = |what: &str| format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.word());
    let named = |own: String, common: &str| match variable(&own) {
        Some(value) => Some((own, value)),
        None => variable(common).map(|value| (common.to_owned(), value)),
    };
    let exporter = format!("OTEL_{}_EXPORTER", signal.word());
    let asked = match variable(&exporter).as_deref() {
        None => false,
        Some("otlp") => true,
        Some("none") => return Ok(None),
        Some(other) => return Err(StartError::variable(&exporter, other, "otlp or none")),
    };
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let found = named(of_signal("ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT");
    let (name, url) = match found {
        Some(found) => found,
        None if asked => ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), "http://localhost:4318".to_owned()),
        None => return Ok(None),
    };
    if let Some((name, value)) = named(of_signal("PROTOCOL"), "OTEL_EXPORTER_OTLP_PROTOCOL")
        && value != "http/protobuf"
    {
        let instead = "http/protobuf, with an endpoint such as http://localhost:4318";
        return Err(StartError::variable(&name, &value, instead));
    }
    let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        Some(url) => Ok(Some(url)),
        None => Err(StartError::variable(
            &name,
            "its value",
            "an http or https URL such as http://localhost:4318",
        )),
    }
}

/// Who sends: the standard variables win over the name that the process has of itself.
pub(super) fn resource(service: &'static str) -> Resource {
    let named = variable("OTEL_SERVICE_NAME").is_some()
        || EnvResourceDetector::new().detect().get(&"service.name".into()).is_some();
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attribute(version);
    if named { resource.build() } else { resource.with_service_name(service).build() }
}

pub(super) fn spans(to: &Url, runtime: &Handle) -> Result<SpanExporter, StartError> {
    let client = Sender::new(Signal::Traces, to, runtime)?;
    SpanExporter::builder().with_http().with_http_client(client).build().map_err(StartError::exporter)
}

pub(super) fn metrics(to: &Url, runtime: &Handle) -> Result<MetricExporter, StartError> {
    let client = Sender::new(Signal::Metrics, to, runtime)?;
    MetricExporter::builder().with_http().with_http_client(client).build().map_err(StartError::exporter)
}

pub(super) fn logs(to: &Url, runtime: &Handle) -> Result<LogExporter, StartError> {
    let client = Sender::new(Signal::Logs, to, runtime)?;
    LogExporter::builder().with_http().with_http_client(client).build().map_err(StartError::exporter)
}

/// Sends batches on the process's runtime; the exporters wait for it on threads of their own.
struct Sender {
    signal: Signal,
    client: reqwest::Client,
    runtime: Handle,
    silent: AtomicBool,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    fn new(signal: Signal, to: &Url, runtime: &Handle) -> Result<Self, StartError> {
        let builder = tls::client().map_err(StartError::exporter)?;
        let mut builder = builder.timeout(LONGEST).redirect(reqwest::redirect::Policy::none());
        if is_loopback(to) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(StartError::exporter)?;
        Ok(Sender { signal, client, runtime: runtime.clone(), silent: AtomicBool::new(false) })
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let sent = self.runtime.spawn(exchange(self.client.clone(), request)).await?;
        let reason = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("HTTP {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        let signal = self.signal.word().to_lowercase();
        match reason {
            Some(reason) if !self.silent.swap(true, Ordering::Relaxed) => {
                tracing::warn!(signal, reason, "the collector does not take what is sent; going on without");
            }
            None if self.silent.swap(false, Ordering::Relaxed) => {
                tracing::info!(signal, "the collector takes what is sent again");
            }
            _ => {}
        }
        Ok(sent?)
    }
}

/// One exchange with the collector. Its address stays out of errors: it may hold credentials.
async fn exchange(
    client: reqwest::Client,
    request: reqwest::Request,
) -> Result<Response<Bytes>, reqwest::Error> {
    let mut response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            // All that an answer says is in its first bytes, if anything.
            break;
        }
        body.extend_from_slice(&chunk);
    }
    *answer.body_mut() = body.into();
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        decide(Signal::Traces, find).map(|url| url.map(String::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standard_variables_say_what_is_sent_where() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let collector = Ok(Some("http://collector:4318/".to_owned()));
        assert_eq!(decided(&[]), Ok(None));
        assert_eq!(decided(&[common]), collector);
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/v1/traces");
        assert_eq!(decided(&[common, own]), Ok(Some("https://traces/v1/traces".into())));
        assert_eq!(decided(&[common, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
        assert_eq!(decided(&[common, ("OTEL_METRICS_EXPORTER", "none")]), collector);
        assert_eq!(decided(&[("OTEL_TRACES_EXPORTER", "otlp")]), Ok(Some("http://localhost:4318/".into())));
        assert_eq!(decided(&[common, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(decided(&[common, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]), collector);
    }

    #[test]
    fn what_cannot_be_done_is_told_with_what_can() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
        for (wrong, hint) in [
            (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "http/protobuf"),
            (("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"), "http/protobuf"),
            (("OTEL_TRACES_EXPORTER", "jaeger"), "otlp or none"),
            (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317"), "URL"),
        ] {
            let told = decided(&[common, wrong]).unwrap_err();
            assert!(told.starts_with(wrong.0) && told.contains(hint), "{told}");
        }
    }
}
