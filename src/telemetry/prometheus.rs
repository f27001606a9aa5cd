//! `/metrics` for Prometheus, on a port of its own: it needs no key, so it is not for the address that clients reach.

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

/// Connections at a time: few read metrics.
const READERS: usize = 64;

/// Where Prometheus reads the metrics of a process.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub struct MetricsArgs {
    /// Address of a port of its own for Prometheus, which reads /metrics there, and for the probes /livez and /readyz;
    /// without one, there is none
    #[arg(long, env = "TIDEMARK_METRICS_LISTEN", value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,
}

/// A port that is taken and not yet answered, and what is to be told there.
pub(super) struct Page {
    listener: TcpListener,
    registry: Registry,
}

impl Page {
    pub(super) fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Page { listener, registry: Registry::new() })
    }

    /// The reader of metrics that fills the page.
    pub(super) fn reader(&self) -> Result<PrometheusExporter, opentelemetry_sdk::error::OTelSdkError> {
        opentelemetry_prometheus::exporter()
            .with_registry(self.registry.clone())
            .scope_info_enabled(false)
            .build()
    }

    /// Answers for as long as the process runs.
    pub(super) async fn serve(self) {
        match self.acceptor() {
            Ok((address, acceptor)) => {
                tracing::info!(url = format!("http://{address}/metrics"), "metrics can be read");
                let metrics = Router::with_path("metrics").get(Tell(self.registry));
                let router = Router::new().push(metrics).append(&mut probes::routes().into());
                let server = Server::new(acceptor).max_connections(READERS).fuse_config(FuseConfig::strict());
                server.serve(router).await;
            }
            Err(error) => tracing::error!(%error, "metrics cannot be read: their port does not answer"),
        }
    }

    fn acceptor(&self) -> io::Result<(SocketAddr, TcpAcceptor)> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        Ok((listener.local_addr()?, TcpAcceptor::try_from(listener)?))
    }
}

/// Tells the metrics of now.
struct Tell(Registry);

#[async_trait]
impl Handler for Tell {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let encoder = TextEncoder::new();
        let mut text = Vec::new();
        let told = encoder.encode(&self.0.gather(), &mut text).and_then(|()| {
            let kind = HeaderValue::from_str(encoder.format_type());
            kind.map_err(|error| prometheus::Error::Msg(error.to_string()))
        });
        match told {
            Ok(kind) => {
                res.headers_mut().insert(CONTENT_TYPE, kind);
                if res.write_body(text).is_err() {
                    res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
                }
            }
            Err(error) => {
                tracing::error!(%error, "metrics cannot be told");
                res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
    }
}
