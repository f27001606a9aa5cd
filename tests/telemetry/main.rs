//! Telemetry of the processes at an OTLP collector and at Prometheus, without secrets and without blocking requests.

mod dashboards;
mod export;
mod outage;
mod receiver;
mod secrets;
