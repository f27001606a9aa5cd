//! `content.csv`

use salvo::Writer;
use salvo_oapi::endpoint;

use super::{ExportFilter, ExportRequest, FIRST_BATCH_ROWS, Reader, metric_fields};
use crate::api::content;
use crate::app::App;
use crate::http::input::{QueryParams, variant_name};
use crate::http::{CsvFile, CsvRows, CsvSource, Result};
use crate::model::content::{ContentKind, ContentRow};
use crate::model::field::ToField;
use crate::model::gains::Gains;
use crate::store::analytics::exports::{MAX_VIDEOS, fetch_video_gains};
use crate::store::records::content::{ContentFilter, ContentReader};

impl ExportFilter for ContentFilter {
    fn read(query: &mut QueryParams<'_>) -> Self {
        content::read_filter(query)
    }
}

/// Export content
///
/// Videos discovered on accounts and videos tracked individually, each once and in no particular order: their lifetime
/// counters beside the gains of the window under the names of `metrics`. The connection breaks off if the file cannot be
/// completed.
#[endpoint(operation_id = "exportContent")]
pub(super) async fn get(app: App, request: ExportRequest<ContentFilter>) -> Result<CsvFile<ContentRows>> {
    let (reader, filter, raw) = Reader::from_request(request);
    let organization = reader.organization;
    let videos = ContentReader::open(&reader.pg, organization, filter).await?;
    let source = ContentRows { reader, videos, limit: FIRST_BATCH_ROWS };
    CsvFile::begin(&app.exports, organization, raw, source).await
}

pub(super) struct ContentRows {
    reader: Reader,
    videos: ContentReader,
    limit: i64,
}

impl CsvSource for ContentRows {
    const FILE_NAME: &'static str = "content.csv";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "platform",
        "external_id",
        "url",
        "description",
        "media_type",
        "create_time",
        "account_username",
        "creator_name",
        "kinds",
        "view_count",
        "like_count",
        "comment_count",
        "share_count",
        "saved_count",
        "play_count",
        "views",
        "plays",
        "likes",
        "comments",
        "shares",
        "engagement",
        "engagement_rate",
    ];

    async fn add_rows(&mut self, rows: &mut CsvRows) -> Result<bool> {
        let Reader { pg, history, organization, window, .. } = &self.reader;
        let limit = std::mem::replace(&mut self.limit, MAX_VIDEOS as i64);
        let Some(videos) = self.videos.next(pg, limit).await? else { return Ok(false) };
        let ids: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
        let gains = fetch_video_gains(history, *organization, &ids, *window).await?;
        for video in &videos {
            let gains = gains.get(&video.internal_id).copied().unwrap_or_default();
            add_video(rows, video, &gains)?;
        }
        Ok(true)
    }
}

fn add_video(rows: &mut CsvRows, video: &ContentRow, gains: &Gains) -> Result<()> {
    let kinds = ContentKind::list(video.account_id.is_some(), video.is_tracked);
    let kinds = kinds.into_iter().map(variant_name).collect::<Vec<_>>().join("+");
    let counters = &video.counters;
    let mut fields = vec![
        video.id.to_field(),
        video.platform.to_field(),
        video.external_id.to_field(),
        video.url.to_field(),
        video.description.to_field(),
        video.media_type.to_field(),
        video.create_time.to_field(),
        video.account_username.to_field(),
        video.creator_name.to_field(),
        kinds.to_field(),
        counters.view_count.to_field(),
        counters.like_count.to_field(),
        counters.comment_count.to_field(),
        counters.share_count.to_field(),
        counters.saved_count.to_field(),
        counters.play_count.to_field(),
    ];
    fields.extend(metric_fields(gains));
    rows.add(&fields)
}
