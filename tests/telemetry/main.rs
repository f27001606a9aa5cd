//! Telemetry of the processes at an OTLP collector and at Prometheus, without secrets and without blocking requests.

#[path = "../harness/mod.rs"]
mod harness;

mod dashboards;
mod export;
mod outage;
mod receiver;
mod secrets;
