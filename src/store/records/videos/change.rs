//! Writes individually tracked videos. A video that is also found on a tracked account is the same row: creating and
//! deleting switch only its individual tracking.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

use crate::model::account::{Metadata, metadata_schema};
use crate::model::identifier::{VideoIds, VideoReference, video_url};
use crate::model::limits::{
    DEFAULT_SCRAPE_INTERVAL_HOURS, MAX_SCRAPE_INTERVAL_HOURS, MIN_SCRAPE_INTERVAL_HOURS,
};
use crate::model::platform::Platform;
use crate::store::outbox::event::RemovedVideo;
use crate::store::records::collections::marks;
use crate::store::records::result_of_one;
use crate::store::tracking::targets;
use crate::store::write::Post;
use crate::store::{Error, Write};

/// A partial update of a video's tracking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct VideoChange {
    /// `false` pauses tracking, `true` resumes it.
    pub is_active: Option<bool>,
    /// Your own tags, replacing all existing ones.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Option<Metadata>,
    /// Hours between scrapes.
    #[schemars(range(min = MIN_SCRAPE_INTERVAL_HOURS, max = MAX_SCRAPE_INTERVAL_HOURS))]
    pub scrape_interval_hours: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NewTracking {
    /// `false` adds the video paused.
    #[schemars(extend("default" = true))]
    pub is_active: bool,
    /// Your own tags.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Metadata,
    /// Hours between scrapes.
    #[schemars(
        range(min = MIN_SCRAPE_INTERVAL_HOURS, max = MAX_SCRAPE_INTERVAL_HOURS),
        extend("default" = DEFAULT_SCRAPE_INTERVAL_HOURS)
    )]
    pub scrape_interval_hours: i32,
}

/// A video to track individually.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVideo {
    pub platform: Platform,
    pub video: VideoReference,
    pub tracking: NewTracking,
}

/// The identity of a video to create.
type VideoKey = (Platform, String);

/// A locked row that a video to create may be.
#[derive(Debug, Clone)]
struct FoundVideo {
    id: Uuid,
    ids: VideoIds,
    is_tracked: bool,
}

/// A video that is tracked individually and whose row is locked.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
struct LockedVideo {
    internal_id: i64,
    subject_id: i64,
    account_id: Option<Uuid>,
    platform: Platform,
    create_time: Option<DateTime<Utc>>,
}

/// Starts tracking a video individually; it is due at `now`.
pub async fn create(write: &mut Write, new: &NewVideo, now: DateTime<Utc>) -> Result<Uuid, Error> {
    result_of_one(create_all(write, &[new], now).await?)
}

/// Starts tracking videos individually, due at `now`, as if each were created after those before it, and returns the result
/// of each.
pub async fn create_all(
    write: &mut Write,
    new: &[&NewVideo],
    now: DateTime<Utc>,
) -> Result<Vec<Result<Uuid, Error>>, Error> {
    if new.len() > 1 {
        // Otherwise batches that overlap could wait for each other: for rows that one has inserted and the other has locked.
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('videos of ' || $1::text, 0))")
            .bind(write.organization())
            .execute(write.connection())
            .await?;
    }
    let mut found = find(write, new).await?;
    let mut keys: HashSet<_> = found.keys().cloned().collect();
    let mut missing: Vec<_> = new.iter().copied().filter(|video| keys.insert(video.key())).collect();
    let inserted = insert(write, &missing).await?;
    // Created concurrently by a scrape, an import or another request.
    missing.retain(|video| !inserted.contains_key(&video.key()));
    found.extend(find(write, &missing).await?);
    let mut tracked: HashSet<_> =
        found.values().filter(|video| video.is_tracked).map(|video| video.id).collect();
    let (mut discovered, mut results) = (Vec::new(), Vec::with_capacity(new.len()));
    for video in new {
        let key = video.key();
        let by_external_id = || Some((video.platform, video.video.ids.external_id()?.to_owned()));
        let known = found.get(&key).or_else(|| found.get(&by_external_id()?));
        let id = match (inserted.get(&key), known) {
            (Some(id), _) => *id,
            (None, Some(known)) => known.id,
            (None, None) => return Err(write.abort().await),
        };
        if !tracked.insert(id) {
            let detail = format!("the video is already tracked individually, as video {id}");
            results.push(Err(Error::Exists { id, detail }));
            continue;
        }
        discovered.extend(known.map(|known| (known.clone(), *video)));
        results.push(Ok(id));
    }
    track(write, &discovered).await?;
    let ids: Vec<_> = results.iter().flatten().copied().collect();
    targets::add_videos(write, &ids, now).await?;
    for id in ids {
        write.record_video_change(id);
    }
    Ok(results)
}

