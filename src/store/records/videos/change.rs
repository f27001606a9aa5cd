//! Writes individually tracked videos. A video that is also found on a tracked account is the same row: creating and
//! deleting switch only its individual tracking.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::model::identifier::{PlatformVideoId, VideoReference, video_url};
use crate::model::limits::DEFAULT_SCRAPE_INTERVAL_HOURS;
use crate::model::platform::Platform;
use crate::store::outbox::event::RemovedVideo;
use crate::store::tracking::targets;
use crate::store::{Error, Write};

/// A partial update of a video's tracking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VideoChange {
    pub is_active: Option<bool>,
    pub metadata: Option<Metadata>,
    pub scrape_interval_hours: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTracking {
    pub is_active: bool,
    pub metadata: Metadata,
    pub scrape_interval_hours: i32,
}

/// A video to track individually.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVideo {
    pub platform: Platform,
    pub video: VideoReference,
    pub tracking: NewTracking,
}

/// A video whose row is locked.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
struct LockedVideo {
    id: Uuid,
    internal_id: i64,
    subject_id: i64,
    account_id: Option<Uuid>,
    is_tracked: bool,
}

/// Starts tracking a video individually; it is due at `now`.
pub async fn create(write: &mut Write, new: &NewVideo, now: DateTime<Utc>) -> Result<Uuid, Error> {
    let id = match find(write, new).await? {
        Some(locked) => track(write, new, locked).await?,
        None => match insert(write, new).await? {
            Some(id) => id,
            // Created concurrently by a scrape, an import or another request.
            None => {
                let Some(locked) = find(write, new).await? else { return Err(write.abort().await) };
                track(write, new, locked).await?
            }
        },
    };
    targets::add_videos(write, &[id], now).await?;
    write.record_video_change(id);
    Ok(id)
}

async fn find(write: &mut Write, new: &NewVideo) -> Result<Option<LockedVideo>, Error> {
    let statement = match new.video.id {
        PlatformVideoId::ExternalId(_) => {
            "select id, internal_id, subject_id, account_id, is_tracked from videos
             where organization_id = $1 and platform = $2 and external_id = $3 for update"
        }
        PlatformVideoId::Shortcode(_) => {
            "select id, internal_id, subject_id, account_id, is_tracked from videos
             where organization_id = $1 and platform = $2 and shortcode = $3 for update"
        }
    };
    let (PlatformVideoId::ExternalId(id) | PlatformVideoId::Shortcode(id)) = &new.video.id;
    let query = sqlx::query_as(statement).bind(write.organization()).bind(new.platform).bind(id);
    Ok(query.fetch_optional(write.connection()).await?)
}

/// Tracks individually a video that was found on an account.
async fn track(write: &mut Write, new: &NewVideo, locked: LockedVideo) -> Result<Uuid, Error> {
    let LockedVideo { id, is_tracked, .. } = locked;
    if is_tracked {
        return Err(Error::Conflict(format!("the video is already tracked individually, as video {id}")));
    }
    sqlx::query(
        "update videos set is_tracked = true, tracked_at = $2, updated_at = $2, is_active = $3, metadata = $4,
             scrape_interval_hours = $5
         where organization_id = $6 and id = $1",
    )
    .bind(id)
    .bind(Utc::now())
    .bind(new.tracking.is_active)
    .bind(Json(&new.tracking.metadata))
    .bind(new.tracking.scrape_interval_hours)
    .bind(write.organization())
    .execute(write.connection())
    .await?;
    Ok(id)
}

/// Inserts a video. Returns `None` if it exists.
async fn insert(write: &mut Write, new: &NewVideo) -> Result<Option<Uuid>, Error> {
    let VideoReference { id: platform_id, username } = &new.video;
    let url = username.as_deref().and_then(|user| {
        video_url(new.platform, Some(user), platform_id.shortcode(), platform_id.external_id())
    });
    Ok(sqlx::query_scalar(
        "with ids as (select nextval('internal_ids') as internal_id)
         insert into videos
             (id, internal_id, subject_id, organization_id, platform, external_id, shortcode, url, is_tracked,
              is_active, metadata, scrape_interval_hours, added_at, tracked_at, updated_at)
         select $1, internal_id, internal_id, $2, $3, $4, $5, $6, true, $7, $8, $9, $10, $10, $10 from ids
         on conflict do nothing
         returning id",
    )
    .bind(Uuid::now_v7())
    .bind(write.organization())
    .bind(new.platform)
    .bind(platform_id.external_id())
    .bind(platform_id.shortcode())
    .bind(url)
    .bind(new.tracking.is_active)
    .bind(Json(&new.tracking.metadata))
    .bind(new.tracking.scrape_interval_hours)
    .bind(Utc::now())
    .fetch_optional(write.connection())
    .await?)
}

/// Updates how a video is tracked individually.
pub async fn update(write: &mut Write, id: Uuid, change: &VideoChange) -> Result<(), Error> {
    lock(write, id).await?;
    sqlx::query(
        "update videos set is_active = coalesce($2, is_active), metadata = coalesce($3, metadata),
             scrape_interval_hours = coalesce($4, scrape_interval_hours), updated_at = $5
         where organization_id = $6 and id = $1",
    )
    .bind(id)
    .bind(change.is_active)
    .bind(change.metadata.clone().map(Json))
    .bind(change.scrape_interval_hours)
    .bind(Utc::now())
    .bind(write.organization())
    .execute(write.connection())
    .await?;
    if let Some(hours) = change.scrape_interval_hours {
        targets::set_interval(write, id, hours).await?;
    }
    if change.is_active.is_some() {
        write.record_video_change(id);
    }
    targets::refresh_enabled(write, &[id]).await
}

/// Stops tracking a video individually. It is deleted with its history unless it was also found on an account.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<(), Error> {
    let LockedVideo { internal_id, subject_id, account_id, .. } = lock(write, id).await?;
    targets::remove(write, &[id]).await?;
    if account_id.is_none() {
        sqlx::query("delete from videos where organization_id = $1 and id = $2")
            .bind(write.organization())
            .bind(id)
            .execute(write.connection())
            .await?;
        let removed = RemovedVideo { id, video_id: internal_id };
        return write.record_subject_removal(subject_id, None, vec![removed]).await;
    }
    sqlx::query(
        "update videos set is_tracked = false, tracked_at = null, updated_at = $2, is_active = true,
             is_unavailable = false, metadata = '{}', scrape_interval_hours = $3
         where organization_id = $4 and id = $1",
    )
    .bind(id)
    .bind(Utc::now())
    .bind(DEFAULT_SCRAPE_INTERVAL_HOURS)
    .bind(write.organization())
    .execute(write.connection())
    .await?;
    write.record_video_change(id);
    Ok(())
}

/// Locks an individually tracked video.
async fn lock(write: &mut Write, id: Uuid) -> Result<LockedVideo, Error> {
    sqlx::query_as(
        "select id, internal_id, subject_id, account_id, is_tracked from videos
         where organization_id = $1 and id = $2 and is_tracked for update",
    )
    .bind(write.organization())
    .bind(id)
    .fetch_optional(write.connection())
    .await?
    .ok_or(Error::NotFound("video"))
}
