//! What an import found in one file.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Refused rows that a report names; the report file has all.
const MAX_REFUSALS: usize = 100;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileReport {
    pub file: String,
    /// The recognized format; of an archive those of its tables.
    pub format: Option<String>,
    /// What the file does not say, in sentences.
    pub assumed: Vec<String>,
    pub rows_read: u64,
    pub accounts: u64,
    pub videos: u64,
    /// Observations with counters.
    pub snapshots: u64,
    /// Refused rows.
    pub refused: u64,
    /// The first of them.
    pub refusals: Vec<Refusal>,
    pub first_observed_at: Option<DateTime<Utc>>,
    pub last_observed_at: Option<DateTime<Utc>>,
    /// The first rows as they would be stored; only of dry runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Vec<Value>>,
    /// Why the whole file is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub line: u64,
    pub reason: String,
}

impl FileReport {
    pub(super) fn refuse(&mut self, line: u64, reason: &str) {
        self.refused += 1;
        if self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(Refusal { line, reason: reason.to_owned() });
        }
    }
}
