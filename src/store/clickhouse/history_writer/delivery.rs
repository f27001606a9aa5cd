//! The last delivery that ClickHouse has, as ClickHouse itself records it: lost or replaced files show a different one.

use chrono::{DateTime, Utc};
use clickhouse::{Client, Row};
use serde::Deserialize;

use super::SHORT;
use crate::store::Error;
use crate::store::clickhouse::client;

/// The last delivery that ClickHouse has, and when it was made; number 0 when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedDelivery {
    pub number: i64,
    pub applied_at: Option<DateTime<Utc>>,
}

/// Reads which delivery ClickHouse has.
pub async fn last_delivery(client: &Client) -> Result<RecordedDelivery, Error> {
    #[derive(Row, Deserialize)]
    struct Last {
        delivery: u64,
        #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
        applied_at: DateTime<Utc>,
    }
    let last: Last =
        client::fetch_one(client, include_str!("recorded_delivery.sql"), SHORT, |query| query).await?;
    let number = last.delivery.cast_signed();
    Ok(RecordedDelivery { number, applied_at: (number > 0).then_some(last.applied_at) })
}

/// Records a delivery after everything it brought, unless ClickHouse no longer stands at the one `before`: then it
/// has lost files meanwhile, possibly some of this very delivery. Says whether it is recorded.
pub async fn record_delivery(client: &Client, before: i64, delivery: i64) -> Result<bool, Error> {
    client::execute(client, include_str!("record_delivery.sql"), SHORT, |query| {
        query.param("before", before).param("delivery", delivery)
    })
    .await?;
    Ok(last_delivery(client).await?.number == delivery)
}
