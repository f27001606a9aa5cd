//! Whether each platform has a source with credentials and, on request, whether they are accepted.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::report::{Report, Status, with_timeout};
use crate::model::platform::Platform;
use crate::platforms::source::{AccountKey, Depth, SourceError};
use crate::platforms::{RequestBudget, SourceArgs, Sources};
use crate::store::tracking::queues;

pub(super) async fn check(
    report: &mut Report,
    args: &SourceArgs,
    pg: Option<&PgPool>,
    now: Option<DateTime<Utc>>,
    ask: bool,
) {
    let budget = pg.map_or_else(RequestBudget::in_memory, |pg| RequestBudget::Postgres(pg.clone()));
    let sources = match Sources::from_args(args, &budget) {
        Ok(sources) => sources,
        Err(error) => return report.add(Status::Fail, "sources", error.to_string()),
    };
    let target_counts = match pg {
        Some(pg) => with_timeout(queues::count_targets(pg)).await.unwrap_or_default(),
        None => Vec::new(),
    };
    for platform in Platform::ALL {
        let check = platform.as_str();
        let names = sources.names(platform);
        if names.is_empty() {
            let targets = target_counts.iter().find(|(counted, _)| *counted == platform);
            let action = "set those of an official API, or TIDEMARK_HTTP_SOURCE_URL";
            match targets {
                Some((_, targets @ 1..)) => {
                    let state = format!("{targets} targets are tracked and no source has credentials");
                    report.fail(check, state, action);
                }
                _ => report.warn(check, "no source has credentials", action),
            }
            continue;
        }
        if !ask {
            report.ok(check, format!("{} configured, not requested (--ask)", names.join(", ")));
            continue;
        }
        let now = now.unwrap_or_else(Utc::now);
        for name in &names {
            let result = probe(&sources, platform, name, &names, now).await;
            add_result(report, check, name, result);
        }
    }
}

/// Requests an account from one source. It need not exist.
async fn probe(
    sources: &Sources,
    platform: Platform,
    name: &str,
    names: &[&'static str],
    now: DateTime<Utc>,
) -> Result<(), SourceError> {
    let others: Vec<_> = names.iter().copied().filter(|other| *other != name).collect();
    let account = AccountKey { username: platform.as_str().to_owned(), platform_id: None };
    let depth = Depth { max_posts: 1, not_before: now.date_naive() };
    sources.fetch_account(platform, &account, depth, now, &others).await.result.map(drop)
}

fn add_result(report: &mut Report, check: &'static str, name: &str, result: Result<(), SourceError>) {
    let (state, action) = match result {
        Ok(()) | Err(SourceError::NotFound(_) | SourceError::Unsupported | SourceError::RefreshShareUsed) => {
            return report.ok(check, format!("{name} accepts the credentials"));
        }
        Err(SourceError::RateLimited { until }) => {
            let action = format!("scrapes continue at {until}");
            return report.warn(check, format!("{name} is rate limited"), action);
        }
        Err(SourceError::Credentials(reason)) => {
            (format!("{name} rejects the credentials ({reason})"), "replace them")
        }
        Err(SourceError::Transient(reason)) => {
            (format!("{name} fails ({reason})"), "check the network between this machine and it")
        }
        Err(SourceError::BudgetUnavailable(reason)) => {
            (format!("{name} was not requested, the request cannot be counted ({reason})"), "check Postgres")
        }
        Err(SourceError::Malformed(reason)) => {
            (format!("{name} responds in an undocumented format ({reason})"), "correct its URL")
        }
    };
    report.fail(check, state, action);
}
