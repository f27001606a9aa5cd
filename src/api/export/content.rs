//! `content.csv` and `content.parquet`

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use uuid::Uuid;

use super::{CsvQuery, ExportQuery, FIRST_BATCH_ROWS, Reader};
use crate::app::App;
use crate::http::{Analytics, CsvFile, ParquetFile, Query, Result, RowSource};
use crate::model::content::{ContentKind, ContentRow};
use crate::model::file_row::file_row;
use crate::model::gains::{Gains, Metrics};
use crate::model::platform::Platform;
use crate::store::analytics::exports::MAX_VIDEOS;
use crate::store::analytics::post_gains::{self, PostKey};
use crate::store::records::content::{ContentFilter, ContentReader};

/// Text of a batch; captions of imports may have 128 KiB each.
const BATCH_BYTES: usize = 4 << 20;

/// Export content
///
/// Videos discovered on accounts and videos tracked individually, each once and in no particular order: their lifetime
/// counters beside the gains of the window under the names of `metrics`. The connection is closed early if the file cannot
/// be completed.
#[endpoint(operation_id = "exportContent")]
pub(super) async fn get(
    app: App,
    query: Query<CsvQuery<ContentFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<ContentRows>> {
    let CsvQuery { export, raw } = query.0;
    CsvFile::begin(raw, ContentRows::open(&app, analytics, export).await?).await
}

/// Export content as Parquet
///
/// The rows of `content.csv` with types, and texts as they are. The connection is closed early if the file cannot
/// be completed.
#[endpoint(operation_id = "exportContentParquet")]
pub(super) async fn get_parquet(
    app: App,
    query: Query<ExportQuery<ContentFilter>>,
    analytics: Analytics,
) -> Result<ParquetFile<ContentRows>> {
    ParquetFile::begin(ContentRows::open(&app, analytics, query.0).await?).await
}

pub(super) struct ContentRows {
    reader: Reader,
    videos: ContentReader,
    limit: i64,
}

file_row! {
    pub(super) struct VideoRow {
        id: Uuid,
        platform: Platform,
        external_id: Option<String>,
        url: Option<String>,
        description: Option<String>,
        media_type: Option<String>,
        create_time: Option<DateTime<Utc>>,
        account_username: Option<String>,
        creator_name: Option<String>,
        kinds: String,
        view_count: i64,
        like_count: i64,
        comment_count: i64,
        share_count: i64,
        saved_count: Option<i64>,
        play_count: i64,
        metrics: Metrics,
    }
}

impl ContentRows {
    async fn open(app: &App, analytics: Analytics, query: ExportQuery<ContentFilter>) -> Result<Self> {
        let (reader, filter) = Reader::begin(app, analytics, query)?;
        let organization = reader.organization;
        let videos = ContentReader::open(&*reader.pg.acquire().await?, organization, filter).await?;
        Ok(ContentRows { reader, videos, limit: FIRST_BATCH_ROWS })
    }
}

impl RowSource for ContentRows {
    const FILE_NAME: &'static str = "content";
    type Row = VideoRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<VideoRow>>> {
        let history = self.reader.current_history().await?;
        let Reader { pg, window, .. } = &self.reader;
        let Some(videos) = self.videos.next(&*pg.acquire().await?, self.limit).await? else {
            return Ok(None);
        };
        self.limit = next_limit(&videos);
        let key =
            |video: &ContentRow| PostKey { subject_id: video.subject_id, internal_id: video.internal_id };
        let keys: Vec<_> = videos.iter().map(key).collect();
        let gains = post_gains::fetch_totals(&history, &keys, *window).await?;
        let rows = videos.into_iter().map(|video| {
            let gains = gains.get(&video.internal_id).copied().unwrap_or_default();
            VideoRow::new(video, gains)
        });
        Ok(Some(rows.collect()))
    }
}

/// The next captions are about as long. Few different limits, because each has a statement of its own.
fn next_limit(videos: &[ContentRow]) -> i64 {
    let captions = videos.iter().filter_map(|video| video.description.as_ref());
    let average = captions.map(String::len).sum::<usize>() / videos.len().max(1);
    match BATCH_BYTES / average.max(1) {
        count if count < MAX_VIDEOS => 1 << count.max(1).ilog2(),
        _ => MAX_VIDEOS as i64,
    }
}

impl VideoRow {
    fn new(video: ContentRow, gains: Gains) -> Self {
        let kinds = ContentKind::list(video.account_id.is_some(), video.is_tracked);
        let counters = video.counters;
        VideoRow {
            id: video.id,
            platform: video.platform,
            external_id: video.external_id,
            url: video.url,
            description: video.description,
            media_type: video.media_type,
            create_time: video.create_time,
            account_username: video.account_username,
            creator_name: video.creator_name,
            kinds: kinds.iter().map(ContentKind::to_string).collect::<Vec<_>>().join("+"),
            view_count: counters.view_count,
            like_count: counters.like_count,
            comment_count: counters.comment_count,
            share_count: counters.share_count,
            saved_count: counters.saved_count,
            play_count: counters.play_count,
            metrics: gains.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::LatestCounters;

    fn video(caption_bytes: usize) -> ContentRow {
        ContentRow {
            id: Uuid::nil(),
            internal_id: 1,
            subject_id: 1,
            platform: Platform::Tiktok,
            external_id: None,
            url: None,
            description: Some("x".repeat(caption_bytes)),
            media_type: None,
            create_time: None,
            account_id: None,
            account_username: None,
            creator_name: None,
            is_tracked: true,
            counters: LatestCounters {
                view_count: 0,
                like_count: 0,
                comment_count: 0,
                share_count: 0,
                saved_count: None,
                play_count: 0,
                ig_play_count: None,
                fb_play_count: None,
                fb_like_count: None,
            },
        }
    }

    #[test]
    fn long_captions_make_small_batches() {
        assert_eq!(next_limit(&[]), 2_000);
        assert_eq!(next_limit(&[video(2_000), video(0)]), 2_000);
        assert_eq!(next_limit(&[video(128 << 10)]), 32);
        assert_eq!(next_limit(&[video(100_000)]), 32);
        assert_eq!(next_limit(&[video(8 << 20)]), 1);
    }
}
