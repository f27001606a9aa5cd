//! Observed videos: found by the platform's id or by shortcode, made or attached or merged, and their snapshots.
//!
//! A platform video is one row in an organization, however it was found. The account for which it was stored
//! first keeps it; what another account's scrape says of it is recorded all the same.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use super::insert::insert;
use super::locks::{lock_accounts, lock_at_once};
use super::{AccountRef, FoundOn, ObservedVideo, sums};
use crate::model::counters::Counters;
use crate::model::latest::{KnownAt, VideoLatest, VideoValues};
use crate::model::platform::Platform;
use crate::model::snapshot::VideoSnapshot;
use crate::model::text::fold_case;
use crate::store::outbox::event::SubjectVideo;
use crate::store::tracking::targets;
use crate::store::{Error, Write};

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    internal_id: i64,
    platform: Platform,
    external_id: Option<String>,
    shortcode: Option<String>,
    account_id: Option<Uuid>,
    subject_id: i64,
    is_tracked: bool,
    url: Option<String>,
    description: Option<String>,
    media_type: Option<String>,
    duration: Option<f64>,
    cover_image_url_original: Option<String>,
    video_url_original: Option<String>,
    platform_data: Json<serde_json::Value>,
    create_time: Option<DateTime<Utc>>,
    view_count: i64,
    like_count: i64,
    comment_count: i64,
    share_count: i64,
    saved_count: Option<i64>,
    play_count: i64,
    ig_play_count: Option<i64>,
    fb_play_count: Option<i64>,
    fb_like_count: Option<i64>,
    observed_at: Option<DateTime<Utc>>,
    known_at: Option<Json<KnownAt>>,
    tracked_since: Option<NaiveDate>,
}

impl Row {
    fn latest(&self) -> VideoLatest {
        let everything_now = KnownAt::default();
        VideoLatest::restore(
            self.known_at.as_ref().map_or(&everything_now, |known_at| &known_at.0),
            self.observed_at,
            VideoValues {
                view_count: Some(self.view_count),
                like_count: Some(self.like_count),
                comment_count: Some(self.comment_count),
                share_count: Some(self.share_count),
                saved_count: self.saved_count,
                play_count: Some(self.play_count),
                ig_play_count: self.ig_play_count,
                fb_play_count: self.fb_play_count,
                fb_like_count: self.fb_like_count,
                description: self.description.clone(),
                media_type: self.media_type.clone(),
                duration: self.duration,
                create_time: self.create_time,
                url: self.url.clone(),
                cover_image_url: self.cover_image_url_original.clone(),
                video_url: self.video_url_original.clone(),
                platform_data: Some(self.platform_data.0.clone()),
            },
        )
    }

    fn place(&self) -> SubjectVideo {
        SubjectVideo { subject_id: self.subject_id, video_id: self.internal_id }
    }
}

/// The columns that an observation decides.
#[derive(Serialize)]
pub(super) struct Columns {
    pub(super) id: Uuid,
    pub(super) internal_id: i64,
    pub(super) platform: Platform,
    pub(super) external_id: Option<String>,
    pub(super) shortcode: Option<String>,
    pub(super) account_id: Option<Uuid>,
    pub(super) subject_id: i64,
    pub(super) is_tracked: bool,
    pub(super) is_active: bool,
    pub(super) url: Option<String>,
    pub(super) description: Option<String>,
    pub(super) description_key: Option<String>,
    pub(super) media_type: Option<String>,
    pub(super) duration: Option<f64>,
    pub(super) cover_image_url_original: Option<String>,
    pub(super) video_url_original: Option<String>,
    pub(super) platform_data: serde_json::Value,
    pub(super) create_time: Option<DateTime<Utc>>,
    pub(super) view_count: i64,
    pub(super) like_count: i64,
    pub(super) comment_count: i64,
    pub(super) share_count: i64,
    pub(super) saved_count: Option<i64>,
    pub(super) play_count: i64,
    pub(super) ig_play_count: Option<i64>,
    pub(super) fb_play_count: Option<i64>,
    pub(super) fb_like_count: Option<i64>,
    pub(super) observed_at: Option<DateTime<Utc>>,
    pub(super) known_at: Option<KnownAt>,
    pub(super) tracked_since: Option<NaiveDate>,
    pub(super) scraped_at: Option<DateTime<Utc>>,
}

