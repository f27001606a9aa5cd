//! A video while a batch of observations is applied to it.

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::thresholds::Threshold;
use super::video_rows::{StoredVideo, VideoRow};
use super::{AccountRef, ObservedVideo, VideoOrigin};
use crate::model::counters::Counters;
use crate::model::hashtag::hashtags;
use crate::model::identifier::VideoIds;
use crate::model::observed::VideoLatest;
use crate::model::platform::Platform;
use crate::model::snapshot::VideoSnapshot;
use crate::model::text::search_key;
use crate::store::outbox::event::SubjectVideo;
use crate::store::pictures;
use crate::store::records::collections::marks;
use crate::store::records::events::{self, candidates::ObservedDays};
use crate::store::tracking::targets;
use crate::store::write::Post;
use crate::store::{Error, Write};

pub(super) struct VideoDraft {
    pub(super) id: Uuid,
    pub(super) internal_id: i64,
    /// Boxed, because most drafts of an import have none.
    pub(super) stored: Option<Box<StoredVideo>>,
    pub(super) platform: Platform,
    pub(super) ids: VideoIds,
    pub(super) account_id: Option<Uuid>,
    /// The accounts that lose a record of the video, because it was merged into this one.
    pub(super) former_accounts: Vec<Uuid>,
    subject_id: i64,
    is_tracked: bool,
    is_active: bool,
    pub(super) latest: VideoLatest,
    /// The highest threshold of views that it, or a video that was merged into it, had passed.
    passed_views: i64,
    /// As stored.
    observed_at: Option<DateTime<Utc>>,
    /// The tracking start, as stored.
    tracked_since: Option<NaiveDate>,
    updated_at: DateTime<Utc>,
    observations: Vec<(DateTime<Utc>, Counters)>,
    pub(super) scraped_at: Option<DateTime<Utc>>,
}

impl VideoDraft {
    pub(super) fn from_stored(stored: StoredVideo) -> Self {
        let draft = VideoDraft::new(stored.platform);
        VideoDraft {
            id: stored.id,
            internal_id: stored.internal_id,
            ids: stored.ids(),
            account_id: stored.account_id,
            subject_id: stored.subject_id,
            is_tracked: stored.is_tracked,
            latest: stored.latest.clone(),
            passed_views: stored.passed_views(),
            observed_at: stored.observed_at,
            tracked_since: stored.tracked_since,
            updated_at: stored.updated_at,
            stored: Some(Box::new(stored)),
            ..draft
        }
    }

    /// Returns an empty draft of a new video, without internal id and subject.
    pub(super) fn new(platform: Platform) -> Self {
        VideoDraft {
            id: Uuid::now_v7(),
            internal_id: 0,
            stored: None,
            platform,
            ids: VideoIds::default(),
            account_id: None,
            former_accounts: Vec::new(),
            subject_id: 0,
            is_tracked: false,
            is_active: true,
            latest: VideoLatest::default(),
            passed_views: 0,
            observed_at: None,
            tracked_since: None,
            updated_at: Utc::now(),
            observations: Vec::new(),
            scraped_at: None,
        }
    }

    /// Sets the internal id of a new video, which is its subject, too, unless it belongs to an account.
    pub(super) const fn set_internal_id(&mut self, internal_id: i64) {
        self.internal_id = internal_id;
        if self.account_id.is_none() {
            self.subject_id = internal_id;
        }
    }

    pub(super) fn apply(&mut self, write: &mut Write, ids: VideoIds, video: ObservedVideo) {
        match video.origin {
            VideoOrigin::Account(account) => self.attach(write, account),
            VideoOrigin::Individual { is_active } => {
                if !self.is_tracked {
                    self.is_active = is_active;
                }
                self.is_tracked = true;
            }
            VideoOrigin::Record => return self.ids.merge(ids),
        }
        self.updated_at = Utc::now();
        self.ids.merge(ids);
        self.latest.merge(video.latest);
        // An observation without counters only describes the video; it is no snapshot.
        self.observations.extend(video.observations.into_iter().filter(|(_, counters)| !counters.is_empty()));
        self.scraped_at = self.scraped_at.max(video.scraped_at);
    }

