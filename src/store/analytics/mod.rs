//! Reads of analytics: figures of accounts on the queries of `rollup`; figures of videos, and all counters of an account by
//! day, on `.sql` files of their own, which run as they are in any ClickHouse client.
//!
//! Deleted subjects are excluded before ClickHouse has removed them. Creators are not in these statements: their numbers
//! follow the current links, which are in Postgres.

pub mod accounts;
pub mod ages;
pub mod benchmarks;
pub mod breakouts;
mod client;
pub mod collections;
pub mod coverage;
pub mod creators;
pub mod days;
pub mod exports;
pub mod hashtags;
mod new_posts;
pub mod overview;
pub mod payouts;
pub mod post_gains;
mod reader;
pub mod rollup;
pub mod rollup_cache;
pub mod scope;
mod snapshots;
pub mod sparklines;
pub mod subjects;
pub mod timeseries;
pub mod top_content;
pub mod videos;

pub use accounts::SubjectFilter;
pub use reader::{HistoryReader, VersionedHistory};
pub use scope::{ListedSubjects, SubjectScope, find_subjects};
