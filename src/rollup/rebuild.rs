//! Rebuilding: some subjects at a time are put into the outbox, and the relay, which alone writes the rollup, writes every
//! day of them anew. What is right is replaced by the same, so no request sees anything else meanwhile.

use serde::Serialize;
use uuid::Uuid;

use super::{Error, progress_bar};
use crate::app::Databases;
use crate::store::clickhouse::rollup;
use crate::store::outbox::visibility;
use crate::store::records::organizations;
use crate::store::{Write, retry_on_conflict};

/// Subjects of one unit of work: few enough that others' changes do not wait behind them.
const SUBJECTS: usize = 50;

/// What a rebuild did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub organizations: u64,
    pub subjects: u64,
}

/// Rebuilds the rollup of organizations and returns when it is what requests see. Interrupting it leaves a rollup that is
/// rebuilt in part.
pub async fn rebuild(stores: &Databases, organizations: &[Uuid], progress: bool) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    for &organization in organizations {
        organizations::require(&stores.pg, organization).await?;
        rollup::outrank_stored_versions(&stores.pg, &stores.clickhouse, organization).await?;
        let subjects = rollup::list_subjects(&stores.pg, &stores.clickhouse, organization).await?;
        let bar = progress_bar(progress, subjects.len());
        bar.set_message(organization.to_string());
        for some in subjects.chunks(SUBJECTS) {
            let committed = retry_on_conflict(|| async {
                let (accounts, videos) = rollup::list_record_ids(&stores.pg, organization, some).await?;
                let mut write = Write::begin(&stores.pg, organization).await?;
                write.record_rebuild(some.to_vec(), accounts, videos);
                write.commit().await
            })
            .await?;
            if let Some(position) = committed.outbox_position {
                visibility::wait_for_position(&stores.pg, organization, position).await?;
            }
            bar.inc(some.len() as u64);
        }
        bar.finish_and_clear();
        summary.organizations += 1;
        summary.subjects += subjects.len() as u64;
    }
    Ok(summary)
}
