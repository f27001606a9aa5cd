//! A small OTLP collector (protobuf over HTTP) that stores what it receives. It is also a proxy to ClickHouse and to a
//! platform, and stores the trace context of the requests that it forwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use salvo::conn::tcp::TcpAcceptor;
use salvo::http::StatusCode;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Server, async_trait};

const MAX_BODY_BYTES: usize = 16 << 20;

/// Received telemetry, and the trace context of forwarded requests.
#[derive(Default)]
pub struct Received {
    /// Spans with the name of the service that sent them.
    pub spans: Vec<(String, Span)>,
    pub logs: Vec<(String, LogRecord)>,
    /// The labels of each metric, by service and metric name.
    pub metrics: BTreeMap<(String, String), BTreeSet<String>>,
    /// Units by metric name.
    pub units: BTreeMap<String, String>,
    /// All request bodies.
    pub bytes: Vec<u8>,
    /// The destination, and `traceparent` followed by `tracestate`, of each forwarded request.
    pub forwarded: Vec<(&'static str, Option<String>)>,
}

#[derive(Clone, Default)]
pub struct Receiver {
    pub url: String,
    pub received: Arc<Mutex<Received>>,
}

impl Receiver {
    /// Receives telemetry, and forwards requests below `/clickhouse` and `/short`.
    pub async fn start(clickhouse: &str, short: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver =
            Receiver { url: format!("http://{}", listener.local_addr().unwrap()), received: Arc::default() };
        let forward =
            |name, to: &str| ForwardRequest { name, to: to.to_owned(), received: receiver.received.clone() };
        let routes = Router::new()
            .push(Router::with_path("v1/{signal}").post(receiver.clone()))
            .push(Router::with_path("clickhouse").goal(forward("clickhouse", clickhouse)))
            .push(Router::with_path("short/{**rest}").goal(forward("short", short)));
        let acceptor = TcpAcceptor::try_from(listener).unwrap();
        tokio::spawn(Server::new(acceptor).serve(routes));
        receiver
    }

    /// Reads what was received so far.
    pub fn read<T>(&self, read: impl FnOnce(&Received) -> T) -> T {
        read(&self.received.lock().unwrap())
    }

    /// The spans of a trace, with the services that sent them.
    pub fn trace(&self, id: &str) -> Vec<(String, Span)> {
        self.read(|received| {
            let trace_spans = received.spans.iter().filter(|(_, span)| hex(&span.trace_id) == id);
            trace_spans.cloned().collect()
        })
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute as text; empty when it is missing.
pub fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.as_ref()).and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

pub fn text(value: &Option<AnyValue>) -> String {
    let entry = KeyValue { key: "value".into(), value: value.clone(), ..KeyValue::default() };
    attribute(&[entry], "value")
}

fn service(resource: &Option<Resource>) -> String {
    attribute(&resource.as_ref().unwrap().attributes, "service.name")
}

fn labels(metric: &Metric) -> Vec<&[KeyValue]> {
    match metric.data.as_ref().unwrap() {
        metric::Data::Gauge(gauge) => gauge.data_points.iter().map(|point| &point.attributes[..]).collect(),
        metric::Data::Sum(sum) => sum.data_points.iter().map(|point| &point.attributes[..]).collect(),
        metric::Data::Histogram(histogram) => {
            histogram.data_points.iter().map(|point| &point.attributes[..]).collect()
        }
        other => panic!("unexpected metric data {other:?}"),
    }
}

impl Received {
    fn record(&mut self, signal: &str, body: &[u8]) {
        self.bytes.extend_from_slice(body);
        match signal {
            "traces" => {
                for from in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
                    let service = service(&from.resource);
                    let spans = from.scope_spans.into_iter().flat_map(|scope| scope.spans);
                    self.spans.extend(spans.map(|span| (service.clone(), span)));
                }
            }
            "metrics" => {
                for from in ExportMetricsServiceRequest::decode(body).unwrap().resource_metrics {
                    let service = service(&from.resource);
                    for metric in from.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
                        self.units.insert(metric.name.clone(), metric.unit.clone());
                        let seen = self.metrics.entry((service.clone(), metric.name.clone())).or_default();
                        seen.extend(labels(metric).into_iter().flatten().map(|label| label.key.clone()));
                    }
                }
            }
            _ => {
                for from in ExportLogsServiceRequest::decode(body).unwrap().resource_logs {
                    let service = service(&from.resource);
                    let logs = from.scope_logs.into_iter().flat_map(|scope| scope.log_records);
                    self.logs.extend(logs.map(|log| (service.clone(), log)));
                }
            }
        }
    }
}

#[async_trait]
impl Handler for Receiver {
    async fn handle(&self, req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let signal: String = req.param("signal").unwrap();
        let body = req.payload_with_max_size(MAX_BODY_BYTES).await.unwrap().clone();
        self.received.lock().unwrap().record(&signal, &body);
        // An empty message means that everything was accepted.
        res.status_code(StatusCode::OK);
        res.headers_mut().insert("content-type", "application/x-protobuf".parse().unwrap());
    }
}

/// Forwards a request unchanged.
struct ForwardRequest {
    name: &'static str,
    to: String,
    received: Arc<Mutex<Received>>,
}

#[async_trait]
impl Handler for ForwardRequest {
    async fn handle(&self, req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let header = |name| req.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let context =
            header("traceparent").map(|context| context + &header("tracestate").unwrap_or_default());
        self.received.lock().unwrap().forwarded.push((self.name, context));
        let rest: String = req.param("rest").unwrap_or_default();
        let mut url = if rest.is_empty() { self.to.clone() } else { format!("{}/{rest}", self.to) };
        if let Some(query) = req.uri().query() {
            url = format!("{url}/?{query}").replace("//?", "/?");
        }
        let mut headers = req.headers().clone();
        for hop_header in ["host", "content-length", "transfer-encoding"] {
            headers.remove(hop_header);
        }
        let body = req.payload_with_max_size(MAX_BODY_BYTES).await.unwrap().clone();
        // The client handles redirects.
        let client = reqwest::Client::builder().no_gzip().no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let request = client.request(req.method().clone(), url).headers(headers).body(body);
        let response = request.send().await.unwrap();
        res.status_code(response.status());
        for (name, value) in response.headers() {
            if name != "transfer-encoding" && name != "content-length" {
                res.headers_mut().append(name.clone(), value.clone());
            }
        }
        res.write_body(response.bytes().await.unwrap()).unwrap();
    }
}
