//! Lock order: accounts before their videos, by id.
//!
//! Every unit of work that changes both keeps it, so that a scrape of a video and the deletion of its account wait for
//! each other instead of deadlocking.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{ObservedVideo, VideoOrigin};
use crate::model::platform::Platform;
use crate::store::{Error, Write};

/// Locks the accounts of these videos, before anything locks the videos.
pub(in crate::store) async fn lock_accounts_of_videos(
    write: &mut Write,
    videos: &[Uuid],
) -> Result<(), Error> {
    let accounts = sqlx::query_scalar(
        "select distinct account_id from videos
         where organization_id = $1 and id = any($2) and account_id is not null",
    )
    .bind(write.organization())
    .bind(videos)
    .fetch_all(write.connection())
    .await?;
    lock(write, accounts).await
}

/// Locks the accounts of observed videos: those on which they were found, and those that own individually tracked ones.
pub(super) async fn lock_accounts(
    write: &mut Write,
    observed: &[ObservedVideo],
) -> Result<BTreeSet<Uuid>, Error> {
    let mut accounts = BTreeSet::new();
    let mut individual: BTreeMap<Platform, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for video in observed {
        match video.origin {
            VideoOrigin::Account(account) => _ = accounts.insert(account.id),
            VideoOrigin::Individual { .. } => {
                let (external_ids, shortcodes) = individual.entry(video.platform).or_default();
                external_ids.extend(video.external_id.as_deref());
                shortcodes.extend(video.shortcode.as_deref());
            }
        }
    }
    for (platform, (external_ids, shortcodes)) in individual {
        let owners: Vec<Uuid> = sqlx::query_scalar(
            "select distinct account_id from videos
             where organization_id = $1 and platform = $2 and (external_id = any($3) or shortcode = any($4))
               and account_id is not null",
        )
        .bind(write.organization())
        .bind(platform)
        .bind(external_ids)
        .bind(shortcodes)
        .fetch_all(write.connection())
        .await?;
        accounts.extend(owners);
    }
    lock(write, accounts.iter().copied().collect()).await?;
    Ok(accounts)
}

/// Locks accounts that were found only after their videos were locked. A holder of such a lock may wait for these videos,
/// so this fails instead of waiting.
pub(super) async fn lock_accounts_nowait(write: &mut Write, accounts: BTreeSet<Uuid>) -> Result<(), Error> {
    if accounts.is_empty() {
        return Ok(());
    }
    let accounts: Vec<_> = accounts.into_iter().collect();
    sqlx::query(
        "select from accounts where organization_id = $1 and id = any($2) order by id for no key update nowait",
    )
    .bind(write.organization())
    .bind(accounts)
    .execute(write.connection())
    .await?;
    Ok(())
}

async fn lock(write: &mut Write, accounts: Vec<Uuid>) -> Result<(), Error> {
    sqlx::query(
        "select from accounts where organization_id = $1 and id = any($2) order by id for no key update",
    )
    .bind(write.organization())
    .bind(accounts)
    .execute(write.connection())
    .await?;
    Ok(())
}
