//! The stores that Tidemark can bring along itself, for one machine without containers.

pub mod clickhouse;
pub mod postgres;
