//! The sources of the platforms: whether each platform has one with credentials and, where that is asked for, whether they
//! are accepted.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::{Report, within};
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
        Err(error) => return report.fail("sources", error.to_string()),
    };
    let tracked = match pg {
        Some(pg) => within(queues::count_targets(pg)).await.and_then(Result::ok).unwrap_or_default(),
        None => Vec::new(),
    };
    for platform in Platform::ALL {
        let check = platform.as_str();
        let names = sources.names(platform);
        let targets = tracked.iter().find(|(of, _)| *of == platform).map_or(0, |(_, targets)| *targets);
        if names.is_empty() {
            let sentence =
                "no source has credentials: set those of an official API, or TIDEMARK_HTTP_SOURCE_URL";
            if targets > 0 {
                report.fail(check, format!("{targets} accounts and videos are tracked and {sentence}"));
            } else {
                report.warn(check, sentence);
            }
            continue;
        }
        if !ask {
            report.ok(check, format!("{} have what they need; --ask tries them", names.join(", ")));
            continue;
        }
        let now = now.unwrap_or_else(Utc::now);
        for name in &names {
            let said = asked(&sources, platform, name, &names, now).await;
            told(report, check, name, said);
        }
    }
}

/// Asks one source for the platform's own account, whether it has that or not.
async fn asked(
    sources: &Sources,
    platform: Platform,
    name: &str,
    names: &[&'static str],
    now: DateTime<Utc>,
) -> Result<(), SourceError> {
    let others: Vec<_> = names.iter().copied().filter(|other| *other != name).collect();
    let account = AccountKey { username: platform.as_str().to_owned(), platform_id: None };
    let depth = Depth { max_posts: 1, not_before: now.date_naive() };
    // Its own bound is the time that a request to a source may take.
    sources.fetch_account(platform, &account, depth, now, &others).await.result.map(drop)
}

fn told(report: &mut Report, check: &'static str, name: &str, said: Result<(), SourceError>) {
    match said {
        Ok(()) | Err(SourceError::NotFound(_) | SourceError::Unsupported) => {
            report.ok(check, format!("{name} answers, and accepts the credentials"));
        }
        Err(SourceError::RateLimited { until }) => {
            report.warn(check, format!("{name} is at its limit until {until}: what is due waits until then"));
        }
        Err(SourceError::Credentials(reason)) => {
            report.fail(check, format!("{name} refuses the credentials: mend them ({reason})"));
        }
        Err(SourceError::Transient(reason)) => report.fail(
            check,
            format!("{name} does not answer as it should: see that this machine reaches it ({reason})"),
        ),
        Err(SourceError::BudgetUnavailable(reason)) => report.fail(
            check,
            format!("{name} was not asked, as its requests cannot be counted in Postgres ({reason})"),
        ),
        Err(SourceError::Malformed(reason)) => report.fail(
            check,
            format!("{name} answers something else than it documents: correct its address ({reason})"),
        ),
    }
}
