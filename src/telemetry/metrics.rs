//! The instruments behind the names: recorded where something happens, or looked at whenever metrics are collected.
//!
//! Without somebody who collects, there are no instruments, and whoever would record does nothing.

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::{Instrument, MeterProviderBuilder, SdkMeterProvider, Stream};

use super::names::{self, Definition, Kind};

/// How many combinations of labels requests may have: there are some 4,000 of route, method, status and size. The library
/// would put those after the first 2,000 together, without their labels.
const OF_REQUESTS: usize = 10_000;

/// What can be recorded.
pub struct Instruments {
    meter: Meter,
    pub request: Histogram<f64>,
    pub refusals: Counter<u64>,
    pub search: Histogram<f64>,
    pub statement: Histogram<f64>,
    pub connection_wait: Histogram<f64>,
    pub connection_timeouts: Counter<u64>,
    pub source_request: Histogram<f64>,
    pub source_answers: Counter<u64>,
    pub scrape: Histogram<f64>,
    pub delivery: Histogram<f64>,
    pub delivered: Counter<u64>,
}

static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

/// The instruments, if anybody collects what they record.
pub fn on() -> Option<&'static Instruments> {
    INSTRUMENTS.get()
}

/// A value beside its labels.
pub type Value = (f64, Vec<KeyValue>);

/// Has a gauge looked at whenever metrics are collected; while there is nothing to see, it is absent.
pub fn observe(definition: &Definition, look: impl Fn() -> Vec<Value> + Send + Sync + 'static) {
    let Some(instruments) = on() else { return };
    let gauge = instruments.meter.f64_observable_gauge(definition.name);
    gauge
        .with_unit(definition.unit)
        .with_description(definition.meaning)
        .with_callback(move |observer| {
            for (value, labels) in look() {
                observer.observe(value, &labels);
            }
        })
        .build();
}

/// Records how long something took.
pub fn took(histogram: &Histogram<f64>, duration: Duration, labels: &[KeyValue]) {
    histogram.record(duration.as_secs_f64(), labels);
}

/// Records that there was no connection in a pool, or no place, within the time for it.
pub fn timed_out(pool: &'static str) {
    if let Some(metrics) = on() {
        metrics.connection_timeouts.add(1, &[KeyValue::new(names::POOL, pool)]);
    }
}

/// A provider that keeps every combination of labels apart.
pub(super) fn provider() -> MeterProviderBuilder {
    let limits = |instrument: &Instrument| {
        let of_requests = instrument.name() == names::REQUEST.name;
        of_requests.then(|| Stream::builder().with_cardinality_limit(OF_REQUESTS).build().ok()).flatten()
    };
    SdkMeterProvider::builder().with_view(limits)
}

/// Makes the instruments of a provider those of the process.
pub(super) fn start(provider: &SdkMeterProvider) {
    let meter = provider.meter("tidemark");
    let histogram = |definition| histogram(&meter, definition);
    let counter = |definition: Definition| {
        let counter = meter.u64_counter(definition.name);
        counter.with_unit(definition.unit).with_description(definition.meaning).build()
    };
    let instruments = Instruments {
        request: histogram(names::REQUEST),
        refusals: counter(names::REFUSALS),
        search: histogram(names::SEARCH),
        statement: histogram(names::STATEMENT),
        connection_wait: histogram(names::CONNECTION_WAIT),
        connection_timeouts: counter(names::CONNECTION_TIMEOUTS),
        source_request: histogram(names::SOURCE_REQUEST),
        source_answers: counter(names::SOURCE_ANSWERS),
        scrape: histogram(names::SCRAPE),
        delivery: histogram(names::DELIVERY),
        delivered: counter(names::DELIVERED),
        meter: meter.clone(),
    };
    if INSTRUMENTS.set(instruments).is_err() {
        tracing::debug!("metrics were started before");
    }
    observe(&names::MEMORY, || resident().map(|bytes| (bytes, Vec::new())).into_iter().collect());
}

fn histogram(meter: &Meter, definition: Definition) -> Histogram<f64> {
    let bounds = match definition.kind {
        Kind::Histogram(bounds) => bounds,
        Kind::Counter | Kind::Gauge => &[],
    };
    let histogram = meter.f64_histogram(definition.name).with_boundaries(bounds.to_vec());
    histogram.with_unit(definition.unit).with_description(definition.meaning).build()
}

/// What the kernel says is in memory of this process.
fn resident() -> Option<f64> {
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
    fn every_route_method_status_and_size_is_told_apart() {
        let registry = Registry::new();
        let page = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
        let provider = provider().with_reader(page).build();
        let requests = histogram(&provider.meter("test"), names::REQUEST);
        for route in 0..50 {
            for status in 0..100 {
                let labels =
                    [KeyValue::new(names::ROUTE, format!("/{route}")), KeyValue::new(names::STATUS, status)];
                took(&requests, Duration::from_secs(6), &labels);
            }
        }
        let mut page = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("otel_metric_overflow"));
        let lines = |start: &str| page.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("http_server_request_duration_seconds_count{"), 5000);
        assert!(page.contains("le=\"7.5\""), "the bounds are those of the definition");
    }
}
