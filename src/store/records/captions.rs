//! The table `caption_blocks`, captions for `q` on lists of videos: commits keep it up to date.

use std::collections::BTreeSet;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::Error;

/// Changed captions of an organization's videos, by internal id.
#[derive(Default)]
pub(in crate::store) struct CaptionChanges {
    new_videos: (Vec<i64>, Vec<String>),
    stale_blocks: BTreeSet<i64>,
}

/// Internal ids in a block.
const BLOCK_SIZE: i64 = 16;

impl CaptionChanges {
    /// Adds the caption of a new video, unless it is empty.
    pub(in crate::store) fn add(&mut self, video: i64, caption: &str) {
        if !caption.is_empty() {
            self.new_videos.0.push(video);
            self.new_videos.1.push(caption.to_owned());
        }
    }

    /// Has the caption of a stored video read again, or removed with it.
    pub(in crate::store) fn refresh(&mut self, video: i64) {
        self.stale_blocks.insert(video / BLOCK_SIZE);
    }

    /// Writes the changes, after those of the videos.
    pub(in crate::store) async fn write(
        self,
        connection: &mut PgConnection,
        organization: Uuid,
    ) -> Result<(), Error> {
        let (videos, captions) = self.new_videos;
        if !videos.is_empty() {
            sqlx::query(
                "insert into caption_blocks (organization_id, block, videos, captions)
                 select $1, video / $4, array_agg(video order by video), string_agg(caption, 'A' order by video)
                 from unnest($2::bigint[], $3::text[]) as x(video, caption) group by 2",
            )
            .bind(organization)
            .bind(videos)
            .bind(captions)
            .bind(BLOCK_SIZE)
            .execute(&mut *connection)
            .await?;
        }
        if !self.stale_blocks.is_empty() {
            sqlx::query(REBUILD)
                .bind(organization)
                .bind(self.stale_blocks.into_iter().collect::<Vec<_>>())
                .bind(BLOCK_SIZE)
                .execute(connection)
                .await?;
        }
        Ok(())
    }
}

/// Rows of a block that another transaction has locked are skipped, so that scrapes of different accounts neither wait nor
/// deadlock.
const REBUILD: &str = "
    with removed as (
        delete from caption_blocks where ctid = any(array(
            select ctid from caption_blocks where organization_id = $1 and block = any($2)
            for update skip locked
        ))
    )
    insert into caption_blocks (organization_id, block, videos, captions)
    select $1, stale.block, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from unnest($2) as stale(block)
    join videos on internal_id between stale.block * $3 and stale.block * $3 + $3 - 1
    where organization_id = $1 and description_key <> ''
    group by stale.block";
