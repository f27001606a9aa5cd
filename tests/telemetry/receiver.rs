//! A small collector: takes OTLP as protobuf over HTTP and keeps what it was sent. It also stands between the service
//! and those that the service asks, and keeps the context that the service sent them.

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

const LARGEST: usize = 16 << 20;

/// What was sent, and the contexts that others were given.
#[derive(Default)]
pub struct Received {
    /// Each with the service that sent it.
    pub spans: Vec<(String, Span)>,
    pub logs: Vec<(String, LogRecord)>,
    /// By service and name, the labels that were seen on each.
    pub metrics: BTreeMap<(String, String), BTreeSet<String>>,
    /// Units, as they were sent.
    pub units: BTreeMap<String, String>,
    /// Everything, as it came.
    pub bytes: Vec<u8>,
    /// The `traceparent` and the `tracestate` of requests that were passed on, by where they went.
    pub passed_on: Vec<(&'static str, Option<String>)>,
}

#[derive(Clone, Default)]
pub struct Receiver {
    pub url: String,
    pub received: Arc<Mutex<Received>>,
}

impl Receiver {
    /// Takes telemetry, and passes on what is asked below `/clickhouse` and `/short`.
    pub async fn start(clickhouse: &str, short: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver =
            Receiver { url: format!("http://{}", listener.local_addr().unwrap()), received: Arc::default() };
        let pass = |name, to: &str| PassOn { name, to: to.to_owned(), received: receiver.received.clone() };
        let routes = Router::new()
            .push(Router::with_path("v1/{signal}").post(receiver.clone()))
            .push(Router::with_path("clickhouse").goal(pass("clickhouse", clickhouse)))
            .push(Router::with_path("short/{**rest}").goal(pass("short", short)));
        let acceptor = TcpAcceptor::try_from(listener).unwrap();
        tokio::spawn(Server::new(acceptor).serve(routes));
        receiver
    }

    /// Looks at what was received so far.
    pub fn look<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock().unwrap())
    }

    /// The spans of a trace, by their names.
    pub fn trace(&self, id: &str) -> Vec<(String, Span)> {
        self.look(|received| {
            let of_trace = received.spans.iter().filter(|(_, span)| hex(&span.trace_id) == id);
            of_trace.cloned().collect()
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
        other => panic!("nobody sends {other:?}"),
    }
}

impl Received {
    fn take(&mut self, signal: &str, body: &[u8]) {
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
        let body = req.payload_with_max_size(LARGEST).await.unwrap().clone();
        self.received.lock().unwrap().take(&signal, &body);
        // An empty message: everything was accepted.
        res.status_code(StatusCode::OK);
        res.headers_mut().insert("content-type", "application/x-protobuf".parse().unwrap());
    }
}

/// Passes a request on as it is.
struct PassOn {
    name: &'static str,
    to: String,
    received: Arc<Mutex<Received>>,
}

#[async_trait]
impl Handler for PassOn {
    async fn handle(&self, req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let header = |name| req.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let context =
            header("traceparent").map(|context| context + &header("tracestate").unwrap_or_default());
        self.received.lock().unwrap().passed_on.push((self.name, context));
        let rest: String = req.param("rest").unwrap_or_default();
        let mut url = if rest.is_empty() { self.to.clone() } else { format!("{}/{rest}", self.to) };
        if let Some(query) = req.uri().query() {
            url = format!("{url}/?{query}").replace("//?", "/?");
        }
        let mut headers = req.headers().clone();
        for own in ["host", "content-length", "transfer-encoding"] {
            headers.remove(own);
        }
        let body = req.payload_with_max_size(LARGEST).await.unwrap().clone();
        // Redirects are the asker's matter.
        let client = reqwest::Client::builder().no_gzip().no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let request = client.request(req.method().clone(), url).headers(headers).body(body);
        let answer = request.send().await.unwrap();
        res.status_code(answer.status());
        for (name, value) in answer.headers() {
            if name != "transfer-encoding" && name != "content-length" {
                res.headers_mut().append(name.clone(), value.clone());
            }
        }
        res.write_body(answer.bytes().await.unwrap()).unwrap();
    }
}
