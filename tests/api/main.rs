//! The API over HTTP, against a real Postgres: what every endpoint shares, then resource by resource.

#![recursion_limit = "256"]

#[path = "../harness/mod.rs"]
mod harness;

mod account_videos;
mod accounts;
mod administration;
mod authentication;
mod connections;
mod contention;
mod conventions;
mod creators;
mod idempotency;
mod outage;
mod paging;
mod paging_exact;
mod paging_plans;
mod rate_limit;
mod representation;
mod search;
mod short_links;
mod video_merging;
mod v1;
mod videos;
