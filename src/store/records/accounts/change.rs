//! Changes and deletes accounts. Rows are locked in one order everywhere: creators, accounts, videos, organization.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use sqlx::types::Json;
use uuid::Uuid;

use super::{already_tracked, find_tracked};
use crate::model::account::{Metadata, metadata_schema};
use crate::model::identifier::Username;
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_SCRAPE_INTERVAL_HOURS, MIN_SCRAPE_INTERVAL_HOURS};
use crate::model::platform::Platform;
use crate::store::outbox::event::{RemovedVideo, SubjectVideo};
use crate::store::records::collections::marks;
use crate::store::records::result_of_one;
use crate::store::tracking::targets;
use crate::store::write::Post;
use crate::store::{Error, Write};

/// A partial update of an account. `Some(None)` clears a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AccountChange {
    /// `false` pauses tracking, `true` resumes it.
    pub is_active: Option<bool>,
    /// Your own label; null removes it.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(length(max = MAX_CATEGORY_CHARS), extend("x-nullable" = true))]
    pub category: Option<Option<String>>,
    /// Your own tags, replacing all existing ones.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Option<Metadata>,
    /// Hours between scrapes.
    #[schemars(range(min = MIN_SCRAPE_INTERVAL_HOURS, max = MAX_SCRAPE_INTERVAL_HOURS))]
    pub scrape_interval_hours: Option<i32>,
    /// Creator of the account; null unlinks it.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(extend("x-nullable" = true))]
    pub creator_id: Option<Option<Uuid>>,
    /// Maximum number of posts that the first scrape reads; null for the organization's default.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(range(min = 50, max = 5000), extend("x-nullable" = true))]
    pub max_recent_posts_per_account: Option<Option<i32>>,
    /// Number of days that the first scrape goes back; null for the organization's default.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(range(min = 90, max = 7300), extend("x-nullable" = true))]
    pub post_lookback_days: Option<Option<i32>>,
}

/// Deserializes a field that is not absent, so that null is `Some(None)`.
fn deserialize_some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(field: D) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// The state of a locked account that decides how it may change.
#[derive(Debug, Clone, sqlx::FromRow)]
struct AccountState {
    id: Uuid,
    internal_id: i64,
    platform: Platform,
    username: String,
    is_unavailable: bool,
    never_scraped: bool,
    creator_id: Option<Uuid>,
}

/// Updates an account.
pub async fn update(write: &mut Write, id: Uuid, change: &AccountChange) -> Result<(), Error> {
    result_of_one(update_all(write, &[id], change).await?)
}

/// Makes the same change to accounts, and returns the result of each.
pub async fn update_all(
    write: &mut Write,
    ids: &[Uuid],
    change: &AccountChange,
) -> Result<Vec<Result<(), Error>>, Error> {
    let locked = lock_all(write, ids, change.creator_id.flatten()).await?;
    let found: Vec<_> = locked.iter().map(|account| account.id).collect();
    if *change != AccountChange::default() && !found.is_empty() {
        apply(write, &found, change).await?;
        if let Some(hours) = change.scrape_interval_hours {
            targets::set_interval(write, &found, hours).await?;
        }
        let is_target_changed = change.is_active.is_some() || change.creator_id.is_some();
        for id in &found {
            write.record_account_change(*id);
            if is_target_changed {
                write.record_target_change(*id);
            }
        }
    }
    let found: HashSet<_> = found.into_iter().collect();
    let result = |id| if found.contains(id) { Ok(()) } else { Err(Error::NotFound("account")) };
    Ok(ids.iter().map(result).collect())
}

