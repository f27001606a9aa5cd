//! Which queued refreshes may be leased: those of platforms whose sources have requests left in the share of refreshes.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::store::Error;
use crate::store::tracking::refreshes;
use crate::store::tracking::source_budgets::{self, DailyUsage};

pub(super) struct RefreshBudget {
    /// Platforms with a queued refresh.
    queued: Vec<Platform>,
    usage: Vec<DailyUsage>,
}

impl RefreshBudget {
    /// Reads no budget unless a refresh is queued.
    pub(super) async fn fetch(pg: &PgPool, now: DateTime<Utc>) -> Result<Self, Error> {
        let queued = refreshes::fetch_queued_platforms(pg).await?;
        let usage = match queued[..] {
            [] => Vec::new(),
            _ => source_budgets::fetch_usage(pg, now.date_naive()).await?,
        };
        Ok(RefreshBudget { queued, usage })
    }

    pub(super) fn is_queued(&self, platform: Platform) -> bool {
        self.queued.contains(&platform)
    }

    pub(super) fn has_left(&self, sources: &Sources, platform: Platform, source: &str) -> bool {
        let limit = sources.daily_limits(platform).find(|(name, _)| *name == source).map(|(_, limit)| limit);
        limit.is_none_or(|limit| DailyUsage::refreshes_left(&self.usage, source, limit) > 0)
    }
}
