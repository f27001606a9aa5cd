//! Fills the rollups of videos with history that a version without one delivered, before an upgrade or after a downgrade.

use chrono::NaiveDate;

use crate::app::Databases;
use crate::store::Error;
use crate::store::clickhouse::history_writer::dimensions::{self, ChangedRecords};
use crate::store::clickhouse::history_writer::{self, RecomputeMode, Subject};
use crate::store::outbox;
use crate::store::records::subjects;
use crate::worker::chunks::Chunks;
use crate::worker::timeout;

/// Few enough that deliveries, between which they are filled, hardly wait.
const MAX_FILLED_SUBJECTS: usize = 32;

/// The subjects to fill, in memory: a relay that is stopped leaves them to the next one.
pub(super) struct VideoFill(Option<Vec<Subject>>);

impl VideoFill {
    /// Finds the subjects to fill: all, unless every delivery computed the rollups.
    pub(super) async fn find(databases: &Databases) -> Result<Self, Error> {
        let client = &databases.clickhouse;
        if history_writer::are_video_rollups_complete(client).await? {
            return Ok(VideoFill(None));
        }
        let subjects = history_writer::list_video_subjects(client).await?;
        tracing::info!(
            subjects = subjects.len(),
            "filling the rollups of videos, rankings are incomplete meanwhile"
        );
        Ok(VideoFill(Some(subjects)))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.0.is_none()
    }

    /// Fills the next subjects. `last_delivery` is the version of their rows, so that later deliveries replace them. They have
    /// no rows of abandoned attempts: no insert is running when a relay starts.
    pub(super) async fn advance(&mut self, databases: &Databases, last_delivery: i64) -> Result<(), Error> {
        let Some(subjects) = &mut self.0 else { return Ok(()) };
        let next = subjects.split_off(subjects.len().saturating_sub(MAX_FILLED_SUBJECTS));
        write_videos(databases, &next, last_delivery).await?;
        let mut chunks = Chunks::new(&next, MAX_FILLED_SUBJECTS);
        while let Some(chunk) = chunks.pop() {
            let (since, mode) = (NaiveDate::default(), RecomputeMode::ChangedDays);
            let client = &databases.clickhouse;
            let filled = history_writer::recompute_videos(client, chunk, since, last_delivery, mode).await;
            chunks.retry_halved(chunk, filled)?;
        }
        if subjects.is_empty() {
            self.complete(databases).await?;
        }
        Ok(())
    }

    async fn complete(&mut self, Databases { pg, clickhouse, .. }: &Databases) -> Result<(), Error> {
        // First, so that no response of a partly filled rollup stays in a cache.
        timeout::short(outbox::invalidate_responses(pg, None)).await?;
        history_writer::record_complete_video_rollups(clickhouse).await?;
        tracing::info!("the rollups of videos are complete");
        self.0 = None;
        Ok(())
    }
}

/// Writes the videos of subjects, which may lack columns of this version.
async fn write_videos(
    Databases { pg, clickhouse, .. }: &Databases,
    subjects: &[Subject],
    delivery: i64,
) -> Result<(), Error> {
    let mut changed = ChangedRecords::default();
    for group in subjects.chunk_by(|one, next| one.0 == next.0) {
        let (organization, ids) = (group[0].0, group.iter().map(|subject| subject.1).collect::<Vec<_>>());
        let (_, videos) = timeout::long(subjects::list_record_ids(pg, organization, &ids)).await?;
        changed.videos.extend(videos.into_iter().map(|id| (organization, id)));
    }
    dimensions::write_changed(pg, clickhouse, &changed, delivery).await
}
