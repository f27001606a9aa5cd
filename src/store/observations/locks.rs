//! Lock order: accounts before their videos, by id.
//!
//! Every unit of work that changes both follows it, so that a scrape of a video and the deletion of its account wait for
//! each other instead of deadlocking.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{ObservedVideo, VideoOrigin, record_keys};
use crate::store::{Error, Write};

const LOCK: &str =
    "select from accounts where organization_id = $1 and id = any($2) order by id for no key update";
const LOCK_NOWAIT: &str =
    "select from accounts where organization_id = $1 and id = any($2) order by id for no key update nowait";

/// Locks the account of a video. To be called before the video is locked.
pub(in crate::store) async fn lock_account_of_video(write: &mut Write, video: Uuid) -> Result<(), Error> {
    sqlx::query(
        "select from accounts where organization_id = $1
             and id = (select account_id from videos where organization_id = $1 and id = $2) for no key update",
    )
    .bind(write.organization())
    .bind(video)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Locks the accounts of observed videos: those on which they were found, and those that own individually tracked ones.
pub(super) async fn lock_accounts_of_observed(
    write: &mut Write,
    observed: &[ObservedVideo],
) -> Result<BTreeSet<Uuid>, Error> {
    let mut accounts = BTreeSet::new();
    for video in observed {
        if let VideoOrigin::Account(account) = video.origin {
            accounts.insert(account.id);
        }
    }
    let without_account = observed.iter().filter(|video| !matches!(video.origin, VideoOrigin::Account(_)));
    for (platform, (external_ids, shortcodes)) in record_keys(without_account) {
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
    lock(write, LOCK, accounts.iter().copied().collect()).await?;
    Ok(accounts)
}

/// Locks accounts that were found only after their videos were locked. A holder of such a lock may wait for these videos,
/// so this fails instead of waiting.
pub(super) async fn lock_accounts_nowait(write: &mut Write, accounts: BTreeSet<Uuid>) -> Result<(), Error> {
    if accounts.is_empty() {
        return Ok(());
    }
    lock(write, LOCK_NOWAIT, accounts.into_iter().collect()).await
}

async fn lock(write: &mut Write, statement: &'static str, accounts: Vec<Uuid>) -> Result<(), Error> {
    sqlx::query(statement).bind(write.organization()).bind(accounts).execute(write.connection()).await?;
    Ok(())
}
