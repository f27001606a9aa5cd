//! Where telemetry goes: whether somebody takes it. Without a collector named there is nothing to look at.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::{Report, within};
use crate::telemetry;

pub(super) async fn check(report: &mut Report, metrics_listen: Option<SocketAddr>) {
    let collectors = match telemetry::collector_addresses() {
        Ok(collectors) => collectors,
        Err(error) => return report.fail("telemetry", error.to_string()),
    };
    if collectors.is_empty() {
        let metrics = match metrics_listen {
            Some(address) => format!("metrics can be read at {address}, and nothing is sent to a collector"),
            None => "nothing is measured: set TIDEMARK_METRICS_LISTEN or OTEL_EXPORTER_OTLP_ENDPOINT to see anything".to_owned(),
        };
        return report.ok("telemetry", metrics);
    }
    for (host, port) in collectors {
        match within(TcpStream::connect((host.as_str(), port))).await {
            Some(Ok(_)) => report.ok("telemetry", format!("the collector at {host}:{port} takes connections")),
            Some(Err(error)) => report.fail(
                "telemetry",
                format!("the collector at {host}:{port} cannot be reached ({error}): start it, or correct OTEL_EXPORTER_OTLP_ENDPOINT"),
            ),
            None => report.fail(
                "telemetry",
                format!("the collector at {host}:{port} does not answer: see that this machine reaches it"),
            ),
        }
    }
}
