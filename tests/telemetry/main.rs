//! What the processes tell a collector and Prometheus, and that it costs requests nothing when nobody takes it.

#[path = "../harness/mod.rs"]
mod harness;

mod dashboards;
mod export;
mod outage;
mod receiver;
mod secrets;
