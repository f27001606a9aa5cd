//! The rows of videos that were not there before.

use chrono::{DateTime, Utc};

use super::videos::Columns;
use crate::store::postgres::copy::{CopyRows, Jsonb};
use crate::store::tracking::targets;
use crate::store::{Error, Write};

const COPY: &str = "copy videos (
        id, internal_id, organization_id, platform, external_id, shortcode, account_id, subject_id, is_tracked, is_active,
        url, description, description_key, media_type, duration, cover_image_url_original, video_url_original,
        platform_data, create_time, view_count, like_count, comment_count, share_count, saved_count, play_count,
        ig_play_count, fb_play_count, fb_like_count, observed_at, known_at, tracked_since, first_scrape_time,
        last_scrape_time, added_at, updated_at, tracked_at
    ) from stdin (format binary)";

/// Makes the rows of new videos, and what collects those that are tracked on their own.
pub(super) async fn insert(write: &mut Write, now: DateTime<Utc>, made: Vec<Columns>) -> Result<(), Error> {
    if made.is_empty() {
        return Ok(());
    }
    let (organization, added_at) = (write.organization(), Utc::now());
    let mut rows = CopyRows::new();
    for row in &made {
        let platform_data = row.platform_data.to_string();
        let known_at = row.known_at.as_ref().map(|known_at| serde_json::json!(known_at).to_string());
        rows.push(&[
            &row.id,
            &row.internal_id,
            &organization,
            &row.platform.as_str(),
            &row.external_id,
            &row.shortcode,
            &row.account_id,
            &row.subject_id,
            &row.is_tracked,
            &row.is_active,
            &row.url,
            &row.description,
            &row.description_key,
            &row.media_type,
            &row.duration,
            &row.cover_image_url_original,
            &row.video_url_original,
            &Jsonb(&platform_data),
            &row.create_time,
            &row.view_count,
            &row.like_count,
            &row.comment_count,
            &row.share_count,
            &row.saved_count,
            &row.play_count,
            &row.ig_play_count,
            &row.fb_play_count,
            &row.fb_like_count,
            &row.observed_at,
            &known_at.as_deref().map(Jsonb),
            &row.tracked_since,
            &row.scraped_at,
            &row.scraped_at,
            &added_at,
            &added_at,
            &row.is_tracked.then_some(added_at),
        ]);
    }
    rows.copy(write, COPY).await?;
    let tracked: Vec<_> =
        made.iter().filter(|columns| columns.is_tracked).map(|columns| columns.id).collect();
    targets::add_videos(write, &tracked, now).await
}