impl NewVideo {
    fn key(&self) -> VideoKey {
        (self.platform, self.video.ids.key().to_owned())
    }
}

/// Public for tests of its plan.
pub const FIND: &str = "select id, external_id, coalesce(whole_shortcode, shortcode), is_tracked from videos
     where organization_id = $1 and platform = $2 and (external_id = any($3) or shortcode = any($4))
     order by id for update";

/// Finds and locks the rows of videos, by the key of each.
async fn find(write: &mut Write, new: &[&NewVideo]) -> Result<HashMap<VideoKey, FoundVideo>, Error> {
    let mut found = HashMap::new();
    for platform in Platform::ALL {
        let of_platform: Vec<_> = new.iter().filter(|video| video.platform == platform).collect();
        if of_platform.is_empty() {
            continue;
        }
        let external_ids: Vec<_> =
            of_platform.iter().flat_map(|video| video.video.ids.external_ids()).collect();
        let shortcodes: Vec<_> =
            of_platform.iter().filter_map(|video| video.video.ids.shortcode_key()).collect();
        let rows: Vec<(Uuid, Option<String>, Option<String>, bool)> = sqlx::query_as(FIND)
            .bind(write.organization())
            .bind(platform)
            .bind(external_ids)
            .bind(shortcodes)
            .fetch_all(write.connection())
            .await?;
        for (id, external_id, shortcode, is_tracked) in rows {
            let ids = VideoIds::new(platform, external_id.as_deref(), shortcode.as_deref());
            let row = FoundVideo { id, ids, is_tracked };
            let keys = [row.ids.shortcode_key(), row.ids.external_id()].map(|key| key.map(str::to_owned));
            for key in keys.into_iter().flatten() {
                // Rows that an older version left for one post: the older one is it.
                found.entry((platform, key)).or_insert_with(|| row.clone());
            }
        }
    }
    Ok(found)
}

/// How a video is tracked, in columns.
#[derive(Serialize)]
struct TrackingRow<'a> {
    id: Uuid,
    platform: Platform,
    external_id: Option<&'a str>,
    shortcode: Option<&'a str>,
    whole_shortcode: Option<&'a str>,
    url: Option<String>,
    is_active: bool,
    metadata: &'a Metadata,
    scrape_interval_hours: i32,
}

impl<'a> TrackingRow<'a> {
    fn new(id: Uuid, NewVideo { platform, video, tracking }: &'a NewVideo) -> Self {
        let (external_id, shortcode) = (video.ids.external_id(), video.ids.shortcode_key());
        let username = video.username.as_deref();
        TrackingRow {
            id,
            platform: *platform,
            external_id,
            shortcode,
            whole_shortcode: video.ids.shortcode().filter(|whole| Some(*whole) != shortcode),
            url: username
                .filter(|_| *platform == Platform::Tiktok)
                .and_then(|user| video_url(*platform, Some(user), None, external_id)),
            is_active: tracking.is_active,
            metadata: &tracking.metadata,
            scrape_interval_hours: tracking.scrape_interval_hours,
        }
    }
}

