//! Logs, metrics and traces: log lines on standard error, an endpoint for Prometheus, and OTLP export (docs/operating.md).
//!
//! Without a collector and a metrics port, only logging is set up.

mod error;
mod init;
pub mod labels;
mod logs;
pub mod metrics;
pub mod names;
pub mod organization_size;
mod otlp;
mod panics;
pub mod pictures;
pub mod probes;
mod prometheus;
mod sqlx_layer;
pub mod trace;

pub use self::error::TelemetryError;
pub use self::init::{ExportConfig, Telemetry, init};
pub use self::logs::{LogArgs, LogFormat};
pub use self::otlp::collector_addresses;
pub use self::prometheus::MetricsArgs;
