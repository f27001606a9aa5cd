//! The relay on databases of its own: what was committed reaches ClickHouse once and whole, whatever ClickHouse or
//! Postgres lost, and whatever a single row holds. Kills of whole processes stand in `tests/failpoints.rs`.

#[path = "../harness/mod.rs"]
mod harness;
mod measure;
mod setup;
