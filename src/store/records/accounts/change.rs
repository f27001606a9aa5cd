//! Writes accounts. Rows are locked in one order everywhere: creators, accounts, videos, organization.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::model::identifier::Username;
use crate::model::limits::DEFAULT_SCRAPE_INTERVAL_HOURS;
use crate::model::platform::Platform;
use crate::store::outbox::event::{RemovedVideo, SubjectVideo};
use crate::store::tracking::targets;
use crate::store::{Error, Write};

/// A partial update of an account. `Some(None)` clears a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountChange {
    pub is_active: Option<bool>,
    pub category: Option<Option<String>>,
    pub metadata: Option<Metadata>,
    pub scrape_interval_hours: Option<i32>,
    pub creator_id: Option<Option<Uuid>>,
    pub max_recent_posts_per_account: Option<Option<i32>>,
    pub post_lookback_days: Option<Option<i32>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    pub platform: Platform,
    pub username: Username,
    pub change: AccountChange,
}

/// The state of a locked account that decides how it may change.
#[derive(Debug, Clone, sqlx::FromRow)]
struct AccountState {
    internal_id: i64,
    platform: Platform,
    username: String,
    is_unavailable: bool,
    never_scraped: bool,
    creator_id: Option<Uuid>,
}

/// Starts tracking an account; it is due at `now`. The organization stays locked until the commit, so that concurrent
/// requests cannot exceed its cap.
pub async fn create(write: &mut Write, new: &NewAccount, now: DateTime<Utc>) -> Result<Uuid, Error> {
    let change = &new.change;
    let creator = change.creator_id.flatten();
    if let Some(creator) = creator {
        lock_creator(write, creator).await?;
    }
    // Weaker than `for update`, which would also block inserts that refer to the organization.
    let cap: Option<i32> =
        sqlx::query_scalar("select account_cap from organizations where id = $1 for no key update")
            .bind(write.organization())
            .fetch_optional(write.connection())
            .await?
            .ok_or(Error::NotFound("organization"))?;
    reject_tracked(write, new.platform, new.username.as_str()).await?;
    if let Some(cap) = cap {
        let count: i64 = sqlx::query_scalar("select count(*) from accounts where organization_id = $1")
            .bind(write.organization())
            .fetch_one(write.connection())
            .await?;
        if count >= i64::from(cap) {
            return Err(Error::QuotaExceeded(format!(
                "the organization has reached its cap of {cap} tracked accounts: delete an account or have the cap raised"
            )));
        }
    }
    let id = Uuid::now_v7();
    let added_at = Utc::now();
    sqlx::query(
        "insert into accounts
             (id, organization_id, platform, username, is_active, creator_id, linked_at, category, metadata,
              added_at, updated_at, scrape_interval_hours, max_recent_posts, post_lookback_days)
         values ($1, $2, $3, $4, coalesce($5, true), $6, case when $6 is not null then $7 end, $8, $9, $7, $7, $10, $11, $12)",
    )
    .bind(id)
    .bind(write.organization())
    .bind(new.platform)
    .bind(new.username.as_str())
    .bind(change.is_active)
    .bind(creator)
    .bind(added_at)
    .bind(change.category.clone().flatten())
    .bind(Json(change.metadata.clone().unwrap_or_default()))
    .bind(change.scrape_interval_hours.unwrap_or(DEFAULT_SCRAPE_INTERVAL_HOURS))
    .bind(change.max_recent_posts_per_account.flatten())
    .bind(change.post_lookback_days.flatten())
    .execute(write.connection())
    .await
    .map_err(|error| to_conflict(error, new.platform, new.username.as_str()))?;
    targets::add_accounts(write, &[id], now).await?;
    write.record_account_change(id);
    Ok(id)
}

/// Updates an account.
pub async fn update(write: &mut Write, id: Uuid, change: &AccountChange) -> Result<(), Error> {
    if *change == AccountChange::default() {
        return Ok(());
    }
    let before = lock(write, id, change.creator_id.flatten()).await?;
    let creator = change.creator_id.unwrap_or(before.creator_id);
    sqlx::query(
        "update accounts set
             is_active = coalesce($2, is_active),
             category = case when $3 then $4 else category end,
             category_observed_at = case when $3 then null else category_observed_at end,
             metadata = coalesce($5, metadata),
             scrape_interval_hours = coalesce($6, scrape_interval_hours),
             linked_at = case when $7 is null then null when creator_id is distinct from $7 then $12 else linked_at end,
             creator_id = $7,
             max_recent_posts = case when $8 then $9 else max_recent_posts end,
             post_lookback_days = case when $10 then $11 else post_lookback_days end,
             updated_at = $12
         where id = $1 and organization_id = $13",
    )
    .bind(id)
    .bind(change.is_active)
    .bind(change.category.is_some())
    .bind(change.category.clone().flatten())
    .bind(change.metadata.clone().map(Json))
    .bind(change.scrape_interval_hours)
    .bind(creator)
    .bind(change.max_recent_posts_per_account.is_some())
    .bind(change.max_recent_posts_per_account.flatten())
    .bind(change.post_lookback_days.is_some())
    .bind(change.post_lookback_days.flatten())
    .bind(Utc::now())
    .bind(write.organization())
    .execute(write.connection())
    .await?;
    if let Some(hours) = change.scrape_interval_hours {
        targets::set_interval(write, id, hours).await?;
    }
    targets::refresh_enabled(write, &[id]).await?;
    write.record_account_change(id);
    Ok(())
}