/// A video in the making: what is stored of it, if anything, and what the batch adds.
struct Draft {
    id: Uuid,
    internal_id: i64,
    stored: Option<Row>,
    platform: Platform,
    external_id: Option<String>,
    shortcode: Option<String>,
    /// The account that keeps it.
    account: Option<Uuid>,
    subject_id: i64,
    is_tracked: bool,
    is_active: bool,
    latest: VideoLatest,
    observations: Vec<(DateTime<Utc>, Counters)>,
    scraped_at: Option<DateTime<Utc>>,
}

/// Videos that turned out to be others: the id of each that is gone, with the one that it was merged into.
pub type Merged = HashMap<Uuid, Uuid>;

/// What became of observed videos.
#[derive(Debug, Default)]
pub struct Observed {
    pub merged: Merged,
    /// The videos that were meant, by their internal ids.
    pub videos: Vec<i64>,
}

/// Records what was observed of videos of the organization. Two units of work that make the same video at the
/// same time contend: the later one gets [`Error::WriteConflict`] and is to be tried again.
pub async fn observe_videos(
    write: &mut Write,
    now: DateTime<Utc>,
    observed: Vec<ObservedVideo>,
) -> Result<Observed, Error> {
    if observed.is_empty() {
        return Ok(Observed::default());
    }
    let locked = lock_accounts(write, &observed).await?;
    let stored = find(write, &observed).await?;
    let others = stored.iter().filter_map(|row| row.account_id).filter(|account| !locked.contains(account));
    lock_at_once(write, others.collect()).await?;
    let (mut drafts, merged) = assemble(write, observed, stored).await?;
    let mut accounts: BTreeMap<Uuid, Option<NaiveDate>> = BTreeMap::new();
    let (mut made, mut changed) = (Vec::new(), Vec::new());
    for draft in &mut drafts {
        let columns = draft.columns();
        draft.announce(write, &columns);
        if let Some(account) = columns.account_id {
            let start = accounts.entry(account).or_default();
            *start = start.iter().copied().chain(columns.tracked_since).min();
        }
        if draft.stored.is_some() { changed.push(columns) } else { made.push(columns) }
    }
    insert(write, now, made).await?;
    update(write, now, changed).await?;
    start_tracking(write, &accounts).await?;
    let accounts: Vec<_> = accounts.into_keys().collect();
    sums::refresh(write, &accounts).await?;
    Ok(Observed { merged, videos: drafts.into_iter().map(|draft| draft.internal_id).collect() })
}

/// Finds and locks the rows that the batch may mean.
async fn find(write: &mut Write, observed: &[ObservedVideo]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for platform in Platform::ALL {
        let of_platform = || observed.iter().filter(move |video| video.platform == platform);
        let external_ids: Vec<_> = of_platform().filter_map(|video| video.external_id.as_deref()).collect();
        let shortcodes: Vec<_> = of_platform().filter_map(|video| video.shortcode.as_deref()).collect();
        if external_ids.is_empty() && shortcodes.is_empty() {
            continue;
        }
        let found: Vec<Row> = sqlx::query_as(
            "select v.id, v.internal_id, v.platform, v.external_id, v.shortcode, v.account_id,
                    v.subject_id, v.is_tracked, v.url, v.description, v.media_type, v.duration, v.cover_image_url_original,
                    v.video_url_original, v.platform_data, v.create_time, v.view_count, v.like_count,
                    v.comment_count, v.share_count, v.saved_count, v.play_count, v.ig_play_count, v.fb_play_count,
                    v.fb_like_count, v.observed_at, v.known_at, v.tracked_since
             from videos v
             where v.organization_id = $1 and v.platform = $2
               and (v.external_id = any($3) or v.shortcode = any($4))
             order by v.id for update of v",
        )
        .bind(write.organization())
        .bind(platform)
        .bind(external_ids)
        .bind(shortcodes)
        .fetch_all(write.connection())
        .await?;
        rows.extend(found);
    }
    Ok(rows)
}

