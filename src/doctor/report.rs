//! The findings of `tidemark doctor`, and the timeout of its checks.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::store::migrate::supported_releases::{SupportedReleases, UnsupportedRelease};

/// How long a check waits for a store or a collector.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The processes compare timestamps of different clocks.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, but should be changed.
    Warn,
    /// It does not work.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub status: Status,
    pub check: &'static str,
    /// The state, and after a dash what to do. Contains no secret.
    pub message: String,
}

#[derive(Debug, Default)]
pub(super) struct Report(pub(super) Vec<Finding>);

impl Report {
    pub(super) fn add(&mut self, status: Status, check: &'static str, message: impl Into<String>) {
        self.0.push(Finding { status, check, message: message.into() });
    }

    pub(super) fn ok(&mut self, check: &'static str, state: impl Into<String>) {
        self.add(Status::Ok, check, state);
    }

    pub(super) fn warn(&mut self, check: &'static str, state: impl AsRef<str>, action: impl AsRef<str>) {
        self.add(Status::Warn, check, format!("{} — {}", state.as_ref(), action.as_ref()));
    }

    pub(super) fn fail(&mut self, check: &'static str, state: impl AsRef<str>, action: impl AsRef<str>) {
        self.add(Status::Fail, check, format!("{} — {}", state.as_ref(), action.as_ref()));
    }

    /// Reports that a server responds, or that its release is not supported.
    pub(super) fn check_release(
        &mut self,
        check: &'static str,
        supported: SupportedReleases,
        version: &str,
        address: &str,
    ) {
        let (status, message) = match supported.check(version) {
            Ok(()) => (Status::Ok, format!("{} {version} responds at {address}", supported.product)),
            Err(error @ UnsupportedRelease::TooOld { .. }) => (Status::Fail, format!("{address}: {error}")),
            Err(error @ UnsupportedRelease::Untested { .. }) => (Status::Warn, format!("{address}: {error}")),
        };
        self.add(status, check, message);
    }

    /// Compares the clock of a store with this machine's.
    pub(super) fn compare_clock(&mut self, check: &'static str, store: &str, store_time: DateTime<Utc>) {
        let skew = (store_time - Utc::now()).abs();
        let state = format!(
            "{store}'s clock differs from this machine's by {:.1} s",
            skew.num_milliseconds() as f64 / 1000.0
        );
        if skew < MAX_CLOCK_SKEW {
            self.ok(check, state);
        } else {
            self.warn(check, state, "synchronize both by NTP");
        }
    }
}

/// Awaits a response; `Err(None)` is a timeout.
pub(super) async fn with_timeout<T, E>(response: impl Future<Output = Result<T, E>>) -> Result<T, Option<E>> {
    match tokio::time::timeout(TIMEOUT, response).await {
        Ok(response) => response.map_err(Some),
        Err(_) => Err(None),
    }
}

pub(super) fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
