//! The relay on databases of its stores: what was committed reaches ClickHouse once and whole, whatever ClickHouse or
//! Postgres lost, whatever a single row holds, and wherever on its way a process is killed.

#[path = "../harness/mod.rs"]
mod harness;

mod attempts;
#[path = "../analytics/agree.rs"]
mod agree;
mod cluster;
mod erasure;
mod kills;
mod data_loss;
#[path = "../analytics/model.rs"]
#[expect(dead_code, reason = "the tests of analytics use the rest")]
mod model;
mod out_of_order;
mod locks;
mod random;
mod retention;
mod failures;
mod setup;