    /// Assigns the video, with its history, to the account, unless it belongs to one already.
    fn attach(&mut self, write: &mut Write, account: AccountRef) {
        if self.account_id.is_some() {
            return;
        }
        self.account_id = Some(account.id);
        self.subject_id = account.subject_id;
        if let Some(stored) = &self.stored {
            write.record_video_move(stored.subject_video(), self.subject_video());
        }
    }

    /// Returns the URL of the cover at the platform.
    pub(super) fn cover_url(&self) -> Option<&str> {
        self.latest.cover_image_url.get().map(String::as_str)
    }

    const fn subject_video(&self) -> SubjectVideo {
        SubjectVideo { subject_id: self.subject_id, video_id: self.internal_id }
    }

    /// Merges a newer draft of the same video into this one, and deletes its row.
    pub(super) async fn merge(&mut self, write: &mut Write, newer: &mut VideoDraft) -> Result<(), Error> {
        if let Some(account_id) = newer.account_id {
            self.former_accounts.push(account_id);
            self.attach(write, AccountRef { id: account_id, subject_id: newer.subject_id });
        }
        if !self.is_tracked {
            self.is_active = newer.is_active;
        }
        self.is_tracked |= newer.is_tracked;
        self.updated_at = Utc::now();
        self.ids.merge(std::mem::take(&mut newer.ids));
        self.latest.merge(std::mem::take(&mut newer.latest));
        self.passed_views = self.passed_views.max(newer.passed_views);
        self.observed_at = self.observed_at.max(newer.observed_at);
        self.tracked_since = self.tracked_since.into_iter().chain(newer.tracked_since).min();
        self.former_accounts.append(&mut newer.former_accounts);
        self.observations.append(&mut newer.observations);
        self.scraped_at = self.scraped_at.max(newer.scraped_at);
        let Some(deleted) = &newer.stored else { return Ok(()) };
        write.record_video_move(deleted.subject_video(), self.subject_video());
        write.record_video_change(deleted.id);
        write.record_post_removal(&deleted.post());
        merge_rows(write, self.id, deleted.id).await
    }

    /// Returns how its views change.
    pub(super) fn view_threshold(&self) -> Threshold {
        let passed_before = self.stored.as_ref().and_then(|stored| stored.passed_views);
        Threshold { before: Some(self.passed_views), passed_before, now: self.latest.counters().view_count }
    }

    /// Returns the days between which a stored post was not observed.
    pub(super) fn observed_days(&self) -> Option<ObservedDays> {
        let observed_at = self.scraped_at.or(self.latest.observed_at())?;
        Some(ObservedDays {
            posted_on: self.latest.create_time.get()?.date_naive(),
            previous: self.stored.as_ref()?.observed_at?.date_naive(),
            observed_on: observed_at.date_naive(),
        })
    }

    /// Returns the tracking start: the day of the first observation.
    pub(super) fn tracked_since(&self) -> Option<NaiveDate> {
        self.tracked_since.into_iter().chain(self.observations.iter().map(|(at, _)| at.date_naive())).min()
    }

    pub(super) fn to_row(&self) -> VideoRow {
        let latest = &self.latest;
        let observed_at = self.observed_at.max(latest.observed_at());
        let (shortcode, whole_shortcode) = (self.ids.shortcode_key(), self.ids.shortcode());
        VideoRow {
            id: self.id,
            internal_id: self.internal_id,
            platform: self.platform,
            external_id: self.ids.external_id().map(str::to_owned),
            shortcode: shortcode.map(str::to_owned),
            whole_shortcode: whole_shortcode.filter(|_| whole_shortcode != shortcode).map(str::to_owned),
            account_id: self.account_id,
            subject_id: self.subject_id,
            is_tracked: self.is_tracked,
            is_active: self.is_active,
            description_key: latest.description.get().map(|text| search_key(text)),
            hashtags: latest.description.get().map(|text| hashtags(text)).unwrap_or_default(),
            observed_at,
            known_at: latest.known_at(observed_at).to_json(),
            tracked_since: self.tracked_since(),
            updated_at: self.updated_at,
            counters: latest.counters().or_zero(),
            fields: latest.fields(),
            scraped_at: self.scraped_at,
        }
    }

