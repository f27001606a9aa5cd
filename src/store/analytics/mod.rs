//! Reads of analytics, each a `.sql` file that runs as it is in any ClickHouse client.
//!
//! Deleted subjects are excluded before ClickHouse has removed them. Creators are not in these statements: their numbers
//! follow the current links, which are in Postgres.

pub mod accounts;
pub mod creators;
pub mod days;
mod fair_limiter;
pub mod overview;
mod reader;
pub mod scope;
mod snapshots;
pub mod subjects;
pub mod videos;

pub use reader::HistoryReader;
pub use scope::{OrganizationScope, SubjectScope};
