//! Records in Postgres: what organizations, keys, accounts, creators and videos are.

pub mod accounts;
pub mod creators;
pub mod exports;
pub mod idempotency;
pub mod imports;
pub mod keys;
pub mod links;
pub mod organizations;
pub mod post_days;
pub mod rate_limits;
pub mod videos;