async fn apply(write: &mut Write, ids: &[Uuid], change: &AccountChange) -> Result<(), Error> {
    sqlx::query(
        "update accounts set
             is_active = coalesce($3, is_active),
             category = case when $4 then $5 else category end,
             category_observed_at = case when $4 then null else category_observed_at end,
             metadata = coalesce($6, metadata),
             scrape_interval_hours = coalesce($7, scrape_interval_hours),
             linked_at = case when not $8 or creator_id = $9 then linked_at when $9 is not null then $14 end,
             creator_id = case when $8 then $9 else creator_id end,
             max_recent_posts = case when $10 then $11 else max_recent_posts end,
             post_lookback_days = case when $12 then $13 else post_lookback_days end,
             updated_at = $14
         where organization_id = $1 and id = any($2)",
    )
    .bind(write.organization())
    .bind(ids)
    .bind(change.is_active)
    .bind(change.category.is_some())
    .bind(change.category.clone().flatten())
    .bind(change.metadata.clone().map(Json))
    .bind(change.scrape_interval_hours)
    .bind(change.creator_id.is_some())
    .bind(change.creator_id.flatten())
    .bind(change.max_recent_posts_per_account.is_some())
    .bind(change.max_recent_posts_per_account.flatten())
    .bind(change.post_lookback_days.is_some())
    .bind(change.post_lookback_days.flatten())
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Changes the username of an account that is unavailable or was never scraped. The next scrape checks it.
pub async fn rename(write: &mut Write, id: Uuid, username: &str, now: DateTime<Utc>) -> Result<(), Error> {
    let before = lock(write, id, None).await?;
    let username = Username::parse(before.platform, username)
        .map_err(|error| Error::Invalid { field: "username", message: error.to_string() })?;
    if before.username == username.as_str() {
        return Ok(());
    }
    if !before.is_unavailable && !before.never_scraped {
        return Err(Error::Conflict(
            "the username can only be changed while the account is unavailable or was never read".to_owned(),
        ));
    }
    let tracked = find_tracked(write, &[(before.platform, username.as_str())]).await?;
    if let Some(other) = tracked.get(&(before.platform, username.as_str().to_owned())) {
        return Err(already_tracked(*other, before.platform, &username));
    }
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
    write.record_account_change(id);
    targets::restart(write, id, now).await
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
    let discovered: Vec<Uuid> = sqlx::query_scalar(
        "select id from videos where organization_id = $1 and account_id = $2 order by id for update",
    )
    .bind(write.organization())
    .bind(id)
    .fetch_all(write.connection())
    .await?;
    marks::record_removal(write, &discovered).await?;
    let removed: Vec<(Uuid, i64, Option<DateTime<Utc>>)> = sqlx::query_as(
        "delete from videos where organization_id = $1 and account_id = $2 returning id, internal_id, create_time",
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
    let mut removed_videos = Vec::with_capacity(removed.len());
    for (video, video_id, create_time) in removed {
        write.record_post_removal(&Post { video_id, platform: account.platform, create_time });
        removed_videos.push(RemovedVideo { id: video, video_id });
    }
    write.record_subject_removal(account.internal_id, Some(id), removed_videos).await?;
    Ok(has_detached)
}

/// Locks an account, after its creator and its new creator.
async fn lock(write: &mut Write, id: Uuid, new_creator: Option<Uuid>) -> Result<AccountState, Error> {
    lock_all(write, &[id], new_creator).await?.pop().ok_or(Error::NotFound("account"))
}

/// Public for tests of its plan.
pub const LOCK: &str =
    "select id, internal_id, platform, username, is_unavailable, first_scrape_time is null as never_scraped, creator_id
     from accounts where organization_id = $1 and id = any($2) order by id for update";

/// Locks accounts, after their creators and their new creator. Those that do not exist are absent.
async fn lock_all(
    write: &mut Write,
    ids: &[Uuid],
    new_creator: Option<Uuid>,
) -> Result<Vec<AccountState>, Error> {
    let creators: Vec<Uuid> = sqlx::query_scalar(
        "select creator_id from accounts where organization_id = $1 and id = any($2) and creator_id is not null",
    )
    .bind(write.organization())
    .bind(ids)
    .fetch_all(write.connection())
    .await?;
    let creators = lock_creators(write, &creators.into_iter().chain(new_creator).collect()).await?;
    if new_creator.is_some_and(|creator| !creators.contains(&creator)) {
        return Err(Error::NotFound("creator"));
    }
    let locked: Vec<AccountState> =
        sqlx::query_as(LOCK).bind(write.organization()).bind(ids).fetch_all(write.connection()).await?;
    if locked.iter().filter_map(|account| account.creator_id).any(|creator| !creators.contains(&creator)) {
        // Linked to another creator meanwhile, which has to be locked first.
        return Err(write.abort().await);
    }
    Ok(locked)
}

/// Prevents creators from being updated or deleted until the commit, and returns those that exist.
pub(super) async fn lock_creators(
    write: &mut Write,
    creators: &BTreeSet<Uuid>,
) -> Result<HashSet<Uuid>, Error> {
    if creators.is_empty() {
        return Ok(HashSet::new());
    }
    let locked: Vec<Uuid> = sqlx::query_scalar(
        "select id from creators where organization_id = $1 and id = any($2) order by id for share",
    )
    .bind(write.organization())
    .bind(creators.iter().copied().collect::<Vec<_>>())
    .fetch_all(write.connection())
    .await?;
    Ok(locked.into_iter().collect())
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
