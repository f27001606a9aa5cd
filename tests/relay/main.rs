//! The relay on databases of its own: what was committed reaches ClickHouse once and whole, whatever ClickHouse or
//! Postgres lost, whatever a single row holds, and wherever on its way a process is killed.

#[path = "../harness/mod.rs"]
mod harness;

mod attempts;
#[path = "../analytics/agree.rs"]
mod agree;
mod cluster;
mod erasure;
mod kills;
mod losses;
#[path = "../analytics/model.rs"]
#[expect(dead_code, reason = "the tests of analytics use the rest")]
mod model;
mod order;
mod places;
mod random;
mod retention;
mod rows;
mod setup;
