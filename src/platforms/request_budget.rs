//! The requests that a source with a daily limit has used, and the pages that it delivered: counted in Postgres for all
//! processes together. Where there is no database, requests are counted in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use parking_lot::Mutex;
use sqlx::PgPool;

use super::source::SourceError;
use crate::model::cost::PageCounts;
use crate::model::platform::Platform;
use crate::store::tracking::{source_budgets, source_pages};

/// How long Postgres may take to count a request or the pages of a read.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// Set while a refresh reads a platform.
    static IS_REFRESH: ();
}

/// Runs a read whose requests come out of the share of refreshes.
pub async fn spend_on_refresh<T>(read: impl Future<Output = T>) -> T {
    IS_REFRESH.scope((), read).await
}

/// Whether the running read is a refresh.
pub(super) fn is_refresh() -> bool {
    IS_REFRESH.try_with(|()| ()).is_ok()
}

/// Counts requests by source and UTC day.
#[derive(Debug, Clone)]
pub enum RequestBudget {
    InMemory(Arc<Mutex<BTreeMap<(&'static str, NaiveDate), u32>>>),
    Postgres(PgPool),
}

impl RequestBudget {
    /// Creates a budget of this process alone.
    pub fn in_memory() -> Self {
        RequestBudget::InMemory(Arc::default())
    }

    /// Takes one request from a source's day, for a refresh also from the share of refreshes, and returns whether one was
    /// left. Fails with [`SourceError::BudgetUnavailable`] if the request cannot be counted.
    pub(super) async fn try_spend(
        &self,
        source: &'static str,
        day: NaiveDate,
        limit: u32,
    ) -> Result<bool, SourceError> {
        match self {
            RequestBudget::InMemory(counts) => {
                let mut counts = counts.lock();
                let spent = counts.entry((source, day)).or_default();
                let has_left = *spent < limit;
                *spent += u32::from(has_left);
                Ok(has_left)
            }
            RequestBudget::Postgres(pg) => {
                let spend = async {
                    if is_refresh() {
                        source_budgets::try_spend_on_refresh(pg, source, day, limit).await
                    } else {
                        source_budgets::try_spend(pg, source, day, limit).await
                    }
                };
                match tokio::time::timeout(COUNT_TIMEOUT, spend).await {
                    Ok(Ok(has_left)) => Ok(has_left),
                    Ok(Err(error)) => Err(SourceError::BudgetUnavailable(error.to_string())),
                    Err(_) => {
                        Err(SourceError::BudgetUnavailable("postgres does not answer in time".to_owned()))
                    }
                }
            }
        }
    }

    /// Counts the pages of a read. Pages that cannot be counted are missing from an estimate only.
    pub(super) async fn record_pages(
        &self,
        platform: Platform,
        source: &'static str,
        day: NaiveDate,
        counts: PageCounts,
    ) {
        let RequestBudget::Postgres(pg) = self else { return };
        let record = source_pages::record(pg, platform, source, day, counts);
        match tokio::time::timeout(COUNT_TIMEOUT, record).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, source, "cannot count pages"),
            Err(_) => tracing::debug!(source, "cannot count pages in time"),
        }
    }
}
