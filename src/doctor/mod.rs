//! `tidemark doctor`: looks at the configuration and at everything that the service depends on, and says of each in one
//! sentence whether it is well and, if not, what to do. It changes nothing, and no sentence holds a secret.

mod clickhouse;
mod postgres;
mod search;
mod configuration;
mod sources;
mod telemetry;
mod processes;

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use configuration::Settings;

/// How long anything that is asked may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How far clocks may be apart: what a store stamps and what a process does are compared with each other.
const SKEW: TimeDelta = TimeDelta::seconds(2);

/// How something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, and is worth a look.
    Warn,
    /// It does not work.
    Fail,
}

/// What was found of one thing, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub status: Status,
    pub check: &'static str,
    pub message: String,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Report(Vec<Finding>);

impl Report {
    fn add(&mut self, status: Status, check: &'static str, message: impl Into<String>) {
        self.0.push(Finding { status, check, message: message.into() });
    }

    fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(Status::Ok, check, message);
    }

    fn warn(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(Status::Warn, check, message);
    }

    fn fail(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(Status::Fail, check, message);
    }

    /// Compares a store's clock with this machine's.
    fn clock(&mut self, check: &'static str, whose: &str, its: DateTime<Utc>) {
        let apart = (its - Utc::now()).abs();
        let seconds = apart.num_milliseconds() as f64 / 1000.0;
        if apart < SKEW {
            self.ok(check, format!("{whose}'s clock and this machine's are {seconds:.1} s apart"));
        } else {
            self.warn(
                check,
                format!(
                    "{whose}'s clock and this machine's are {seconds:.1} s apart: let NTP set both of them"
                ),
            );
        }
    }
}

/// Looks at everything. `known` are the variables that some command reads; with `ask`, each source of a platform is asked
/// something, which costs it a request.
pub async fn run_checks(known: &BTreeSet<String>, ask: bool) -> Vec<Finding> {
    let mut report = Report::default();
    let settings = Settings::read(&mut report, known);
    let pg = match &settings.postgres {
        Some(args) => postgres::check(&mut report, args).await,
        None => None,
    };
    let clickhouse = match &settings.clickhouse {
        Some(args) => clickhouse::check(&mut report, args).await,
        None => None,
    };
    let now = settings.now(&mut report).await;
    if let Some(pg) = &pg {
        processes::check(&mut report, pg, clickhouse.as_ref(), now).await;
    }
    if let Some(folder) = &settings.search {
        search::check(&mut report, folder, pg.as_ref()).await;
    }
    if let Some(args) = &settings.sources {
        sources::check(&mut report, args, pg.as_ref(), now, ask).await;
    }
    telemetry::check(&mut report, settings.metrics_listen).await;
    report.0
}

/// Waits for an answer no longer than anything may take.
async fn within<T, E>(work: impl Future<Output = Result<T, E>>) -> Option<Result<T, E>> {
    tokio::time::timeout(PATIENCE, work).await.ok()
}

/// Bytes as people read them.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
