//! The last delivery that ClickHouse has, recorded in ClickHouse itself: lost or replaced files show another number.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clickhouse::query::Query;
use clickhouse::{Client, Row};
use serde::Deserialize;

use crate::store::Error;
use crate::store::clickhouse::client;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The last delivery that ClickHouse has; number 0 and no time without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedDelivery {
    pub number: i64,
    pub applied_at: Option<DateTime<Utc>>,
}

/// Reads the last delivery that ClickHouse has.
pub async fn last_delivery(client: &Client) -> Result<RecordedDelivery, Error> {
    #[derive(Row, Deserialize)]
    struct Last {
        delivery: u64,
        #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
        applied_at: DateTime<Utc>,
    }
    let last: Last =
        client::fetch_one(client, include_str!("last_delivery.sql"), TIMEOUT, |query| query).await?;
    let number = last.delivery.cast_signed();
    Ok(RecordedDelivery { number, applied_at: (number > 0).then_some(last.applied_at) })
}

/// Records a delivery, after everything else of it is written. Returns false, and records nothing, if the last recorded
/// one is not `before`: ClickHouse has lost files meanwhile, maybe some of this very delivery.
pub async fn record_delivery(client: &Client, before: i64, delivery: i64) -> Result<bool, Error> {
    let sql = include_str!("record_delivery.sql");
    let bind = |query: Query| query.param("before", before).param("delivery", delivery);
    match client::execute_insert(client, sql, TIMEOUT, bind).await? {
        Some(rows) => Ok(rows > 0),
        None => Ok(last_delivery(client).await?.number == delivery),
    }
}
