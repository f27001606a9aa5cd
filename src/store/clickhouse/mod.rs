//! ClickHouse access: the client, the history writer, the rollup, users for data teams, and clusters.

pub mod client;
pub mod cluster;
pub mod diagnosis;
pub mod history_writer;
pub mod logins;
pub mod rollup;
pub mod users;