    /// Records what changes by writing this row: search documents, captions, posts per day, the scrape target, gains and
    /// snapshots.
    pub(super) fn record_changes(&mut self, write: &mut Write, row: &VideoRow) {
        let stored = self.stored.as_ref();
        // Gains depend on the account and the day of posting, breakouts on the media type, too.
        let rollups_change = stored.is_none_or(|stored| {
            stored.account_id != row.account_id
                || stored.latest.create_time.get() != self.latest.create_time.get()
                || stored.latest.media_type.get() != self.latest.media_type.get()
        });
        let description_changes = stored.is_none_or(|stored| {
            stored.latest.description.get() != self.latest.description.get()
                || stored.external_id != row.external_id
                || stored.shortcode.as_deref() != self.ids.shortcode()
                || stored.is_tracked != row.is_tracked
                || stored.latest.url.get() != self.latest.url.get()
                || stored.latest.duration.get() != self.latest.duration.get()
        });
        if rollups_change || description_changes {
            write.record_video_change(self.id);
        }
        let target_changes = stored.is_some_and(|stored| {
            stored.external_id.is_none() != row.external_id.is_none()
                || stored.shortcode.is_none() != row.shortcode.is_none()
                || (!stored.is_scraped && row.scraped_at.is_some())
        });
        if row.is_tracked && target_changes {
            write.record_target_change(self.id);
        }
        if rollups_change {
            write.record_subject_change(self.subject_id, row.tracked_since);
        }
        self.record_post(write, row);
        self.tracked_since = row.tracked_since;
        let SubjectVideo { subject_id, video_id } = self.subject_video();
        for (observed_at, counters) in self.observations.drain(..) {
            write.record_video_snapshot(VideoSnapshot { subject_id, video_id, observed_at, counters });
        }
    }
    fn record_post(&self, write: &mut Write, row: &VideoRow) {
        let create_time = self.latest.create_time.get().copied();
        let Some(stored) = &self.stored else {
            let post = Post { video_id: self.internal_id, platform: self.platform, create_time };
            return write.record_new_post(&post, row.description_key.as_deref());
        };
        if stored.latest.create_time.get() != self.latest.create_time.get() {
            write.record_post_move(&stored.post(), create_time);
        }
        if stored.latest.description.get() != self.latest.description.get() {
            write.record_caption_change(self.internal_id);
        }
    }
}

/// Merges the individual tracking of one row into another, and deletes it.
async fn merge_rows(write: &mut Write, remaining: Uuid, deleted: Uuid) -> Result<(), Error> {
    sqlx::query(
        "update videos r set
            is_active = case when r.is_tracked then r.is_active else d.is_active end,
            is_unavailable = case when r.is_tracked then r.is_unavailable else d.is_unavailable end,
            metadata = case when r.is_tracked then r.metadata else d.metadata end,
            scrape_interval_hours = case when r.is_tracked then r.scrape_interval_hours else d.scrape_interval_hours end,
            is_tracked = r.is_tracked or d.is_tracked,
            tracked_at = coalesce(r.tracked_at, d.tracked_at),
            tracked_since = least(r.tracked_since, d.tracked_since),
            first_scrape_time = least(r.first_scrape_time, d.first_scrape_time),
            last_scrape_time = greatest(r.last_scrape_time, d.last_scrape_time)
         from videos d where r.organization_id = $1 and d.organization_id = $1 and r.id = $2 and d.id = $3",
    )
    .bind(write.organization())
    .bind(remaining)
    .bind(deleted)
    .execute(write.connection())
    .await?;
    targets::merge(write, deleted, remaining).await?;
    pictures::merge(write, deleted, remaining).await?;
    marks::merge(write, remaining, deleted).await?;
    events::merge(write, remaining, deleted).await?;
    sqlx::query("delete from videos where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(deleted)
        .execute(write.connection())
        .await?;
    Ok(())
}
