//! Commands for operators: `rebuild` recomputes the rollup through the relay while the API serves requests, `verify`
//! compares it with an independent computation, `repair` resets times that a wrong clock wrote.

mod compare;
mod expected;
pub mod rebuild;
pub mod repair;
mod unknown_history;
pub mod verify;
mod video_ages;
mod video_days;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use uuid::Uuid;

use crate::app::Databases;
use crate::store;
use crate::store::outbox::visibility;

/// How long the relay may take to apply committed changes.
const RELAY_TIMEOUT: Duration = Duration::from_secs(120);

/// Why the rollup cannot be verified or rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "commits are not in clickhouse after {0} seconds: check that `tidemark track` is running, and its log"
    )]
    RelayTimeout(u64),
    #[error("{0}")]
    Store(#[from] store::Error),
}

/// A progress bar of subjects on standard error, or a hidden one.
fn progress_bar(is_shown: bool, subjects: usize) -> ProgressBar {
    if !is_shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(subjects as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} subjects {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Waits until all committed changes of the organization are in ClickHouse.
async fn wait_for_relay(databases: &Databases, organization: Uuid) -> Result<(), Error> {
    let applied = visibility::wait_for_history(&databases.pg, organization);
    match tokio::time::timeout(RELAY_TIMEOUT, applied).await {
        Ok(applied) => Ok(applied?),
        Err(_) => Err(Error::RelayTimeout(RELAY_TIMEOUT.as_secs())),
    }
}

/// Returns `None` if the organization was deleted meanwhile: a command goes on with the others.
fn unless_deleted<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(Error::Store(store::Error::NotFound("organization"))) => Ok(None),
        result => result.map(Some),
    }
}