/// Brings every observation to the one video it means.
async fn assemble(
    write: &mut Write,
    observed: Vec<ObservedVideo>,
    stored: Vec<Row>,
) -> Result<(Vec<Draft>, Merged), Error> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(observed.len());
    let mut by_external_id: HashMap<(Platform, String), usize> = HashMap::new();
    let mut by_shortcode: HashMap<(Platform, String), usize> = HashMap::new();
    for row in stored {
        let n = drafts.len();
        by_external_id.extend(row.external_id.clone().map(|id| ((row.platform, id), n)));
        by_shortcode.extend(row.shortcode.clone().map(|code| ((row.platform, code), n)));
        drafts.push(Draft::of(row));
    }
    let mut merged: HashMap<usize, usize> = HashMap::new();
    for video in observed {
        let external = video.external_id.clone().map(|id| (video.platform, id));
        let short = video.shortcode.clone().map(|code| (video.platform, code));
        let resolve = |n: Option<&usize>| n.map(|n| merged.get(n).copied().unwrap_or(*n));
        let by_id = external.as_ref().and_then(|key| resolve(by_external_id.get(key)));
        let by_code = short.as_ref().and_then(|key| resolve(by_shortcode.get(key)));
        let n = match (by_id, by_code) {
            (Some(one), Some(other)) if one != other => {
                let (kept, lost) = (one.min(other), one.max(other));
                merge(write, &mut drafts, kept, lost).await?;
                merged.insert(lost, kept);
                kept
            }
            (Some(n), _) | (None, Some(n)) => n,
            (None, None) => {
                drafts.push(Draft::new(&video));
                drafts.len() - 1
            }
        };
        by_external_id.extend(external.map(|key| (key, n)));
        by_shortcode.extend(short.map(|key| (key, n)));
        drafts[n].add(write, video);
    }
    let gone = merged.iter().map(|(lost, kept)| (drafts[*lost].id, drafts[*kept].id)).collect();
    let mut drafts: Vec<_> = drafts
        .into_iter()
        .enumerate()
        .filter(|(n, _)| !merged.contains_key(n))
        .map(|(_, draft)| draft)
        .collect();
    let new: Vec<_> = drafts.iter_mut().filter(|draft| draft.stored.is_none()).collect();
    let ids: Vec<i64> = sqlx::query_scalar("select nextval('internal_ids') from generate_series(1, $1)")
        .bind(new.len() as i32)
        .fetch_all(write.connection())
        .await?;
    for (draft, internal_id) in new.into_iter().zip(ids) {
        draft.internal_id = internal_id;
        if draft.account.is_none() {
            draft.subject_id = internal_id;
        }
    }
    Ok((drafts, gone))
}

/// Two videos turn out to be one: the older id stays, and both kinds hold. Stored rows stand first and in the
/// order of their ids, which is the order of time, so the earlier one is the older.
async fn merge(write: &mut Write, drafts: &mut [Draft], kept: usize, lost: usize) -> Result<(), Error> {
    let (before, after) = drafts.split_at_mut(lost);
    let (kept, lost) = (&mut before[kept], &mut after[0]);
    if let Some(account) = lost.account {
        kept.attach(write, AccountRef { id: account, subject_id: lost.subject_id });
    }
    if !kept.is_tracked {
        kept.is_active = lost.is_active;
    }
    kept.is_tracked |= lost.is_tracked;
    kept.external_id = kept.external_id.take().or(lost.external_id.take());
    kept.shortcode = kept.shortcode.take().or(lost.shortcode.take());
    kept.latest.merge(std::mem::take(&mut lost.latest));
    kept.observations.append(&mut lost.observations);
    kept.scraped_at = kept.scraped_at.max(lost.scraped_at);
    let Some(lost_row) = &lost.stored else { return Ok(()) };
    let from = lost_row.place();
    let place = SubjectVideo { subject_id: kept.subject_id, video_id: kept.internal_id };
    write.record_video_move(from, place);
    write.record_video_change(lost_row.id);
    let organization = write.organization();
    let (kept_id, lost_id) = (kept.id, lost_row.id);
    // The tracking of the one that goes passes on before its row does.
    sqlx::query(
        "update videos k set
            is_active = case when k.is_tracked then k.is_active else l.is_active end,
            is_unavailable = case when k.is_tracked then k.is_unavailable else l.is_unavailable end,
            metadata = case when k.is_tracked then k.metadata else l.metadata end,
            scrape_interval_hours = case when k.is_tracked then k.scrape_interval_hours else l.scrape_interval_hours end,
            is_tracked = k.is_tracked or l.is_tracked,
            tracked_at = coalesce(k.tracked_at, l.tracked_at),
            tracked_since = least(k.tracked_since, l.tracked_since),
            first_scrape_time = least(k.first_scrape_time, l.first_scrape_time),
            last_scrape_time = greatest(k.last_scrape_time, l.last_scrape_time)
         from videos l where k.organization_id = $1 and l.organization_id = $1 and k.id = $2 and l.id = $3",
    )
    .bind(organization)
    .bind(kept_id)
    .bind(lost_id)
    .execute(write.connection())
    .await?;
    targets::merge(write, lost_id, kept_id).await?;
    sqlx::query("delete from videos where organization_id = $1 and id = $2")
        .bind(organization)
        .bind(lost_id)
        .execute(write.connection())
        .await?;
    Ok(())
}

