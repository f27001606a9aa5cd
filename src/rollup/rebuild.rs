//! Rebuilds the rollup: puts subjects into the outbox, a few at a time, and the relay rewrites all their days.
//!
//! Correct days are replaced by equal ones, so requests see no difference meanwhile. First removes history that an older
//! Postgres, which was restored, does not know.

use indicatif::ProgressBar;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, progress_bar, unknown_history, unless_deleted};
use crate::app::Databases;
use crate::store::clickhouse::{history_writer, rollup};
use crate::store::outbox::{self, visibility};
use crate::store::records::{organizations, subjects};
use crate::store::{Write, retry_on_conflict};

/// Subjects per unit of work; few, so that other changes are not delayed.
const BATCH_SUBJECTS: usize = 50;

/// The numbers of rebuilt organizations and subjects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RebuildSummary {
    pub organizations: u64,
    pub subjects: u64,
}

/// Rebuilds the rollup of organizations and waits until the relay has applied it. If interrupted, a part is rebuilt.
pub async fn rebuild(
    databases: &Databases,
    organizations: &[Uuid],
    progress: bool,
) -> Result<RebuildSummary, Error> {
    let mut summary = RebuildSummary::default();
    for &organization in organizations {
        let rebuilt = rebuild_organization(databases, organization, progress).await;
        if let Some(subjects) = unless_deleted(rebuilt)? {
            summary.organizations += 1;
            summary.subjects += subjects;
        }
    }
    Ok(summary)
}

/// Returns the number of subjects.
async fn rebuild_organization(
    databases: &Databases,
    organization: Uuid,
    progress: bool,
) -> Result<u64, Error> {
    let Databases { pg, clickhouse, .. } = databases;
    organizations::require(pg, organization).await?;
    let recorded = history_writer::last_delivery(clickhouse).await?;
    outbox::unknown_history::detect(pg, clickhouse, recorded).await?;
    rollup::advance_delivery_number(pg, clickhouse, organization).await?;
    let subjects = rollup::list_subjects(pg, clickhouse, organization).await?;
    let bar = progress_bar(progress, subjects.len());
    bar.set_message(organization.to_string());
    let has_unknown = outbox::unknown_history::is_recorded(pg, organization).await?;
    if has_unknown {
        unknown_history::remove(databases, organization, &subjects).await?;
    }
    rebuild_subjects(pg, organization, &subjects, &bar).await?;
    if has_unknown {
        outbox::unknown_history::clear(pg, organization).await?;
    }
    bar.finish_and_clear();
    Ok(subjects.len() as u64)
}

/// Rebuilds the rollup of subjects and waits until the relay has applied it.
pub(super) async fn rebuild_subjects(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
    bar: &ProgressBar,
) -> Result<(), Error> {
    for batch in subjects.chunks(BATCH_SUBJECTS) {
        let committed = retry_on_conflict(|| async {
            let (accounts, videos) = subjects::list_record_ids(pg, organization, batch).await?;
            let mut write = Write::begin(pg, organization).await?;
            write.record_rebuild(batch.to_vec(), accounts, videos);
            write.commit().await
        })
        .await?;
        if let Some(position) = committed.outbox_position {
            visibility::wait_for_position(pg, organization, position).await?;
        }
        bar.inc(batch.len() as u64);
    }
    Ok(())
}
