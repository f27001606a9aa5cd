//! The relay on isolated stores: committed changes reach ClickHouse exactly once, after data loss, around unreadable rows and
//! despite kills at any step.

mod attempts;
#[path = "../analytics/agree.rs"]
mod agree;
mod breakouts;
mod cluster;
mod erasure;
mod kills;
mod data_loss;
mod expected;
#[path = "../analytics/model.rs"]
#[expect(dead_code, reason = "the tests of analytics use the rest")]
mod model;
mod out_of_order;
mod locks;
mod moves;
mod older_postgres;
mod random;
mod recovery;
mod retention;
mod failures;
mod served;
mod uploads;
mod steps;
#[path = "../analytics/video_rollup.rs"]
mod video_rollup;