/// Inserts videos in one order for all units of work, so that two that insert the same videos do not deadlock. Returns the
/// ids of those that did not exist.
async fn insert(write: &mut Write, new: &[&NewVideo]) -> Result<HashMap<VideoKey, Uuid>, Error> {
    if new.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<_> = new.iter().map(|video| TrackingRow::new(Uuid::now_v7(), video)).collect();
    let inserted: Vec<Uuid> = sqlx::query_scalar(
        "with new as (
            select nextval('internal_ids') as internal_id, x.*
            from (
                select * from jsonb_to_recordset($2) as x(
                    id uuid, platform text, external_id text, shortcode text, whole_shortcode text, url text,
                    is_active boolean, metadata jsonb, scrape_interval_hours integer)
                order by platform, external_id, shortcode
            ) x
         )
         insert into videos
             (id, internal_id, subject_id, organization_id, platform, external_id, shortcode, whole_shortcode, url, is_tracked,
              is_active, metadata, scrape_interval_hours, added_at, tracked_at, updated_at)
         select id, internal_id, internal_id, $1, platform, external_id, shortcode, whole_shortcode, url, true, is_active, metadata,
             scrape_interval_hours, $3, $3, $3
         from new
         on conflict do nothing
         returning id",
    )
    .bind(write.organization())
    .bind(Json(&rows))
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    let mut keys: HashMap<_, _> =
        rows.iter().map(|row| row.id).zip(new.iter().map(|video| video.key())).collect();
    Ok(inserted.into_iter().filter_map(|id| Some((keys.remove(&id)?, id))).collect())
}

/// Tracks individually videos that were found on accounts, and adds the ids by which they were named.
async fn track(write: &mut Write, discovered: &[(FoundVideo, &NewVideo)]) -> Result<(), Error> {
    if discovered.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = discovered
        .iter()
        .map(|(found, new)| {
            let mut ids = found.ids.clone();
            ids.merge(new.video.ids.clone());
            let video = VideoReference { ids, username: None };
            (found.id, NewVideo { video, ..(*new).clone() })
        })
        .collect();
    let rows: Vec<_> = named.iter().map(|(id, video)| TrackingRow::new(*id, video)).collect();
    sqlx::query(
        "update videos v set is_tracked = true, tracked_at = $3, updated_at = $3, is_active = x.is_active,
             metadata = x.metadata, scrape_interval_hours = x.scrape_interval_hours,
             external_id = x.external_id, shortcode = x.shortcode, whole_shortcode = x.whole_shortcode
         from jsonb_to_recordset($2) as x(
             id uuid, external_id text, shortcode text, whole_shortcode text, is_active boolean, metadata jsonb,
             scrape_interval_hours integer)
         where v.organization_id = $1 and v.id = x.id",
    )
    .bind(write.organization())
    .bind(Json(rows))
    .bind(Utc::now())
    .execute(write.connection())
    .await
    .map_err(Error::of_unique_write)?;
    Ok(())
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
        targets::set_interval(write, &[id], hours).await?;
    }
    if change.is_active.is_some() || change.metadata.is_some() {
        write.record_video_change(id);
    }
    if change.is_active.is_some() {
        write.record_target_change(id);
    }
    Ok(())
}

/// Stops tracking a video individually. It is deleted with its history unless it was also found on an account.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<(), Error> {
    let LockedVideo { internal_id, subject_id, account_id, platform, create_time } = lock(write, id).await?;
    targets::remove(write, &[id]).await?;
    if account_id.is_none() {
        marks::record_removal(write, &[id]).await?;
        sqlx::query("delete from videos where organization_id = $1 and id = $2")
            .bind(write.organization())
            .bind(id)
            .execute(write.connection())
            .await?;
        write.record_post_removal(&Post { video_id: internal_id, platform, create_time });
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
        "select internal_id, subject_id, account_id, platform, create_time from videos
         where organization_id = $1 and id = $2 and is_tracked for update",
    )
    .bind(write.organization())
    .bind(id)
    .fetch_optional(write.connection())
    .await?
    .ok_or(Error::NotFound("video"))
}
