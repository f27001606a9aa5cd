//! Rows of `videos` as observations read, insert and update them.

use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::row::{self, format_columns, observed_row};
use super::thresholds::Threshold;
use super::{ObservedVideo, record_keys};
use crate::model::counters::Counters;
use crate::model::field::{FieldValue, ToField};
use crate::model::identifier::VideoIds;
use crate::model::observed::{VideoFields, VideoLatest};
use crate::model::platform::Platform;
use crate::store::outbox::event::SubjectVideo;
use crate::store::postgres::copy::CopyRows;
use crate::store::write::Post;
use crate::store::{Error, Write};

#[derive(sqlx::FromRow)]
pub(super) struct StoredVideo {
    pub(super) id: Uuid,
    pub(super) internal_id: i64,
    pub(super) platform: Platform,
    pub(super) external_id: Option<String>,
    /// All of it.
    pub(super) shortcode: Option<String>,
    pub(super) account_id: Option<Uuid>,
    pub(super) subject_id: i64,
    pub(super) is_tracked: bool,
    #[sqlx(flatten)]
    pub(super) latest: VideoLatest,
    pub(super) observed_at: Option<DateTime<Utc>>,
    pub(super) tracked_since: Option<NaiveDate>,
    pub(super) is_scraped: bool,
    pub(super) updated_at: DateTime<Utc>,
    pub(super) passed_views: Option<i64>,
}

impl StoredVideo {
    pub(super) const fn subject_video(&self) -> SubjectVideo {
        SubjectVideo { subject_id: self.subject_id, video_id: self.internal_id }
    }

    pub(super) fn ids(&self) -> VideoIds {
        VideoIds::new(self.platform, self.external_id.as_deref(), self.shortcode.as_deref())
    }

    /// The highest threshold that its views had passed.
    pub(super) fn passed_views(&self) -> i64 {
        let (before, passed_before) = (self.latest.counters().view_count, self.passed_views);
        Threshold { before, passed_before, now: before }.passed()
    }

    pub(super) fn post(&self) -> Post {
        let create_time = self.latest.create_time.get().copied();
        Post { video_id: self.internal_id, platform: self.platform, create_time }
    }
}

observed_row! {
    VideoRow {
        id: Uuid,
        internal_id: i64,
        platform: Platform,
        external_id: Option<String>,
        shortcode: Option<String>,
        whole_shortcode: Option<String>,
        account_id: Option<Uuid>,
        subject_id: i64,
        is_tracked: bool,
        is_active: bool,
        description_key: Option<String>,
        hashtags: Vec<String>,
        observed_at: Option<DateTime<Utc>>,
        known_at: Option<serde_json::Value>,
        tracked_since: Option<NaiveDate>,
        updated_at: DateTime<Utc>,
    }
    Counters VideoFields
}

static SELECT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select v.id, v.internal_id, v.platform, v.external_id, coalesce(v.whole_shortcode, v.shortcode) as shortcode,
                v.account_id, v.subject_id, v.is_tracked, {}, v.observed_at, v.known_at, v.tracked_since, v.last_scrape_time is not null as is_scraped, v.updated_at,
                v.passed_views
         from videos v
         where v.organization_id = $1 and v.platform = $2
           and (v.external_id = any($3) or v.shortcode = any($4))
         order by v.id for update of v",
        format_columns(&Counters::NAMES, VideoFields::LIST, |name| format!("v.{name}"))
    )
});

static UPDATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "update videos v set
            external_id = x.external_id, shortcode = x.shortcode, whole_shortcode = x.whole_shortcode,
            account_id = x.account_id, subject_id = x.subject_id,
            is_active = case when v.is_tracked then v.is_active else x.is_active end,
            tracked_at = coalesce(v.tracked_at, case when x.is_tracked then $3 end), is_tracked = x.is_tracked,
            description_key = x.description_key, hashtags = x.hashtags, {},
            observed_at = x.observed_at, known_at = x.known_at,
            tracked_since = least(v.tracked_since, x.tracked_since),
            first_scrape_time = least(v.first_scrape_time, x.scraped_at),
            last_scrape_time = greatest(v.last_scrape_time, x.scraped_at),
            updated_at = x.updated_at
         from jsonb_to_recordset($2) as x({})
         where v.organization_id = $1 and v.id = x.id",
        format_columns(&Counters::NAMES, VideoFields::LIST, |name| format!("{name} = x.{name}")),
        VideoRow::column_definitions()
    )
});

/// Selects and locks the rows of observed videos.
pub(super) async fn select(write: &mut Write, observed: &[ObservedVideo]) -> Result<Vec<StoredVideo>, Error> {
    let mut stored = Vec::new();
    for (platform, (external_ids, shortcodes)) in record_keys(observed.iter()) {
        let query = sqlx::query_as(SELECT.as_str())
            .bind(write.organization())
            .bind(platform)
            .bind(external_ids)
            .bind(shortcodes);
        stored.extend(query.fetch_all(write.connection()).await?);
    }
    Ok(stored)
}

/// Inserts new videos.
pub(super) async fn insert(write: &mut Write, rows: Vec<VideoRow>) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let (organization, added_at) = (write.organization(), FieldValue::Time(Utc::now()));
    let mut copy = CopyRows::new();
    for row in &rows {
        let scraped_at = row.scraped_at.to_field();
        let more = [
            ("organization_id", FieldValue::Uuid(organization)),
            ("first_scrape_time", scraped_at),
            ("last_scrape_time", scraped_at),
            ("added_at", added_at),
            ("tracked_at", if row.is_tracked { added_at } else { FieldValue::Null }),
        ];
        copy.add(row.columns().chain(more));
    }
    copy.copy_into(write, "videos").await
}

/// Updates stored videos. An id that another unit of work has stored meanwhile is a write conflict.
pub(super) async fn update(write: &mut Write, rows: Vec<VideoRow>) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(UPDATE.as_str())
        .bind(write.organization())
        .bind(Json(&rows))
        .bind(Utc::now())
        .execute(write.connection())
        .await
        .map_err(Error::of_unique_write)?;
    Ok(())
}
