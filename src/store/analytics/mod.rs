//! Reads of history: gains and levels over windows, each a `.sql` file that any ClickHouse client can run.
//!
//! What is deleted in Postgres is left out here before ClickHouse has heard of it. Creators do not exist in these
//! statements: their numbers follow the links as they are now, which are read from Postgres.

pub mod accounts;
pub mod creators;
pub mod days;
mod history;
pub mod overview;
pub mod scope;
pub mod subjects;
pub mod videos;

pub use scope::Scope;

use std::time::Duration;

use chrono::NaiveDate;
use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};

use super::Error;

/// How long ClickHouse may take for one answer; a request has five seconds in all.
const LONGEST: Duration = Duration::from_secs(4);

/// The nearest day that ClickHouse's `Date` and its differences can hold; nothing was observed at either end.
fn stored_day(day: NaiveDate) -> NaiveDate {
    let (first, last) = (NaiveDate::from_ymd_opt(1974, 12, 31), NaiveDate::from_ymd_opt(2145, 1, 1));
    let day = first.map_or(day, |first| day.max(first));
    last.map_or(day, |last| day.min(last))
}

/// A query that ends by itself, here and in ClickHouse.
fn bounded(client: &Client, sql: &str) -> Query {
    client
        .query_raw(&bare(sql))
        .with_setting("max_execution_time", LONGEST.as_secs().to_string())
        .with_setting("cancel_http_readonly_queries_on_client_close", "1")
}

/// A statement without its comments, which every request would have parsed anew.
fn bare(sql: &str) -> String {
    sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n")
}

async fn fetch<T: RowOwned + RowRead>(query: Query) -> Result<Vec<T>, Error> {
    match tokio::time::timeout(LONGEST, query.fetch_all()).await {
        Ok(rows) => Ok(rows?),
        Err(_) => Err(Error::Clickhouse(clickhouse::error::Error::TimedOut)),
    }
}
