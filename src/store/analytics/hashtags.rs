//! The ranking of hashtags by the gains of the videos that carry them.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::post_gains::{self, PostKey};
use super::reader::VersionedHistory;
use super::scope::SubjectScope;
use super::subjects;
use crate::model::gains::{GainMetric, Gains};
use crate::model::period::Window;
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::records::content::{self, ContentFilter, TaggedVideo};

/// More videos are not read within the time of a request.
const MAX_VIDEOS: usize = 300_000;

/// Selects the hashtags to rank.
pub struct HashtagRanking<'a> {
    pub filter: &'a ContentFilter,
    pub metric: GainMetric,
    pub window: Window,
    pub limit: usize,
}

/// A hashtag, the number of videos that carry it, and their gains together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedHashtag {
    pub hashtag: String,
    pub videos: i64,
    pub gains: Gains,
}

/// The first hashtags by gain and then by name, and the latest observation of the subjects in scope.
pub async fn rank(
    pg: &FairReads,
    history: &VersionedHistory,
    scope: &SubjectScope,
    ranking: &HashtagRanking<'_>,
) -> Result<(Vec<RankedHashtag>, Option<DateTime<Utc>>), Error> {
    let as_of = subjects::fetch_latest_observation(history, scope, ranking.window);
    Ok(tokio::try_join!(rank_tagged(pg, history, ranking), as_of)?)
}

async fn rank_tagged(
    pg: &FairReads,
    history: &VersionedHistory,
    HashtagRanking { filter, metric, window, limit }: &HashtagRanking<'_>,
) -> Result<Vec<RankedHashtag>, Error> {
    let organization = history.organization();
    let videos =
        content::list_tagged(&*pg.acquire().await?, organization, filter, MAX_VIDEOS as i64 + 1).await?;
    if videos.len() > MAX_VIDEOS {
        return Err(Error::Conflict(format!(
            "more than {MAX_VIDEOS} videos with hashtags match: narrow the filters, for example with posted_after"
        )));
    }
    let key = |video: &TaggedVideo| PostKey { subject_id: video.subject_id, internal_id: video.internal_id };
    let keys: Vec<_> = videos.iter().map(key).collect();
    let gains = post_gains::fetch_totals(history, &keys, *window).await?;
    let mut ranked: HashMap<String, (i64, Gains)> = HashMap::new();
    for TaggedVideo { internal_id, hashtags, .. } in videos {
        let gained = gains.get(&internal_id).copied().unwrap_or_default();
        for hashtag in hashtags {
            let (count, sum) = ranked.entry(hashtag).or_default();
            *count += 1;
            *sum += gained;
        }
    }
    let entry = |(hashtag, (count, sum))| RankedHashtag { hashtag, videos: count, gains: sum };
    let mut ranked: Vec<_> = ranked.into_iter().map(entry).collect();
    ranked.sort_unstable_by(|one, other| {
        let order = |hashtag: &RankedHashtag| Reverse(metric.of(&hashtag.gains));
        order(one).cmp(&order(other)).then_with(|| one.hashtag.cmp(&other.hashtag))
    });
    ranked.truncate(*limit);
    Ok(ranked)
}
