//! Counts what happens to pictures.

use opentelemetry::KeyValue;

use super::{labels, metrics};

/// The result of copying a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureOutcome {
    /// Fetched, and a copy was made.
    Copied,
    /// Another record has the copy.
    Shared,
    /// Its URL expired, or it was deleted.
    Gone,
    /// No complete response.
    Failed,
    /// Its URL is not one of the platform's pictures.
    OtherHost,
    TooLarge,
    /// It is no picture, or a broken one.
    Undecodable,
    /// The folder could not be written.
    NotStored,
    /// Too many waited to be compared with the stored ones.
    Dropped,
    /// Deleted to make room.
    Evicted,
    /// The file of a copy was missing.
    Lost,
}

impl PictureOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            PictureOutcome::Copied => "copied",
            PictureOutcome::Shared => "shared",
            PictureOutcome::Gone => "gone",
            PictureOutcome::Failed => "failed",
            PictureOutcome::OtherHost => "other_host",
            PictureOutcome::TooLarge => "too_large",
            PictureOutcome::Undecodable => "undecodable",
            PictureOutcome::NotStored => "not_stored",
            PictureOutcome::Dropped => "dropped",
            PictureOutcome::Evicted => "evicted",
            PictureOutcome::Lost => "lost",
        }
    }
}

/// Counts pictures with an outcome.
pub fn count(outcome: PictureOutcome, pictures: u64) {
    if let Some(metrics) = metrics::instruments() {
        metrics.pictures.add(pictures, &[KeyValue::new(labels::OUTCOME, outcome.as_str())]);
    }
}

/// Records that responses show a picture that became due so many seconds ago.
pub fn record_visible(seconds: f64) {
    if let Some(metrics) = metrics::instruments() {
        metrics.picture_delay.record(seconds, &[]);
    }
}
