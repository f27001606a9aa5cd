//! The API over HTTP on a real Postgres database: common behaviour and each resource.

#![recursion_limit = "256"]

mod account_filters;
mod account_videos;
mod accounts;
mod administration;
mod authentication;
mod batch_plans;
mod batches;
mod collections;
mod connections;
mod content;
mod content_exact;
mod content_plans;
mod contention;
mod conventions;
mod creators;
mod dashboard;
mod event_stream;
mod events;
mod fairness;
mod idempotency;
mod imports;
mod outage;
mod paging;
mod paging_exact;
mod paging_plans;
mod rate_limit;
mod representation;
mod search;
mod short_links;
mod tracking;
mod unread;
mod video_merging;
mod v1;
mod videos;
mod violations;
mod webhooks;
