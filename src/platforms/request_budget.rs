//! The book in which a source with a daily budget writes its requests down: shared by all processes and kept over
//! their ends, or, where there is no database, one process's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::NaiveDate;
use sqlx::PgPool;

use super::source::SourceError;
use crate::store::tracking::source_budgets;

/// How long Postgres may take to write one down.
const SPEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Where requests are written down.
#[derive(Debug, Clone)]
pub enum RequestBudget {
    InMemory(Arc<Mutex<BTreeMap<(&'static str, NaiveDate), u32>>>),
    Postgres(PgPool),
}

impl RequestBudget {
    /// A book of this process alone.
    pub fn in_memory() -> Self {
        RequestBudget::InMemory(Arc::default())
    }

    /// Takes one request from a source's day, if there is one left. A book that cannot be written in is nobody's fault
    /// but ours: [`Refusal::Uncounted`].
    pub(super) async fn try_spend(
        &self,
        source: &'static str,
        day: NaiveDate,
        limit: u32,
    ) -> Result<bool, SourceError> {
        match self {
            RequestBudget::InMemory(book) => {
                let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                let spent = book.entry((source, day)).or_default();
                let left = *spent < limit;
                *spent += u32::from(left);
                Ok(left)
            }
            RequestBudget::Postgres(pg) => {
                let spent =
                    tokio::time::timeout(SPEND_TIMEOUT, source_budgets::try_spend(pg, source, day, limit))
                        .await;
                match spent {
                    Ok(Ok(left)) => Ok(left),
                    Ok(Err(error)) => Err(SourceError::BudgetUnavailable(error.to_string())),
                    Err(_) => {
                        Err(SourceError::BudgetUnavailable("postgres does not answer in time".to_owned()))
                    }
                }
            }
        }
    }
}
