//! Reads of history: gains and levels over windows, each a `.sql` file that any ClickHouse client can run.
//!
//! What is deleted in Postgres is left out here before ClickHouse has heard of it. Creators do not exist in these
//! statements: their numbers follow the links as they are now, which are read from Postgres.

pub mod accounts;
pub mod creators;
pub mod days;
mod fair_limiter;
mod history;
pub mod overview;
pub mod scope;
mod snapshots;
pub mod subjects;

pub mod videos;

pub use history::HistoryReader;
pub use scope::SubjectScope;

use chrono::NaiveDate;

/// The nearest day that ClickHouse's `Date` and its differences can hold; nothing was observed at either end.
fn stored_day(day: NaiveDate) -> NaiveDate {
    let (first, last) = (NaiveDate::from_ymd_opt(1974, 12, 31), NaiveDate::from_ymd_opt(2145, 1, 1));
    let day = first.map_or(day, |first| day.max(first));
    last.map_or(day, |last| day.min(last))
}
