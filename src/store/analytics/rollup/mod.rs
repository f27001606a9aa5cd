//! Queries of the rollup `account_daily`: the gains and the follower levels of subjects by day. Each has two implementations
//! that return the same, one over the rows in memory and one in ClickHouse. Every figure of accounts is computed from them,
//! except the history of one account or creator, which has all counters (`days`).

mod followers;
mod gains;
mod metric;
mod totals;

use clickhouse::query::Query;
use clickhouse::{RowOwned, RowRead};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::reader::VersionedHistory;
use super::rollup_cache::RollupRows;
use super::scope::StatementChunk;
use crate::model::gains::Gains;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;

pub use followers::{FollowerStep, FollowerSteps};
pub use gains::{GainsByDay, GroupGains};
pub use metric::{GroupMetric, MetricByDay};
pub use totals::{SubjectGains, TotalsBySubject};

/// A query of the rollup.
pub trait RollupQuery: Sync {
    /// In no order. ClickHouse may return several about the same group, to be added up.
    type Row: DeserializeOwned + RowOwned + RowRead + Send;

    /// The days that are read: those that it got, or some of them.
    fn window(&self) -> Window;

    fn read_memory(&self, rows: &RollupRows) -> Vec<Self::Row>;

    /// The statements whose rows are the answer of ClickHouse.
    fn statements(&self) -> Vec<StatementChunk<'_>>;

    /// Binds their parameters besides subjects and days.
    fn bind(&self, query: Query) -> Query {
        query
    }
}

impl VersionedHistory {
    /// Asks memory, if the rollup is there, otherwise ClickHouse. The query gets the days of the window that are retained;
    /// the answer is empty if none is.
    pub async fn ask<Q: RollupQuery>(
        &self,
        window: Window,
        query: impl FnOnce(Window) -> Q,
    ) -> Result<Vec<Q::Row>, Error> {
        let Some(Window { start, end, .. }) = self.clip(window) else { return Ok(Vec::new()) };
        let query = query(Window { start: clamp_day(start), end: clamp_day(end), ..window });
        match self.read_memory(|rows| query.read_memory(rows)).await {
            Some(rows) => Ok(rows),
            None => {
                let bind = |statement: Query| query.bind(statement);
                self.fetch_chunks(query.statements(), query.window(), bind).await
            }
        }
    }
}

/// Gains of views, plays, likes, comments and shares; unknown ones are 0.
fn known_gains<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Gains, D::Error> {
    type Counters = (Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<i64>);
    let (views, plays, likes, comments, shares) = Counters::deserialize(deserializer)?;
    let [views, plays, likes, comments, shares] =
        [views, plays, likes, comments, shares].map(Option::unwrap_or_default);
    Ok(Gains::new(views, plays, likes, comments, shares))
}
