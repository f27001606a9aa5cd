//! Imports over HTTP: an uploaded file, how to read it, and what became of it.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::platform::Platform;

/// What a file lacks, and what to do with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UploadOptions {
    pub platform: Option<Platform>,
    pub username: Option<String>,
    pub observed_at: Option<DateTime<Utc>>,
    /// IANA name.
    pub time_zone: Option<String>,
    pub day_first: bool,
    /// Whether new accounts are tracked.
    pub track: bool,
    pub dry_run: bool,
}

/// Where an import stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum ImportStatus {
    /// Waits for earlier imports.
    Queued,
    /// The file is being read, or its rows are being saved.
    Running,
    /// The file was read. Some of its rows may have been refused.
    Succeeded,
    /// `error` says why.
    Failed,
    /// Cancelled by a client. What had been saved remains.
    Cancelled,
}

impl ImportStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            ImportStatus::Queued => "queued",
            ImportStatus::Running => "running",
            ImportStatus::Succeeded => "succeeded",
            ImportStatus::Failed => "failed",
            ImportStatus::Cancelled => "cancelled",
        }
    }
}

/// A row that was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportRefusal {
    /// Line or row of the file, from 1.
    #[schemars(example = 17)]
    pub line: u64,
    /// What is wrong with it, with the column and the value.
    #[schemars(example = &"view_count is 1.2K: a rounded number is no counter")]
    pub reason: String,
}

/// What a file was found to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FileFindings {
    /// Format of the file, as `tidemark import --formats` lists them; null if it is not known.
    #[schemars(example = &"tiktok-studio-posts")]
    pub format: Option<String>,
    /// What the file does not say and was assumed, in sentences.
    #[schemars(example = ["times without a zone are UTC"])]
    pub assumed: Vec<String>,
    /// The first 100 refused rows.
    pub refusals: Vec<ImportRefusal>,
    /// Of a dry run, the first five rows as they would be stored; otherwise null.
    #[schemars(example = example_sample())]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub sample: Option<Vec<Value>>,
}

fn example_sample() -> Value {
    json!([{"platform": "tiktok", "username": "low.tide", "external_id": "7301234567890123789", "view_count": 1200}])
}

/// An import over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Import {
    /// Import id.
    pub id: Uuid,
    /// Always `import`.
    #[sqlx(skip)]
    pub r#type: ImportType,
    /// Where it stands.
    #[schemars(example = ImportStatus::Succeeded)]
    pub status: ImportStatus,
    /// Name of the file; null if none was sent.
    #[schemars(example = &"Content.csv")]
    pub filename: Option<String>,
    /// Whether the file is only read, and nothing is stored.
    #[schemars(example = false)]
    pub dry_run: bool,
    /// Number of rows that were read so far.
    #[schemars(example = 1_204)]
    pub rows_read: i64,
    /// Number of accounts with rows that were saved; of a dry run, that would be. Known at its end.
    #[schemars(example = 1)]
    pub accounts: i64,
    /// Number of videos with rows that were saved; of a dry run, that would be. Known at its end.
    #[schemars(example = 301)]
    pub videos: i64,
    /// Number of observations that were stored so far.
    #[schemars(example = 1_187)]
    pub snapshots_written: i64,
    /// Number of rows that were refused so far.
    #[schemars(example = 17)]
    pub refused: i64,
    #[serde(flatten)]
    #[sqlx(json)]
    pub findings: FileFindings,
    /// Why it failed; otherwise null.
    #[schemars(example = Option::<&str>::None)]
    pub error: Option<String>,
    /// Time at which the file was complete.
    pub created_at: DateTime<Utc>,
    /// Time at which it ended; null before.
    pub finished_at: Option<DateTime<Utc>>,
}

/// The constant `type` of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ImportType {
    #[default]
    Import,
}

/// How an import ended, with what it had done until then.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportResult {
    pub rows_read: u64,
    pub accounts: u64,
    pub videos: u64,
    pub snapshots_written: u64,
    pub refused: u64,
    pub findings: FileFindings,
    /// Why it failed.
    pub error: Option<String>,
}
