//! The rollup in an operator's hands: `rebuild` has the relay write it anew from the facts while everything is served,
//! `verify` adds the facts up a second time, in plain loops, and says every difference.

mod compare;
mod expected;
pub mod rebuild;
pub mod verify;

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

use crate::store;

/// Why the rollup could not be looked at or rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "what was committed is not in clickhouse after {0} seconds: is `tidemark track` running, and what does its log say?"
    )]
    NotApplied(u64),
    #[error("{0}")]
    Store(#[from] store::Error),
}

/// A bar on a terminal's standard error, over so many subjects.
fn progress_bar(shown: bool, subjects: usize) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(subjects as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} subjects {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
