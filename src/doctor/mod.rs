//! `tidemark doctor`: checks the configuration and all dependencies, without changing anything.

mod clickhouse;
mod configuration;
mod media;
mod postgres;
mod processes;
mod report;
mod search;
mod sources;
mod telemetry;

use std::collections::BTreeSet;

use configuration::Configuration;
use report::Report;

pub use report::{Finding, Status};

/// Runs all checks. `known_variables` are those that a command reads. With `ask`, one request is sent to each source.
pub async fn run_checks(known_variables: &BTreeSet<String>, ask: bool) -> Vec<Finding> {
    let mut report = Report::default();
    let configuration = Configuration::read(&mut report, known_variables);
    let pg = match &configuration.postgres {
        Some(args) => postgres::check(&mut report, args).await,
        None => None,
    };
    let clickhouse = match &configuration.clickhouse {
        Some(args) => clickhouse::check(&mut report, args).await,
        None => None,
    };
    let now = configuration.service_time(&mut report).await;
    if let Some(pg) = &pg {
        processes::check(&mut report, pg, clickhouse.as_ref(), now).await;
    }
    if let Some(folder) = &configuration.search_index {
        search::check(&mut report, folder, pg.as_ref()).await;
    }
    if let Some(args) = &configuration.pictures {
        media::check(&mut report, args, pg.as_ref()).await;
    }
    if let Some(args) = &configuration.sources {
        sources::check(&mut report, args, pg.as_ref(), now, ask).await;
    }
    telemetry::check(&mut report, configuration.metrics_listen).await;
    report.0
}
