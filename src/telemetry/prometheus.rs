//! `/metrics` for Prometheus and the probes, on a port of their own because they need no key.

use std::io;
use std::net::{SocketAddr, TcpListener};

use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Encoder, Registry, TextEncoder};
use salvo::conn::tcp::TcpAcceptor;
use salvo::fuse::FuseConfig;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Server, async_trait};

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
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(MetricsEndpoint { listener, registry: Registry::new() })
    }

    /// Returns the metric reader that fills the registry.
    pub(super) fn reader(&self) -> Result<PrometheusExporter, opentelemetry_sdk::error::OTelSdkError> {
        opentelemetry_prometheus::exporter()
            .with_registry(self.registry.clone())
            .scope_info_enabled(false)
            .build()
    }

    pub(super) async fn serve(self) {
        match self.acceptor() {
            Ok((address, acceptor)) => {
                tracing::info!(url = format!("http://{address}/metrics"), "serving metrics");
                let metrics = Router::with_path("metrics").get(MetricsHandler(self.registry));
                let router = Router::new().push(metrics).append(&mut probes::routes().into());
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

#[async_trait]
impl Handler for MetricsHandler {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let encoder = TextEncoder::new();
        let mut text = Vec::new();
        let encoded = encoder.encode(&self.0.gather(), &mut text).and_then(|()| {
            let content_type = HeaderValue::from_str(encoder.format_type());
            content_type.map_err(|error| prometheus::Error::Msg(error.to_string()))
        });
        match encoded {
            Ok(content_type) => {
                res.headers_mut().insert(CONTENT_TYPE, content_type);
                if res.write_body(text).is_err() {
                    res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
                }
            }
            Err(error) => {
                tracing::error!(%error, "cannot encode metrics");
                res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
    }
}
