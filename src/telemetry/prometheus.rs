//! `/metrics` for Prometheus and the probes, on a port of their own because they need no key.

use std::io;
use std::net::{SocketAddr, TcpListener};

use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use salvo::conn::tcp::TcpAcceptor;
use salvo::fuse::FuseConfig;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Response, Router, Server, handler};

use super::error::TelemetryError;
use super::probes;

const MAX_CONNECTIONS: usize = 64;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct MetricsArgs {
    /// Address of a port for Prometheus (/metrics) and the probes /livez and /readyz; none by default
    #[arg(long, env = "TIDEMARK_METRICS_LISTEN", value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,
}

/// A bound metrics port, which is served once logging works.
pub(super) struct MetricsEndpoint {
    listener: TcpListener,
    registry: Registry,
}

impl MetricsEndpoint {
    pub(super) fn bind(address: SocketAddr) -> Result<Self, TelemetryError> {
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|reason| TelemetryError::Listen { address, reason })?;
        Ok(MetricsEndpoint { listener, registry: Registry::new() })
    }

    /// Returns the metric reader that fills the registry.
    pub(super) fn reader(&self) -> Result<PrometheusExporter, TelemetryError> {
        let exporter = opentelemetry_prometheus::exporter().with_registry(self.registry.clone());
        exporter.scope_info_enabled(false).build().map_err(TelemetryError::exporter)
    }

    pub(super) async fn serve(self) {
        match self.acceptor() {
            Ok((address, acceptor)) => {
                tracing::info!(url = format!("http://{address}/metrics"), "serving metrics");
                let metrics = Router::with_path("metrics").get(MetricsHandler(self.registry));
                let router = probes::router().push(metrics);
                let server =
                    Server::new(acceptor).max_connections(MAX_CONNECTIONS).fuse_config(FuseConfig::strict());
                server.serve(router).await;
            }
            Err(error) => tracing::error!(%error, "cannot serve metrics"),
        }
    }

    fn acceptor(&self) -> io::Result<(SocketAddr, TcpAcceptor)> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        Ok((listener.local_addr()?, TcpAcceptor::try_from(listener)?))
    }
}

struct MetricsHandler(Registry);

#[handler]
impl MetricsHandler {
    fn handle(&self, res: &mut Response) {
        match TextEncoder::new().encode_to_string(&self.0.gather()) {
            Ok(text) => {
                res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
                res.body(text);
            }
            Err(error) => {
                tracing::error!(%error, "cannot encode metrics");
                res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
    }
}
