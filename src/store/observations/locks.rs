//! Accounts are locked before their videos, and in the order of their ids, by everyone who changes both: a scrape of a
//! video and the deletion of its account wait for each other instead of one of them having to give way.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{FoundOn, ObservedVideo};
use crate::model::platform::Platform;
use crate::store::{Error, Write};

/// Locks the accounts on which these videos stand, before anything locks the videos.
pub(in crate::store) async fn lock_accounts_of(write: &mut Write, videos: &[Uuid]) -> Result<(), Error> {
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

/// Locks the accounts that a batch names, or on which the individually tracked videos that it means stand.
pub(super) async fn lock_accounts(
    write: &mut Write,
    observed: &[ObservedVideo],
) -> Result<BTreeSet<Uuid>, Error> {
    let mut accounts = BTreeSet::new();
    let mut alone: BTreeMap<Platform, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for video in observed {
        match video.found_on {
            FoundOn::Account(account) => _ = accounts.insert(account.id),
            FoundOn::Itself { .. } => {
                let (external_ids, shortcodes) = alone.entry(video.platform).or_default();
                external_ids.extend(video.external_id.as_deref());
                shortcodes.extend(video.shortcode.as_deref());
            }
        }
    }
    for (platform, (external_ids, shortcodes)) in alone {
        let standing: Vec<Uuid> = sqlx::query_scalar(
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
        accounts.extend(standing);
    }
    lock(write, accounts.iter().copied().collect()).await?;
    Ok(accounts)
}

/// Locks accounts that turned out to be concerned only after their videos were locked. Whoever holds one of them may
/// be waiting for these videos, so there is no waiting for him.
pub(super) async fn lock_at_once(write: &mut Write, accounts: BTreeSet<Uuid>) -> Result<(), Error> {
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
