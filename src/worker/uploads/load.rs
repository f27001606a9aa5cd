//! Loads one file, with what its upload said about it.

use std::sync::Arc;

use crate::app::{Databases, UploadFolder};
use crate::import::{
    self, Error, ImportOptions, ImportSummary, Monitor, Refusal, RejectionFile, SourceFile, UNPACKED_RATIO,
};
use crate::model::upload::{FileFindings, ImportRefusal, ImportResult};
use crate::store::records::uploads::queue::ClaimedUpload;

/// The name of a file that was sent without one.
const UNNAMED: &str = "the file";

const NOT_PROCESSED: &str = "the service could not process the file: upload it again";

/// Loads the file of an upload.
pub(super) async fn load(
    databases: &Databases,
    folder: &UploadFolder,
    upload: &ClaimedUpload,
    monitor: Arc<Monitor>,
) -> ImportResult {
    let name = upload.filename.clone().unwrap_or_else(|| UNNAMED.to_owned());
    let path = folder.file(upload.id);
    let file = SourceFile { path: path.clone(), name: name.clone(), modified_at: Some(upload.received_at) };
    let options = options(folder, upload);
    let loaded =
        import::load_files(databases, upload.organization_id, vec![file], &options, monitor.clone()).await;
    match loaded {
        Ok(summary) => result(summary),
        Err(error) => {
            let sentence = describe(&error, upload).replace(&path.display().to_string(), &name);
            ImportResult { error: Some(sentence), ..unfinished(&monitor) }
        }
    }
}

fn options(folder: &UploadFolder, upload: &ClaimedUpload) -> ImportOptions {
    let given = &upload.options;
    ImportOptions {
        track: given.track,
        dry_run: given.dry_run,
        platform: given.platform,
        username: given.username.clone(),
        observed_at: given.observed_at,
        time_zone: given.time_zone.as_deref().and_then(|name| name.parse().ok()),
        day_first: given.day_first,
        enforces_account_cap: true,
        max_unpacked_bytes: UNPACKED_RATIO.saturating_mul(folder.limits().max_bytes),
        report: RejectionFile::None,
        ..ImportOptions::default()
    }
}

/// The result of an import that did not end by itself.
pub(super) fn unfinished(monitor: &Monitor) -> ImportResult {
    let progress = monitor.progress();
    ImportResult {
        rows_read: progress.rows_read,
        snapshots_written: progress.snapshots_written,
        refused: progress.rows_refused,
        ..ImportResult::default()
    }
}

/// The result of an import that panicked.
pub(super) fn panicked(monitor: &Monitor) -> ImportResult {
    ImportResult { error: Some(NOT_PROCESSED.to_owned()), ..unfinished(monitor) }
}

/// The result of the one file of an import.
fn result(summary: ImportSummary) -> ImportResult {
    let report = summary.files.into_iter().next().unwrap_or_default();
    let refusal = |Refusal { line, reason }| ImportRefusal { line, reason };
    let findings = FileFindings {
        format: report.format,
        assumed: report.assumed,
        refusals: report.refusals.into_iter().map(refusal).collect(),
        sample: report.sample,
    };
    ImportResult {
        rows_read: summary.rows_read,
        accounts: summary.accounts,
        videos: summary.videos,
        snapshots_written: if summary.dry_run { report.snapshots } else { summary.snapshots_written },
        refused: summary.refused,
        findings,
        error: report.error,
    }
}

/// Describes an error to a client, which learns nothing about the stores.
fn describe(error: &Error, upload: &ClaimedUpload) -> String {
    let sentence = match error {
        Error::Store(_) => "a database was unavailable: upload it again",
        Error::TemporaryFile(_) | Error::File(..) | Error::Interrupted => NOT_PROCESSED,
        error => return error.to_string(),
    };
    tracing::warn!(import = %upload.id, organization = %upload.organization_id, %error, "an import failed");
    sentence.to_owned()
}
