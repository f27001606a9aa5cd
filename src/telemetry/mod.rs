//! What the processes say while they run: one line per event on standard error, for people or for machines; and, where
//! somebody collects them, traces, metrics and logs (docs/operating.md).
//!
//! Standard output belongs to the answers of the command line and is never written to from here. Without a collector
//! and without a port for Prometheus, nothing of the latter is set up.

pub mod metrics;
pub mod names;
mod otlp;
mod panics;
pub mod probes;
mod prometheus;
pub mod statements;
pub mod tenants;
pub mod trace;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use opentelemetry::global;
use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

pub use self::prometheus::MetricsArgs;

use self::otlp::Signal;
use self::prometheus::Page;

/// How long what is left to send may take when the process ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// What the exporters themselves stand on; sending what they say would make them say more.
const EXPORTERS: [&str; 5] = ["hyper", "hyper_util", "reqwest", "h2", "opentelemetry"];

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal
    Text,
    /// One JSON object a line, with request_id and trace_id where there are such
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// What to log: error, warn, info, debug or trace, also per module, as in info,tidemark::worker=debug
    #[arg(
        long = "log",
        env = "TIDEMARK_LOG",
        default_value = "info,sqlx=warn,salvo_core=warn",
        value_name = "FILTER",
        global = true
    )]
    pub filter: String,
    /// The form of the lines on standard error
    #[arg(
        id = "log-format",
        long = "log-format",
        env = "TIDEMARK_LOG_FORMAT",
        default_value = "text",
        global = true
    )]
    pub format: LogFormat,
}

/// A process that tells more than its log.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Its name where `OTEL_SERVICE_NAME` gives none.
    pub service: &'static str,
    /// Where Prometheus reads its metrics.
    pub metrics_listen: Option<SocketAddr>,
}

/// Why telemetry does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A filter that says nothing tracing understands.
    #[error(
        "--log {filter:?} is no filter: {reason}; use a level such as info, or module=level pairs with commas"
    )]
    BadFilter { filter: String, reason: String },
    #[error("cannot listen on {address} for metrics: {reason}; choose another address with --metrics-listen")]
    Listen { address: SocketAddr, reason: io::Error },
    #[error("{name}: {value} is not supported; use {instead}")]
    Variable { name: String, value: String, instead: String },
    #[error("telemetry cannot be sent: {0}; correct the OTEL_ variables or set OTEL_SDK_DISABLED=true")]
    Exporter(String),
}

impl StartError {
    fn variable(name: &str, value: &str, instead: &str) -> Self {
        StartError::Variable { name: name.to_owned(), value: value.to_owned(), instead: instead.to_owned() }
    }

    fn exporter(error: impl std::fmt::Display) -> Self {
        StartError::Exporter(error.to_string())
    }
}

/// What was set up, to be ended with the process.
#[derive(Default)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// Sends what is left, for a short time.
    pub fn end(self) {
        let Telemetry { traces, metrics, logs } = self;
        if traces.is_none() && metrics.is_none() && logs.is_none() {
            return;
        }
        let (done, ended) = mpsc::channel::<()>();
        let last = std::thread::Builder::new().name("telemetry-end".to_owned()).spawn(move || {
            let spans = traces.is_none_or(|provider| provider.shutdown_with_timeout(FAREWELL).is_ok());
            let lines = logs.is_none_or(|provider| provider.shutdown_with_timeout(FAREWELL).is_ok());
            let values = metrics.is_none_or(|provider| provider.shutdown_with_timeout(FAREWELL).is_ok());
            tracing::debug!(spans, lines, values, "the last telemetry was sent");
            drop(done);
        });
        // The channel closes when the thread is done; one that hangs ends with the process.
        if last.is_ok() && ended.recv_timeout(FAREWELL) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::debug!("the last telemetry was not sent in time");
        }
    }
}