impl Draft {
    fn of(row: Row) -> Self {
        Draft {
            id: row.id,
            internal_id: row.internal_id,
            platform: row.platform,
            external_id: row.external_id.clone(),
            shortcode: row.shortcode.clone(),
            account: row.account_id,
            subject_id: row.subject_id,
            is_tracked: row.is_tracked,
            is_active: true,
            latest: row.latest(),
            observations: Vec::new(),
            scraped_at: None,
            stored: Some(row),
        }
    }

    fn new(video: &ObservedVideo) -> Self {
        Draft {
            id: Uuid::now_v7(),
            internal_id: 0,
            stored: None,
            platform: video.platform,
            external_id: None,
            shortcode: None,
            account: None,
            subject_id: 0,
            is_tracked: false,
            is_active: true,
            latest: VideoLatest::default(),
            observations: Vec::new(),
            scraped_at: None,
        }
    }

    /// Adds what one observed video says.
    fn add(&mut self, write: &mut Write, video: ObservedVideo) {
        match video.found_on {
            FoundOn::Account(account) => self.attach(write, account),
            FoundOn::Itself { active } => {
                if !self.is_tracked {
                    self.is_active = active;
                }
                self.is_tracked = true;
            }
        }
        self.external_id = self.external_id.take().or(video.external_id);
        self.shortcode = self.shortcode.take().or(video.shortcode);
        self.latest.merge(video.latest);
        // Without any counter it describes the video and is no observation.
        self.observations.extend(video.observations.into_iter().filter(|(_, counters)| !counters.is_empty()));
        self.scraped_at = self.scraped_at.max(video.scraped_at);
    }

    /// Gives the video to the account unless another one has it already; its history goes along.
    fn attach(&mut self, write: &mut Write, account: AccountRef) {
        if self.account.is_some() {
            return;
        }
        self.account = Some(account.id);
        self.subject_id = account.subject_id;
        if let Some(row) = &self.stored {
            write.record_video_move(
                row.place(),
                SubjectVideo { subject_id: account.subject_id, video_id: row.internal_id },
            );
        }
    }

    fn first_day(&self) -> Option<NaiveDate> {
        let stored = self.stored.as_ref().and_then(|row| row.tracked_since);
        stored.into_iter().chain(self.observations.iter().map(|(at, _)| at.date_naive())).min()
    }

    fn columns(&self) -> Columns {
        let latest = &self.latest;
        let observed_at = self.stored.as_ref().and_then(|row| row.observed_at).max(latest.observed_at());
        let known_at = latest.known_at(observed_at);
        let description = latest.description.get().cloned();
        Columns {
            id: self.id,
            internal_id: self.internal_id,
            platform: self.platform,
            external_id: self.external_id.clone(),
            shortcode: self.shortcode.clone(),
            account_id: self.account,
            subject_id: self.subject_id,
            is_tracked: self.is_tracked,
            is_active: self.is_active,
            url: latest.url.get().cloned(),
            description_key: description.as_deref().map(fold_case),
            description,
            media_type: latest.media_type.get().cloned(),
            duration: latest.duration.get().cloned(),
            cover_image_url_original: latest.cover_image_url.get().cloned(),
            video_url_original: latest.video_url.get().cloned(),
            platform_data: latest.platform_data.get().cloned().unwrap_or_else(|| serde_json::json!({})),
            create_time: latest.create_time.get().cloned(),
            view_count: latest.view_count.get().cloned().unwrap_or_default(),
            like_count: latest.like_count.get().cloned().unwrap_or_default(),
            comment_count: latest.comment_count.get().cloned().unwrap_or_default(),
            share_count: latest.share_count.get().cloned().unwrap_or_default(),
            saved_count: latest.saved_count.get().cloned(),
            play_count: latest.play_count.get().cloned().unwrap_or_default(),
            ig_play_count: latest.ig_play_count.get().cloned(),
            fb_play_count: latest.fb_play_count.get().cloned(),
            fb_like_count: latest.fb_like_count.get().cloned(),
            observed_at,
            known_at: (!known_at.is_empty()).then_some(known_at),
            tracked_since: self.first_day(),
            scraped_at: self.scraped_at,
        }
    }

