//! The instruments of the metrics in `names`. Without a reader of metrics there are none, and recording does nothing.

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, SdkMeterProvider, Stream};

use super::labels;
use super::names::{self, Metric, MetricKind};

/// Maximum label combinations of request durations. Route, method, status and size have about 4,000; the library's
/// default limit is 2,000.
const MAX_REQUEST_SERIES: usize = 10_000;

pub struct Instruments {
    meter: Meter,
    pub request_duration: Histogram<f64>,
    pub rate_limit_rejections: Counter<u64>,
    pub search_duration: Histogram<f64>,
    pub rollup_reads: Counter<u64>,
    pub rollup_change_duration: Histogram<f64>,
    pub import_duration: Histogram<f64>,
    pub statement_duration: Histogram<f64>,
    pub connection_wait: Histogram<f64>,
    pub connection_timeouts: Counter<u64>,
    pub source_request_duration: Histogram<f64>,
    pub source_responses: Counter<u64>,
    pub scrape_duration: Histogram<f64>,
    pub delivery_duration: Histogram<f64>,
    pub delivered_rows: Counter<u64>,
    pub webhook_attempt_duration: Histogram<f64>,
    pub pictures: Counter<u64>,
    pub picture_delay: Histogram<f64>,
}

static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

/// Returns the instruments if metrics are collected.
pub fn instruments() -> Option<&'static Instruments> {
    INSTRUMENTS.get()
}

/// One value of a gauge, with its labels.
pub type GaugeValue = (f64, Vec<KeyValue>);

/// Registers a gauge that is read whenever metrics are collected. It is absent while `read` returns nothing.
pub fn register_gauge(metric: &Metric, read: impl Fn() -> Vec<GaugeValue> + Send + Sync + 'static) {
    let Some(instruments) = instruments() else { return };
    let gauge = instruments.meter.f64_observable_gauge(metric.name);
    gauge
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_callback(move |observer| {
            for (value, labels) in read() {
                observer.observe(value, &labels);
            }
        })
        .build();
}

pub fn record_duration(histogram: &Histogram<f64>, duration: Duration, labels: &[KeyValue]) {
    histogram.record(duration.as_secs_f64(), labels);
}

/// Counts a timeout of waiting for a connection or permit of a pool.
pub fn count_pool_timeout(pool: &'static str) {
    if let Some(metrics) = instruments() {
        metrics.connection_timeouts.add(1, &[KeyValue::new(labels::POOL, pool)]);
    }
}

pub(super) fn provider_builder() -> MeterProviderBuilder {
    let request_limit = |instrument: &Instrument| {
        let is_request = instrument.name() == names::REQUEST_DURATION.name;
        is_request
            .then(|| Stream::builder().with_cardinality_limit(MAX_REQUEST_SERIES).build().ok())
            .flatten()
    };
    SdkMeterProvider::builder().with_view(request_limit)
}

/// Creates the instruments of this process.
pub(super) fn create_instruments(provider: &SdkMeterProvider) {
    let meter = provider.meter("tidemark");
    let histogram = |metric| histogram(&meter, metric);
    let counter = |metric: Metric| {
        let counter = meter.u64_counter(metric.name);
        counter.with_unit(metric.unit).with_description(metric.description).build()
    };
    let instruments = Instruments {
        request_duration: histogram(names::REQUEST_DURATION),
        rate_limit_rejections: counter(names::RATE_LIMIT_REJECTIONS),
        search_duration: histogram(names::SEARCH_DURATION),
        rollup_reads: counter(names::ROLLUP_READS),
        rollup_change_duration: histogram(names::ROLLUP_CHANGE_DURATION),
        import_duration: histogram(names::IMPORT_DURATION),
        statement_duration: histogram(names::STATEMENT_DURATION),
        connection_wait: histogram(names::CONNECTION_WAIT),
        connection_timeouts: counter(names::CONNECTION_TIMEOUTS),
        source_request_duration: histogram(names::SOURCE_REQUEST_DURATION),
        source_responses: counter(names::SOURCE_RESPONSES),
        scrape_duration: histogram(names::SCRAPE_DURATION),
        delivery_duration: histogram(names::DELIVERY_DURATION),
        delivered_rows: counter(names::DELIVERED_ROWS),
        webhook_attempt_duration: histogram(names::WEBHOOK_ATTEMPT_DURATION),
        pictures: counter(names::PICTURES),
        picture_delay: histogram(names::PICTURE_DELAY),
        meter: meter.clone(),
    };
    if INSTRUMENTS.set(instruments).is_err() {
        tracing::debug!("metrics were already started");
    }
    register_gauge(&names::MEMORY, || {
        resident_bytes().map(|bytes| (bytes, Vec::new())).into_iter().collect()
    });
}

fn histogram(meter: &Meter, metric: Metric) -> Histogram<f64> {
    let bounds = match metric.kind {
        MetricKind::Histogram(bounds) => bounds,
        MetricKind::Counter | MetricKind::Gauge => &[],
    };
    let histogram = meter.f64_histogram(metric.name).with_boundaries(bounds.to_vec());
    histogram.with_unit(metric.unit).with_description(metric.description).build()
}

/// Returns the resident memory of this process.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use prometheus::{Encoder, Registry, TextEncoder};

    use super::*;

    #[test]
    fn request_durations_have_a_series_per_label_combination() {
        let registry = Registry::new();
        let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
        let provider = provider_builder().with_reader(reader).build();
        let requests = histogram(&provider.meter("test"), names::REQUEST_DURATION);
        for route in 0..50 {
            for status in 0..100 {
                let labels = [
                    KeyValue::new(labels::ROUTE, format!("/{route}")),
                    KeyValue::new(labels::STATUS, status),
                ];
                record_duration(&requests, Duration::from_secs(6), &labels);
            }
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("otel_metric_overflow"));
        let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("http_server_request_duration_seconds_count{"), 5000);
        assert!(text.contains("le=\"7.5\""), "the bounds are those of the metric");
    }
}