/// Changes the username of an account that is unavailable or was never scraped. The next scrape checks it.
pub async fn rename(write: &mut Write, id: Uuid, username: &str, now: DateTime<Utc>) -> Result<(), Error> {
    let before = lock(write, id, None).await?;
    let username = Username::parse(before.platform, username);
    if username.as_ref().is_ok_and(|username| before.username == username.as_str()) {
        return Ok(());
    }
    if !before.is_unavailable && !before.never_scraped {
        return Err(Error::Conflict(
            "the username can only be changed while the account is unavailable or was never read".to_owned(),
        ));
    }
    let username =
        username.map_err(|error| Error::Invalid { field: "username", message: error.to_string() })?;
    reject_tracked(write, before.platform, username.as_str()).await?;
    sqlx::query(
        "update accounts set username = $3, holds_username = true, username_unchecked = true, updated_at = $4
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(id)
    .bind(username.as_str())
    .bind(Utc::now())
    .execute(write.connection())
    .await
    .map_err(|error| to_conflict(error, before.platform, username.as_str()))?;
    sqlx::query(
        "update scrape_targets set next_attempt_at = $3, failures = 0, not_found_runs = 0
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(id)
    .bind(now)
    .execute(write.connection())
    .await?;
    write.record_account_change(id);
    Ok(())
}

/// Deletes an account with its discovered videos and their history. Individually tracked videos stay with theirs. Returns
/// whether there are any: their history moves to new subjects in ClickHouse, and is not visible until then.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<bool, Error> {
    let account = lock(write, id, None).await?;
    // A (subject, video) pair is never reused, so each gets a new subject.
    let detached: Vec<(Uuid, i64, i64)> = sqlx::query_as(
        "update videos set account_id = null, subject_id = nextval('internal_ids'), updated_at = $3
         where organization_id = $1 and account_id = $2 and is_tracked
         returning id, internal_id, subject_id",
    )
    .bind(write.organization())
    .bind(id)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    let has_detached = !detached.is_empty();
    for (video, video_id, subject_id) in detached {
        let from = SubjectVideo { subject_id: account.internal_id, video_id };
        write.record_video_move(from, SubjectVideo { subject_id, video_id });
        write.record_video_change(video);
    }
    let removed: Vec<(Uuid, i64)> = sqlx::query_as(
        "delete from videos where organization_id = $1 and account_id = $2 returning id, internal_id",
    )
    .bind(write.organization())
    .bind(id)
    .fetch_all(write.connection())
    .await?;
    targets::remove(write, &[id]).await?;
    sqlx::query("delete from accounts where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(id)
        .execute(write.connection())
        .await?;
    let removed = removed.into_iter().map(|(id, video_id)| RemovedVideo { id, video_id }).collect();
    write.record_subject_removal(account.internal_id, Some(id), removed).await?;
    Ok(has_detached)
}

/// Locks an account, after its creator and its new creator.
async fn lock(write: &mut Write, id: Uuid, new_creator: Option<Uuid>) -> Result<AccountState, Error> {
    if let Some(creator) = new_creator {
        lock_creator(write, creator).await?;
    }
    loop {
        let creator: Option<Uuid> =
            sqlx::query_scalar("select creator_id from accounts where organization_id = $1 and id = $2")
                .bind(write.organization())
                .bind(id)
                .fetch_optional(write.connection())
                .await?
                .ok_or(Error::NotFound("account"))?;
        if let Some(creator) = creator.filter(|creator| Some(*creator) != new_creator) {
            match lock_creator(write, creator).await {
                // Deleted meanwhile, which unlinked the account.
                Err(Error::NotFound(_)) => continue,
                locked => locked?,
            }
        }
        let locked: AccountState = sqlx::query_as(
            "select internal_id, platform, username, is_unavailable, first_scrape_time is null as never_scraped, creator_id
             from accounts where organization_id = $1 and id = $2 for update",
        )
        .bind(write.organization())
        .bind(id)
        .fetch_optional(write.connection())
        .await?
        .ok_or(Error::NotFound("account"))?;
        if locked.creator_id == creator || locked.creator_id.is_none() || locked.creator_id == new_creator {
            return Ok(locked);
        }
        // Linked to another creator meanwhile, which has to be locked first.
        return Err(write.abort().await);
    }
}

/// Prevents a creator from being updated or deleted until the commit.
async fn lock_creator(write: &mut Write, creator: Uuid) -> Result<(), Error> {
    sqlx::query("select from creators where organization_id = $1 and id = $2 for share")
        .bind(write.organization())
        .bind(creator)
        .fetch_optional(write.connection())
        .await?
        .map(drop)
        .ok_or(Error::NotFound("creator"))
}

/// Fails if the organization already tracks the username.
async fn reject_tracked(write: &mut Write, platform: Platform, username: &str) -> Result<(), Error> {
    let tracked: Option<Uuid> = sqlx::query_scalar(
        "select id from accounts where organization_id = $1 and platform = $2 and username = $3 and holds_username",
    )
    .bind(write.organization())
    .bind(platform)
    .bind(username)
    .fetch_optional(write.connection())
    .await?;
    match tracked {
        Some(id) => {
            Err(Error::Conflict(format!("{platform} account @{username} is already tracked as account {id}")))
        }
        None => Ok(()),
    }
}

/// Maps the unique violation of an account that was created since the check.
fn to_conflict(error: sqlx::Error, platform: Platform, username: &str) -> Error {
    match error.as_database_error().and_then(|error| error.constraint()) {
        Some("accounts_username") => Error::Conflict(format!(
            "{platform} account @{username} is already tracked: look it up as @{username}"
        )),
        _ => error.into(),
    }
}

/// Locks an account and a creator that it may be linked to, and fails if one of them does not exist. Returns the account's
/// creator.
pub(in crate::store::records) async fn lock_with_creator(
    write: &mut Write,
    account: Uuid,
    creator: Uuid,
) -> Result<Option<Uuid>, Error> {
    Ok(lock(write, account, Some(creator)).await?.creator_id)
}