    /// Tells the unit of work what follows from this video.
    fn announce(&mut self, write: &mut Write, columns: &Columns) {
        // Gains follow from where a video belongs and when it was posted.
        let gains_anew = self
            .stored
            .as_ref()
            .is_none_or(|row| row.account_id != columns.account_id || row.create_time != columns.create_time);
        let described_anew = gains_anew
            || self.stored.as_ref().is_some_and(|row| {
                row.description != columns.description
                    || row.external_id != columns.external_id
                    || row.shortcode != columns.shortcode
                    || row.is_tracked != columns.is_tracked
            });
        let subject_id = self.subject_id;
        if described_anew {
            write.record_video_change(self.id);
        }
        if gains_anew {
            write.record_subject_change(subject_id, columns.tracked_since);
        }
        for (observed_at, counters) in self.observations.drain(..) {
            write.record_video_snapshot(VideoSnapshot {
                subject_id,
                video_id: self.internal_id,
                observed_at,
                counters,
            });
        }
    }
}

/// Brings the rows of known videos up to date.
async fn update(write: &mut Write, now: DateTime<Utc>, changed: Vec<Columns>) -> Result<(), Error> {
    if changed.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update videos v set
            external_id = x.external_id, shortcode = x.shortcode, account_id = x.account_id,
            subject_id = x.subject_id,
            is_active = case when v.is_tracked then v.is_active else x.is_active end,
            tracked_at = coalesce(v.tracked_at, case when x.is_tracked then $3 end), is_tracked = x.is_tracked,
            url = x.url, description = x.description, description_key = x.description_key,
            media_type = x.media_type, duration = x.duration, cover_image_url_original = x.cover_image_url_original,
            video_url_original = x.video_url_original, platform_data = x.platform_data, create_time = x.create_time,
            view_count = x.view_count, like_count = x.like_count, comment_count = x.comment_count,
            share_count = x.share_count, saved_count = x.saved_count, play_count = x.play_count,
            ig_play_count = x.ig_play_count, fb_play_count = x.fb_play_count, fb_like_count = x.fb_like_count,
            observed_at = x.observed_at, known_at = x.known_at,
            tracked_since = least(v.tracked_since, x.tracked_since),
            first_scrape_time = least(v.first_scrape_time, x.scraped_at),
            last_scrape_time = greatest(v.last_scrape_time, x.scraped_at),
            updated_at = $3
         from jsonb_to_recordset($2) as x(
            id uuid, internal_id bigint, platform text, external_id text, shortcode text, account_id uuid,
            subject_id bigint, is_tracked boolean, is_active boolean, url text, description text, description_key text, media_type text,
            duration double precision, cover_image_url_original text, video_url_original text, platform_data jsonb,
            create_time timestamptz, view_count bigint, like_count bigint, comment_count bigint, share_count bigint,
            saved_count bigint, play_count bigint, ig_play_count bigint, fb_play_count bigint, fb_like_count bigint,
            observed_at timestamptz, known_at jsonb, tracked_since date, scraped_at timestamptz)
         where v.organization_id = $1 and v.id = x.id",
    )
    .bind(write.organization())
    .bind(Json(&changed))
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    let tracked: Vec<_> =
        changed.iter().filter(|columns| columns.is_tracked).map(|columns| columns.id).collect();
    targets::add_videos(write, &tracked, now).await
}

/// Tracking of an account began with the earliest observation of any of its videos, if that is earlier.
async fn start_tracking(write: &mut Write, starts: &BTreeMap<Uuid, Option<NaiveDate>>) -> Result<(), Error> {
    let (accounts, days): (Vec<_>, Vec<_>) = starts.iter().map(|(account, day)| (*account, *day)).unzip();
    sqlx::query(
        "update accounts a set tracked_since = least(a.tracked_since, x.day)
         from unnest($2::uuid[], $3::date[]) as x(id, day)
         where a.organization_id = $1 and a.id = x.id and x.day is not null
           and (a.tracked_since is null or x.day < a.tracked_since)",
    )
    .bind(write.organization())
    .bind(accounts)
    .bind(days)
    .execute(write.connection())
    .await?;
    Ok(())
}
