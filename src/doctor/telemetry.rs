//! Whether the OTLP collectors accept connections.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::report::{Report, Status, with_timeout};
use crate::telemetry;

const CHECK: &str = "telemetry";

pub(super) async fn check(report: &mut Report, metrics_listen: Option<SocketAddr>) {
    let collectors = match telemetry::collector_addresses() {
        Ok(collectors) => collectors,
        Err(error) => return report.add(Status::Fail, CHECK, error.to_string()),
    };
    if collectors.is_empty() {
        let state = match metrics_listen {
            Some(address) => format!("metrics are at {address}, no collector is configured"),
            None => {
                "nothing is exported: TIDEMARK_METRICS_LISTEN and OTEL_EXPORTER_OTLP_ENDPOINT are not set"
                    .to_owned()
            }
        };
        return report.ok(CHECK, state);
    }
    for (host, port) in collectors {
        let collector = format!("the collector at {host}:{port}");
        match with_timeout(TcpStream::connect((host.as_str(), port))).await {
            Ok(_) => report.ok(CHECK, format!("{collector} accepts connections")),
            Err(Some(error)) => report.fail(
                CHECK,
                format!("{collector} cannot be reached ({error})"),
                "start it or correct OTEL_EXPORTER_OTLP_ENDPOINT",
            ),
            Err(None) => report.fail(
                CHECK,
                format!("{collector} does not respond"),
                "check the network between this machine and it",
            ),
        }
    }
}
