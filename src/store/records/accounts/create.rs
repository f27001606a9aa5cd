//! Creates accounts: one, or many in one unit of work.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use super::change::{AccountChange, lock_creators};
use super::{already_tracked, find_tracked};
use crate::model::account::Metadata;
use crate::model::identifier::Username;
use crate::model::limits::DEFAULT_SCRAPE_INTERVAL_HOURS;
use crate::model::platform::Platform;
use crate::store::records::result_of_one;
use crate::store::tracking::targets;
use crate::store::{Error, Write};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    pub platform: Platform,
    pub username: Username,
    pub change: AccountChange,
}

/// Starts tracking an account; it is due at `now`.
pub async fn create(write: &mut Write, new: &NewAccount, now: DateTime<Utc>) -> Result<Uuid, Error> {
    result_of_one(create_all(write, &[new], now).await?)
}

/// Starts tracking accounts, due at `now`, as if each were created after those before it, and returns the result of each.
/// The organization stays locked until the commit, so that concurrent requests cannot exceed its cap.
pub async fn create_all(
    write: &mut Write,
    new: &[&NewAccount],
    now: DateTime<Utc>,
) -> Result<Vec<Result<Uuid, Error>>, Error> {
    let creators: BTreeSet<_> =
        new.iter().filter_map(|account| account.change.creator_id.flatten()).collect();
    let creators = lock_creators(write, &creators).await?;
    let mut quota = Quota::lock(write).await?;
    let names: Vec<_> = new.iter().map(|account| (account.platform, account.username.as_str())).collect();
    let mut tracked = find_tracked(write, &names).await?;
    let mut rows = Vec::new();
    let mut results = Vec::with_capacity(new.len());
    for account in new {
        let name = (account.platform, account.username.as_str().to_owned());
        let creator = account.change.creator_id.flatten();
        results.push(if creator.is_some_and(|creator| !creators.contains(&creator)) {
            Err(Error::NotFound("creator"))
        } else if let Some(id) = tracked.get(&name) {
            Err(already_tracked(*id, account.platform, &account.username))
        } else {
            quota.take().map(|()| {
                let row = NewRow::new(account);
                let id = row.id;
                rows.push(row);
                tracked.insert(name, id);
                id
            })
        });
    }
    insert(write, rows, now).await?;
    Ok(results)
}

/// How many accounts the organization may have, and has.
struct Quota {
    cap: Option<i32>,
    accounts: i64,
}

impl Quota {
    async fn lock(write: &mut Write) -> Result<Self, Error> {
        // Weaker than `for update`, which would also block inserts that refer to the organization.
        let cap: Option<i32> =
            sqlx::query_scalar("select account_cap from organizations where id = $1 for no key update")
                .bind(write.organization())
                .fetch_optional(write.connection())
                .await?
                .ok_or(Error::NotFound("organization"))?;
        let mut accounts = 0;
        if cap.is_some() {
            accounts = sqlx::query_scalar("select count(*) from accounts where organization_id = $1")
                .bind(write.organization())
                .fetch_one(write.connection())
                .await?;
        }
        Ok(Quota { cap, accounts })
    }

    fn take(&mut self) -> Result<(), Error> {
        match self.cap {
            Some(cap) if self.accounts >= i64::from(cap) => Err(Error::QuotaExceeded(format!(
                "the organization has reached its cap of {cap} tracked accounts: delete an account or have the cap raised"
            ))),
            _ => {
                self.accounts += 1;
                Ok(())
            }
        }
    }
}

/// The columns of a new account that do not follow from others.
#[derive(Serialize)]
struct NewRow<'a> {
    id: Uuid,
    platform: Platform,
    username: &'a str,
    is_active: bool,
    creator_id: Option<Uuid>,
    category: Option<&'a str>,
    metadata: Option<&'a Metadata>,
    scrape_interval_hours: i32,
    max_recent_posts: Option<i32>,
    post_lookback_days: Option<i32>,
}

impl<'a> NewRow<'a> {
    fn new(NewAccount { platform, username, change }: &'a NewAccount) -> Self {
        NewRow {
            id: Uuid::now_v7(),
            platform: *platform,
            username: username.as_str(),
            is_active: change.is_active.unwrap_or(true),
            creator_id: change.creator_id.flatten(),
            category: change.category.as_ref().and_then(Option::as_deref),
            metadata: change.metadata.as_ref(),
            scrape_interval_hours: change.scrape_interval_hours.unwrap_or(DEFAULT_SCRAPE_INTERVAL_HOURS),
            max_recent_posts: change.max_recent_posts_per_account.flatten(),
            post_lookback_days: change.post_lookback_days.flatten(),
        }
    }
}

/// In one order for all units of work, so that two that insert the same names do not deadlock.
const INSERT: &str = "insert into accounts
        (id, organization_id, platform, username, is_active, creator_id, linked_at, category, metadata, added_at, updated_at,
         scrape_interval_hours, max_recent_posts, post_lookback_days)
     select id, $1, platform, username, is_active, creator_id, case when creator_id is not null then $3 end, category,
        coalesce(metadata, '{}'), $3, $3, scrape_interval_hours, max_recent_posts, post_lookback_days
     from jsonb_to_recordset($2) as x(
        id uuid, platform text, username text, is_active boolean, creator_id uuid, category text, metadata jsonb,
        scrape_interval_hours integer, max_recent_posts integer, post_lookback_days integer)
     order by platform, username
     on conflict (organization_id, platform, username) where holds_username do nothing";

async fn insert(write: &mut Write, rows: Vec<NewRow<'_>>, now: DateTime<Utc>) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let inserted = sqlx::query(INSERT)
        .bind(write.organization())
        .bind(Json(&rows))
        .bind(Utc::now())
        .execute(write.connection())
        .await?;
    // An import or a rename has taken a name since it was looked up. The retry finds it.
    if inserted.rows_affected() < rows.len() as u64 {
        return Err(Error::WriteConflict);
    }
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    targets::add_accounts(write, &ids, now).await?;
    for id in ids {
        write.record_account_change(id);
    }
    Ok(())
}
