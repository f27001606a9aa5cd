//! The background loops: scheduler and scrapes, relay, pictures, housekeeping, breakouts, webhooks, erasure, retention, gauges,
//! search indexer.
//!
//! `tidemark track` runs all but the search indexer, the follower of rollups, the reader of events for streams and the imports
//! over HTTP, which run in each API process.

mod attempt;
pub mod breakouts;
pub mod budget;
mod chunks;
mod clock_check;
pub mod erasure;
pub mod event_reader;
mod failure_log;
pub mod gauges;
pub mod housekeeping;
pub mod indexer;
pub mod organization_erasure;
mod passes;
pub mod pictures;
mod ranges;
mod refresh_budget;
pub mod relay;
pub mod retention;
pub mod rollup_follower;
mod schedule;
mod scheduler;
mod scrape;
mod scrape_report;
mod telemetry;
mod timeout;
pub mod tracker;
pub mod uploads;
pub mod webhooks;

pub use tracker::{TrackArgs, run};
