//! How accounts come, change and go. Whether one is collected follows from it and its creator together, which is
//! [`targets`]'s matter.
//!
//! Rows are locked in one order, whoever changes what: creators, then accounts, then videos, then the organization.

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

/// What a request changes of an account; what it leaves out stays. The inner `None` clears.
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

/// An account that is to be tracked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    pub platform: Platform,
    pub username: Username,
    pub change: AccountChange,
}

/// What of a locked account decides how it may change.
#[derive(Debug, Clone, sqlx::FromRow)]
struct Locked {
    internal_id: i64,
    platform: Platform,
    username: String,
    is_unavailable: bool,
    /// It never had a successful scrape.
    never_read: bool,
    creator_id: Option<Uuid>,
}

/// Begins to track an account, which is due from `now` on.
///
/// The organization's row stays locked until the commit, so that its cap holds whatever else is being created.
pub async fn create(write: &mut Write, new: &NewAccount, now: DateTime<Utc>) -> Result<Uuid, Error> {
    let organization = write.organization();
    let change = &new.change;
    let creator = change.creator_id.flatten();
    if let Some(creator) = creator {
        lock_creator(write, creator).await?;
    }
    // Weaker than `for update`, which would also stop everything that merely refers to the organization.
    let cap: Option<i32> =
        sqlx::query_scalar("select account_cap from organizations where id = $1 for no key update")
            .bind(organization)
            .fetch_optional(write.connection())
            .await?
            .ok_or(Error::NotFound("organization"))?;
    refuse_known(write, new.platform, new.username.as_str()).await?;
    if let Some(cap) = cap {
        let count: i64 = sqlx::query_scalar("select count(*) from accounts where organization_id = $1")
            .bind(organization)
            .fetch_one(write.connection())
            .await?;
        if count >= i64::from(cap) {
            return Err(Error::QuotaExceeded(format!(
                "the organization's cap of {cap} tracked accounts is reached: delete an account or have the cap raised"
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
    .bind(organization)
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
    .map_err(|error| tracked_meanwhile(error, new.platform, new.username.as_str()))?;
    targets::add_accounts(write, &[id], now).await?;
    write.record_account_change(id);
    Ok(id)
}

/// Changes an account. A change of nothing leaves it as it is.
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

/// Gives an account that its platform no longer shows, or that was never read, the name that it goes by; the next scrape
/// checks it.
pub async fn rename(write: &mut Write, id: Uuid, username: &str, now: DateTime<Utc>) -> Result<(), Error> {
    let before = lock(write, id, None).await?;
    let username = Username::parse(before.platform, username);
    if username.as_ref().is_ok_and(|username| before.username == username.as_str()) {
        return Ok(());
    }
    if !before.is_unavailable && !before.never_read {
        return Err(Error::Conflict(
            "only an account that has become unavailable, or that was never read, can be given another username: this \
             one is read under its own"
                .to_owned(),
        ));
    }
    let username =
        username.map_err(|error| Error::Invalid { field: "username", message: error.to_string() })?;
    refuse_known(write, before.platform, username.as_str()).await?;
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
    .map_err(|error| tracked_meanwhile(error, before.platform, username.as_str()))?;
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

/// Stops tracking an account and deletes it with its discovered videos and their history. Videos that are tracked
/// on their own as well stay, with the history that was observed of them. Says whether there are any: their history has
/// to move in ClickHouse before any answer has it again.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<bool, Error> {
    let organization = write.organization();
    let account = lock(write, id, None).await?;
    // A place that history was moved away from is never used again, so they get fresh ones.
    let detached: Vec<(Uuid, i64, i64)> = sqlx::query_as(
        "update videos set account_id = null, subject_id = nextval('internal_ids'), updated_at = $3
         where organization_id = $1 and account_id = $2 and is_tracked
         returning id, internal_id, subject_id",
    )
    .bind(organization)
    .bind(id)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    let some_stay = !detached.is_empty();
    for (video, video_id, subject_id) in detached {
        let from = SubjectVideo { subject_id: account.internal_id, video_id };
        write.record_video_move(from, SubjectVideo { subject_id, video_id });
        write.record_video_change(video);
    }
    let removed: Vec<(Uuid, i64)> = sqlx::query_as(
        "delete from videos where organization_id = $1 and account_id = $2 returning id, internal_id",
    )
    .bind(organization)
    .bind(id)
    .fetch_all(write.connection())
    .await?;
    targets::remove(write, &[id]).await?;
    sqlx::query("delete from accounts where organization_id = $1 and id = $2")
        .bind(organization)
        .bind(id)
        .execute(write.connection())
        .await?;
    let removed = removed.into_iter().map(|(id, video_id)| RemovedVideo { id, video_id }).collect();
    write.record_subject_removal(account.internal_id, Some(id), removed).await?;
    Ok(some_stay)
}

/// Locks an account against every other change, after its creator and the one that it may get.
async fn lock(write: &mut Write, id: Uuid, new_creator: Option<Uuid>) -> Result<Locked, Error> {
    let organization = write.organization();
    if let Some(creator) = new_creator {
        lock_creator(write, creator).await?;
    }
    loop {
        let creator: Option<Uuid> =
            sqlx::query_scalar("select creator_id from accounts where organization_id = $1 and id = $2")
                .bind(organization)
                .bind(id)
                .fetch_optional(write.connection())
                .await?
                .ok_or(Error::NotFound("account"))?;
        if let Some(creator) = creator.filter(|creator| Some(*creator) != new_creator) {
            match lock_creator(write, creator).await {
                // It is just gone, and the account with nobody.
                Err(Error::NotFound(_)) => continue,
                locked => locked?,
            }
        }
        let locked: Locked = sqlx::query_as(
            "select internal_id, platform, username, is_unavailable, first_scrape_time is null as never_read, creator_id
             from accounts where organization_id = $1 and id = $2 for update",
        )
        .bind(organization)
        .bind(id)
        .fetch_optional(write.connection())
        .await?
        .ok_or(Error::NotFound("account"))?;
        if locked.creator_id == creator || locked.creator_id.is_none() || locked.creator_id == new_creator {
            return Ok(locked);
        }
        // It came to another creator meanwhile, who would have to be locked before it.
        return Err(write.abort().await);
    }
}

/// Keeps a creator from being paused, resumed or deleted until the commit.
pub(in crate::store) async fn lock_creator(write: &mut Write, creator: Uuid) -> Result<(), Error> {
    let organization = write.organization();
    sqlx::query("select from creators where organization_id = $1 and id = $2 for share")
        .bind(organization)
        .bind(creator)
        .fetch_optional(write.connection())
        .await?
        .map(drop)
        .ok_or(Error::NotFound("creator"))
}

/// Refuses a username that the organization tracks already, naming the account.
async fn refuse_known(write: &mut Write, platform: Platform, username: &str) -> Result<(), Error> {
    let organization = write.organization();
    let known: Option<Uuid> = sqlx::query_scalar(
        "select id from accounts where organization_id = $1 and platform = $2 and username = $3 and holds_username",
    )
    .bind(organization)
    .bind(platform)
    .bind(username)
    .fetch_optional(write.connection())
    .await?;
    match known {
        Some(id) => {
            Err(Error::Conflict(format!("{platform} account @{username} is already tracked as account {id}")))
        }
        None => Ok(()),
    }
}

/// Tells of an account that an import or a scrape brought in between the check and the write.
fn tracked_meanwhile(error: sqlx::Error, platform: Platform, username: &str) -> Error {
    match error.as_database_error().and_then(|error| error.constraint()) {
        Some("accounts_username") => Error::Conflict(format!(
            "{platform} account @{username} is already tracked: look it up as @{username}"
        )),
        _ => error.into(),
    }
}

/// Locks an account, and the creator that it may be linked to, and says whose it is.
pub(in crate::store) async fn owner(
    write: &mut Write,
    account: Uuid,
    creator: Uuid,
) -> Result<Option<Uuid>, Error> {
    Ok(lock(write, account, Some(creator)).await?.creator_id)
}