/// Starts logging for the whole process, and for one that tells more, what it is asked to tell. A second call in one
/// process changes nothing.
pub fn init(args: &LogArgs, process: Option<Process>, runtime: &Handle) -> Result<Telemetry, StartError> {
    let filter = || {
        let filter = EnvFilter::try_new(&args.filter);
        filter
            .map_err(|error| StartError::BadFilter { filter: args.filter.clone(), reason: error.to_string() })
    };
    let mut telemetry = Telemetry::default();
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    let log = lines(args.format);
    let page = match process.and_then(|process| process.metrics_listen) {
        Some(address) => {
            Some(Page::listen(address).map_err(|reason| StartError::Listen { address, reason })?)
        }
        None => None,
    };
    if let Some(Process { service, .. }) = process {
        let resource = || otlp::resource(service);
        if let Some(to) = otlp::endpoint(Signal::Traces)? {
            let exporter = otlp::spans(&to, runtime)?;
            let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
            let provider = provider.with_resource(resource()).build();
            let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tidemark"));
            let layer = layer.with_location(false).with_threads(false).with_target(false);
            let layer = layer.with_tracked_inactivity(false);
            layers.push(layer.with_filter(Targets::new().with_target(TRACED, LevelFilter::INFO)).boxed());
            global::set_tracer_provider(provider.clone());
            global::set_text_map_propagator(TraceContextPropagator::new());
            telemetry.traces = Some(provider);
        }
        if let Some(to) = otlp::endpoint(Signal::Logs)? {
            let exporter = otlp::logs(&to, runtime)?;
            let provider = SdkLoggerProvider::builder().with_batch_exporter(exporter);
            let provider = provider.with_resource(resource()).build();
            let layer = OpenTelemetryTracingBridge::builder(&provider)
                .with_tracing_span_attributes(TracingSpanAttributes::allowlist(["request_id"]))
                .build();
            let sent = Targets::new().with_default(LevelFilter::TRACE);
            let sent = EXPORTERS.into_iter().fold(sent, |sent, own| sent.with_target(own, LevelFilter::OFF));
            layers.push(layer.with_filter(sent).with_filter(untraced(filter()?)).boxed());
            telemetry.logs = Some(provider);
        }
        let mut metrics = metrics::provider().with_resource(resource());
        let to = otlp::endpoint(Signal::Metrics)?;
        if let Some(to) = &to {
            metrics = metrics.with_periodic_exporter(otlp::metrics(to, runtime)?);
        }
        if let Some(page) = &page {
            metrics = metrics.with_reader(page.reader().map_err(StartError::exporter)?);
        }
        if to.is_some() || page.is_some() {
            let provider = metrics.build();
            metrics::start(&provider);
            telemetry.metrics = Some(provider);
        }
        if telemetry.traces.is_some() || telemetry.metrics.is_some() {
            layers.push(statements::Statements.with_filter(statements::heard()).boxed());
        }
    }
    let started = if layers.is_empty() {
        tracing_subscriber::registry().with(log).with(untraced(filter()?)).try_init()
    } else {
        layers.push(log.with_filter(untraced(filter()?)).boxed());
        tracing_subscriber::registry().with(layers).try_init()
    };
    match started {
        Ok(()) => panics::heard(),
        Err(_) => tracing::debug!("logging was started before"),
    }
    if let Some(page) = page {
        runtime.spawn(page.serve());
    }
    Ok(telemetry)
}

/// The hosts and ports of the collectors that something is to be sent to, each once.
pub fn collectors() -> Result<Vec<(String, u16)>, StartError> {
    let mut found = Vec::new();
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        let Some(url) = otlp::endpoint(signal)? else { continue };
        let place = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        found.extend(place.zip(url.port_or_known_default()));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The target of spans that only collectors see.
const TRACED: &str = "otel";

/// A filter of log lines, without what is there for collectors alone and never without panics.
fn untraced(filter: EnvFilter) -> EnvFilter {
    let own = [format!("{TRACED}=off").parse().ok(), panics::always()];
    own.into_iter().flatten().fold(filter, EnvFilter::add_directive)
}

/// The lines on standard error.
fn lines(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Text => {
            let ansi = io::stderr().is_terminal();
            tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(io::stderr).boxed()
        }
        LogFormat::Json => json_subscriber::layer()
            .with_current_span(false)
            .flatten_span_list_on_top_level(true)
            .flatten_event(true)
            .with_writer(io::stderr)
            .boxed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_collector_there_are_no_spans_for_it() {
        let spans = |filter: &str| {
            let filter = untraced(EnvFilter::try_new(filter).unwrap());
            let subscriber = tracing_subscriber::registry().with(lines(LogFormat::Json)).with(filter);
            tracing::subscriber::with_default(subscriber, || {
                let traced = crate::traced!("request", otel.kind = "server");
                (traced.is_disabled(), tracing::info_span!("request").is_disabled())
            })
        };
        assert_eq!(spans("info"), (true, false));
        assert_eq!(spans("trace"), (true, false));
    }

    #[tokio::test]
    async fn a_bad_filter_is_refused_by_name() {
        let args = LogArgs { filter: "tidemark=loud".into(), format: LogFormat::Text };
        let message = init(&args, None, &Handle::current()).err().unwrap().to_string();
        assert!(message.starts_with("--log \"tidemark=loud\" is no filter"), "{message}");
    }
}
