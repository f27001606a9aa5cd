//! Errors of setting up telemetry.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error(
        "--log {filter:?} is no filter: {reason}; use a level such as info, or module=level pairs with commas"
    )]
    BadFilter { filter: String, reason: String },
    #[error("cannot listen on {address} for metrics: {reason}; choose another address with --metrics-listen")]
    Listen { address: SocketAddr, reason: io::Error },
    #[error("{name}: {value} is not supported; use {supported}")]
    UnsupportedVariable { name: String, value: String, supported: String },
    #[error("cannot set up export: {0}; correct the OTEL_ variables or set OTEL_SDK_DISABLED=true")]
    Exporter(String),
}

impl TelemetryError {
    pub(super) fn unsupported(name: &str, value: &str, supported: &str) -> Self {
        let [name, value, supported] = [name, value, supported].map(str::to_owned);
        TelemetryError::UnsupportedVariable { name, value, supported }
    }

    pub(super) fn exporter(error: impl Display) -> Self {
        TelemetryError::Exporter(error.to_string())
    }
}
