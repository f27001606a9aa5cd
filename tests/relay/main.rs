//! The relay on databases of its own: what was committed reaches ClickHouse once and whole, whatever ClickHouse or
//! Postgres lost, whatever a single row holds, and wherever on its way a process is killed.

#[path = "../harness/mod.rs"]
mod harness;
mod kills;
mod losses;
mod rows;
mod setup;
