//! Sets up logging and, for long-running processes, the export of traces, logs and metrics.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use opentelemetry::global;
use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::error::TelemetryError;
use super::logs::{self, LogArgs};
use super::otlp::{self, Signal};
use super::prometheus::MetricsEndpoint;
use super::sqlx_layer::{self, SqlxLayer};
use super::{metrics, panics, trace};

/// How long the last export may take at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// Crates that the exporters use. Exporting their log lines would produce more of them.
const EXPORTER_CRATES: [&str; 5] = ["hyper", "hyper_util", "reqwest", "h2", "opentelemetry"];

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The export settings of a long-running process.
#[derive(Debug, Clone, Copy)]
pub struct ExportConfig {
    /// The service name unless `OTEL_SERVICE_NAME` is set.
    pub service_name: &'static str,
    /// The address of the Prometheus endpoint.
    pub metrics_listen: Option<SocketAddr>,
}

/// The providers of this process, to be shut down with it.
#[derive(Default)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    logs: Option<SdkLoggerProvider>,
}

impl Telemetry {
    /// Flushes the queues of the exporters, with a timeout.
    pub fn shutdown(self) {
        let Telemetry { traces, metrics, logs } = self;
        if traces.is_none() && metrics.is_none() && logs.is_none() {
            return;
        }
        let (running, ended) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("telemetry-end".to_owned()).spawn(move || {
            let traces =
                traces.is_none_or(|provider| provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_ok());
            let logs = logs.is_none_or(|provider| provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_ok());
            let metrics =
                metrics.is_none_or(|provider| provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_ok());
            tracing::debug!(traces, logs, metrics, "telemetry flushed");
            drop(running);
        });
        // The channel closes when the thread ends; a thread that hangs ends with the process.
        if thread.is_ok() && ended.recv_timeout(SHUTDOWN_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::debug!("telemetry was not flushed in time");
        }
    }
}

/// Starts logging, and with `export` also traces, metrics and log export. A second call in a process changes nothing.
pub fn init(
    args: &LogArgs,
    export: Option<ExportConfig>,
    runtime: &Handle,
) -> Result<Telemetry, TelemetryError> {
    let metrics_listen = export.and_then(|export| export.metrics_listen);
    let endpoint = metrics_listen.map(MetricsEndpoint::bind).transpose()?;
    let mut layers = Vec::new();
    let mut telemetry = Telemetry::default();
    if let Some(ExportConfig { service_name, .. }) = export {
        telemetry.traces = start_traces(service_name, runtime, &mut layers)?;
        telemetry.logs = start_logs(service_name, args, runtime, &mut layers)?;
        telemetry.metrics = start_metrics(service_name, endpoint.as_ref(), runtime)?;
        if telemetry.traces.is_some() || telemetry.metrics.is_some() {
            layers.push(SqlxLayer.with_filter(sqlx_layer::targets()).boxed());
        }
    }
    let (log, filter) = (logs::layer(args.format), logs::filter(args)?);
    let started = if layers.is_empty() {
        tracing_subscriber::registry().with(log).with(filter).try_init()
    } else {
        layers.push(log.with_filter(filter).boxed());
        tracing_subscriber::registry().with(layers).try_init()
    };
    match started {
        Ok(()) => panics::install_hook(),
        Err(_) => tracing::debug!("logging was already started"),
    }
    if let Some(endpoint) = endpoint {
        runtime.spawn(endpoint.serve());
    }
    Ok(telemetry)
}

fn start_traces(
    service_name: &'static str,
    runtime: &Handle,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Option<SdkTracerProvider>, TelemetryError> {
    let Some(client) = otlp::create_client(Signal::Traces, runtime)? else { return Ok(None) };
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(TelemetryError::exporter)?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
    let provider = provider.with_resource(otlp::resource(service_name)).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("tidemark"));
    let layer = layer.with_location(false).with_threads(false).with_target(false);
    let layer = layer.with_tracked_inactivity(false);
    layers.push(layer.with_filter(Targets::new().with_target(trace::SPAN_TARGET, LevelFilter::INFO)).boxed());
    global::set_tracer_provider(provider.clone());
    global::set_text_map_propagator(TraceContextPropagator::new());
    Ok(Some(provider))
}

fn start_logs(
    service_name: &'static str,
    args: &LogArgs,
    runtime: &Handle,
    layers: &mut Vec<BoxedLayer>,
) -> Result<Option<SdkLoggerProvider>, TelemetryError> {
    let Some(client) = otlp::create_client(Signal::Logs, runtime)? else { return Ok(None) };
    let exporter = LogExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(TelemetryError::exporter)?;
    let provider = SdkLoggerProvider::builder().with_batch_exporter(exporter);
    let provider = provider.with_resource(otlp::resource(service_name)).build();
    let layer = OpenTelemetryTracingBridge::builder(&provider)
        .with_tracing_span_attributes(TracingSpanAttributes::allowlist(["request_id"]))
        .build();
    let all = Targets::new().with_default(LevelFilter::TRACE);
    let exported =
        EXPORTER_CRATES.into_iter().fold(all, |targets, own| targets.with_target(own, LevelFilter::OFF));
    layers.push(layer.with_filter(exported).with_filter(logs::filter(args)?).boxed());
    Ok(Some(provider))
}

/// Starts metrics if a collector or the Prometheus endpoint reads them.
fn start_metrics(
    service_name: &'static str,
    prometheus: Option<&MetricsEndpoint>,
    runtime: &Handle,
) -> Result<Option<SdkMeterProvider>, TelemetryError> {
    let client = otlp::create_client(Signal::Metrics, runtime)?;
    if client.is_none() && prometheus.is_none() {
        return Ok(None);
    }
    let mut builder = metrics::provider_builder().with_resource(otlp::resource(service_name));
    if let Some(client) = client {
        let exporter = MetricExporter::builder().with_http().with_http_client(client).build();
        builder = builder.with_periodic_exporter(exporter.map_err(TelemetryError::exporter)?);
    }
    if let Some(prometheus) = prometheus {
        builder = builder.with_reader(prometheus.reader()?);
    }
    let provider = builder.build();
    metrics::create_instruments(&provider);
    Ok(Some(provider))
}
