//! Estimates how many requests per day the tracked accounts and videos need from each source.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::model::cost::{self, Paging};
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::platforms::source::SourceInfo;
use crate::store::Error;
use crate::store::tracking::{queues, source_budgets, source_pages};

/// Pages of so many days price a source.
const PAGES_DAYS: u64 = 7;

/// The requests to one source of a platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetEstimate {
    pub platform: Platform,
    pub source: &'static str,
    /// Platform accounts and videos, each counted once for all organizations.
    pub accounts: usize,
    pub videos: usize,
    /// Estimated from the known posts.
    pub requests_per_day: f64,
    /// Null without a daily limit.
    pub daily_limit: Option<u32>,
    /// Null without a daily limit, because requests are counted only with one.
    pub requests_today: Option<i64>,
}

pub async fn estimate(
    pg: &PgPool,
    sources: &Sources,
    now: DateTime<Utc>,
) -> Result<Vec<BudgetEstimate>, Error> {
    let mut budgets = BTreeMap::new();
    for platform in Platform::ALL {
        if let Some(source) = sources.account_source(platform) {
            let loads = queues::fetch_scrape_loads(pg, platform, now).await?;
            let paging = fetch_paging(pg, source, now).await?;
            let budget = entry(&mut budgets, platform, source);
            budget.accounts = loads.len();
            budget.requests_per_day +=
                loads.into_iter().map(|load| cost::daily_requests(paging, load)).sum::<f64>();
        }
        if let Some(source) = sources.post_source(platform) {
            let intervals = queues::fetch_video_intervals(pg, platform).await?;
            let budget = entry(&mut budgets, platform, source);
            budget.videos = intervals.len();
            budget.requests_per_day +=
                intervals.into_iter().map(|hours| 24.0 / f64::from(hours)).sum::<f64>();
        }
    }
    for budget in budgets.values_mut() {
        budget.requests_per_day = (budget.requests_per_day * 10.0).round() / 10.0;
        if budget.daily_limit.is_some() {
            budget.requests_today =
                Some(source_budgets::count_requests(pg, budget.source, now.date_naive()).await?);
        }
    }
    Ok(budgets.into_values().collect())
}

/// Returns how a source pages, by the pages that it delivered of late if its page size is unknown.
async fn fetch_paging(pg: &PgPool, source: SourceInfo, now: DateTime<Utc>) -> Result<Paging, Error> {
    let Paging::Delivered { assumed_size, .. } = source.paging else { return Ok(source.paging) };
    let since = now.date_naive() - Days::new(PAGES_DAYS);
    let counts = source_pages::fetch(pg, source.platform, source.name, since).await?;
    Ok(Paging::Delivered { assumed_size, counts })
}

fn entry<'a>(
    budgets: &'a mut BTreeMap<(Platform, &'static str), BudgetEstimate>,
    platform: Platform,
    source: SourceInfo,
) -> &'a mut BudgetEstimate {
    budgets.entry((platform, source.name)).or_insert_with(|| BudgetEstimate {
        platform,
        source: source.name,
        accounts: 0,
        videos: 0,
        requests_per_day: 0.0,
        daily_limit: source.daily_limit,
        requests_today: None,
    })
}
