//! Records in Postgres: organizations, keys, accounts, creators, videos and what belongs to them.

pub mod accounts;
pub mod content;
pub mod creators;
pub mod exports;
pub mod idempotency;
pub mod imports;
pub mod keys;
pub mod links;
pub mod organizations;
pub mod post_days;
pub mod rate_limits;
pub mod subjects;
pub mod videos;
