//! Completes the ids of videos of earlier versions, which stored each form of an id as it was given, and merges those that are
//! one post.

use std::collections::BTreeMap;

use chrono::Utc;
use sqlx::PgPool;
use uuid::Uuid;

use super::{ObservedVideo, VideoOrigin, save_videos};
use crate::model::identifier::{VideoIds, shortcode_key};
use crate::model::observed::VideoLatest;
use crate::model::platform::Platform;
use crate::store::{Error, Write, retry_on_conflict};

/// Videos that are read at a time.
const BATCH_VIDEOS: i64 = 500;

#[derive(Debug, Clone, sqlx::FromRow)]
struct Candidate {
    id: Uuid,
    organization_id: Uuid,
    external_id: Option<String>,
    shortcode: Option<String>,
    whole_shortcode: Option<String>,
}

/// Posts of Instagram that may lack an id: only a Graph id may be alone, and only whole shortcodes are longer than others.
const SELECT: &str = r"
    select id, organization_id, external_id, shortcode, whole_shortcode from videos
    where platform = 'instagram' and id > $1
      and (length(shortcode) > 11
        or external_id !~ '^1[78][0-9]{15}$' and (shortcode is null or external_id !~ '^[0-9]+$'))
    order by id limit $2";

impl Candidate {
    fn is_complete(&self) -> bool {
        let whole = self.whole_shortcode.as_deref().or(self.shortcode.as_deref());
        let ids = VideoIds::new(Platform::Instagram, self.external_id.as_deref(), whole);
        self.external_id.as_deref() == ids.external_id()
            && self.shortcode.as_deref() == whole.map(shortcode_key)
            && whole == ids.shortcode()
    }

    fn into_observed(self) -> ObservedVideo {
        ObservedVideo {
            platform: Platform::Instagram,
            external_id: self.external_id,
            shortcode: self.whole_shortcode.or(self.shortcode),
            origin: VideoOrigin::Record,
            latest: VideoLatest::default(),
            observations: Vec::new(),
            scraped_at: None,
        }
    }
}

/// Completes the ids of all videos, and returns the number of those that lacked one. Can be interrupted and repeated.
pub async fn complete_ids(pg: &PgPool) -> Result<u64, Error> {
    let (mut after, mut completed) = (Uuid::nil(), 0);
    loop {
        let candidates: Vec<Candidate> =
            sqlx::query_as(SELECT).bind(after).bind(BATCH_VIDEOS).fetch_all(pg).await?;
        let Some(last) = candidates.last() else { return Ok(completed) };
        after = last.id;
        let mut incomplete: BTreeMap<Uuid, Vec<ObservedVideo>> = BTreeMap::new();
        for candidate in candidates.into_iter().filter(|candidate| !candidate.is_complete()) {
            completed += 1;
            incomplete.entry(candidate.organization_id).or_default().push(candidate.into_observed());
        }
        for (organization, videos) in incomplete {
            let saved = retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                save_videos(&mut write, Utc::now(), videos.clone()).await?;
                write.commit().await
            });
            match saved.await {
                // Deleted meanwhile.
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
