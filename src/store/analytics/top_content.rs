//! The ranking of videos by what they gained over a window, computed from the rollup of videos.
//!
//! ClickHouse knows the gains, Postgres everything that a filter compares. If few videos match the filter, or few of those with
//! the largest gains, the gains of all that match decide the whole ranking. Otherwise ClickHouse returns the videos with the
//! largest gains, and Postgres selects from them, until a page is full. Videos of equal gain, which are in the order of their
//! ids, are always selected from together.
//!
//! Videos are in descending order of their rank: what they gained, negated if the smallest gains come first.
//!
//! Gains are summed by video, whatever its subject: the rollup contains a video that moves to another subject exactly once.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;
use uuid::Uuid;

use super::accounts::SubjectFilter;
use super::post_gains::{self, PostKey};
use super::reader::VersionedHistory;
use super::scope::{ScopedSql, SubjectScope};
use super::subjects;
use super::videos::{self, VideoRef};
use crate::model::gains::{GainMetric, Gains};
use crate::model::period::Window;
use crate::store::Error;
use crate::store::postgres::keyset::SortDirection;
use crate::store::postgres::{FairReads, RecordsQuery};
use crate::store::records::content::{self, Candidate, ContentFilter, RankedContent, VideoKey};

const SQL: ScopedSql = ScopedSql {
    organization: include_str!("top_content/organization.sql"),
    subjects: include_str!("top_content/subjects.sql"),
};

/// Up to so many matching videos are ranked by listing all of them.
const MAX_LISTED: usize = 5_000;
/// Up to so many are listed if they are rare among the videos with the largest gains.
const MAX_LISTED_IF_RARE: usize = 50_000;
/// How many candidates the first query returns beyond the page if nothing but their existence is checked.
const SPARE_CANDIDATES: usize = 20;
/// How many candidates the first query returns if a filter selects from them.
const FILTERED_CANDIDATES: usize = 1_000;
/// How many candidates for each missing video of the page are compared with the filter at first.
const SELECTED_CANDIDATES: usize = 8;
/// The factor by which each further query returns more.
const CANDIDATE_GROWTH: usize = 16;
/// The largest result that ClickHouse returns.
const MAX_CANDIDATES: usize = 1_000_000;
/// How many more are selected than a page needs: some may be deleted or merged meanwhile.
const SPARE_VIDEOS: usize = 20;
/// How many videos the first query for those without a gain reads beyond the page.
const SPARE_UNGAINED: usize = 1_000;

/// Selects the posts to rank.
pub struct ContentRanking<'a> {
    pub filter: &'a ContentFilter,
    pub metric: GainMetric,
    pub window: Window,
    pub direction: SortDirection,
    /// Whether videos are included that are not above a gain of 0.
    pub include_all: bool,
    /// The rank and the id of the video after which the page starts.
    pub after: Option<(i64, Uuid)>,
    pub limit: usize,
}

/// A page of a ranking, and the latest observation of its subjects by the end of the window.
pub struct RankedPage {
    pub videos: Vec<RankedContent>,
    /// By internal id, at least those of the page; videos without an observation are absent.
    pub gains: HashMap<i64, Gains>,
    pub as_of: Option<DateTime<Utc>>,
}

/// Finds the subjects of the videos to rank. Fails if the organization lacks the account or the creator to filter by.
pub fn find_scope(organization: Uuid, filter: &ContentFilter) -> RecordsQuery<SubjectScope> {
    let ContentFilter { platform, account_id, creator_id, labels, .. } = filter;
    let accounts = SubjectFilter {
        account: *account_id,
        creator: *creator_id,
        labels: labels.clone(),
        platform: *platform,
    };
    SubjectScope::find(organization, &accounts)
}

/// Ranks videos of a scope.
pub async fn rank(
    pg: &FairReads,
    history: &VersionedHistory,
    scope: &SubjectScope,
    ranking: &ContentRanking<'_>,
) -> Result<RankedPage, Error> {
    let ranker = Ranker { pg, history, ranking, scope };
    let as_of = subjects::fetch_latest_observation(history, scope, ranking.window);
    let (Ranked { videos, gains }, as_of) = tokio::try_join!(ranker.rank(), as_of)?;
    Ok(RankedPage { videos, gains, as_of })
}

/// A page of a ranking, and gains by internal id, at least those of the page.
struct Ranked {
    videos: Vec<RankedContent>,
    gains: HashMap<i64, Gains>,
}

#[derive(Row, Deserialize)]
struct RankRow {
    video_id: u64,
    rank: i64,
}

struct Ranker<'a> {
    pg: &'a FairReads,
    history: &'a VersionedHistory,
    ranking: &'a ContentRanking<'a>,
    scope: &'a SubjectScope,
}

impl Ranker<'_> {
    async fn rank(&self) -> Result<Ranked, Error> {
        let ContentRanking { filter, after, include_all, limit, .. } = *self.ranking;
        let start = after.map_or(i64::MAX, |(rank, _)| rank);
        let count = if filter.is_selective() { FILTERED_CANDIDATES } else { limit + SPARE_CANDIDATES };
        if let Some(listed) = self.list_matching(MAX_LISTED).await? {
            return self.rank_listed(listed).await;
        }
        let ranks = self.fetch_ranks(1..=start, count).await?;
        let mut videos = Vec::new();
        if let Some(page) = self.add_ranked(&mut videos, 1..=start, count, ranks).await? {
            return Ok(page);
        }
        if include_all && start >= 0 && videos.len() < limit {
            self.append_zero_gain(&mut videos).await?;
        }
        if include_all && videos.len() < limit {
            let bounds = i64::MIN..=start.min(-1);
            let losses = self.fetch_ranks(bounds.clone(), count).await?;
            if let Some(page) = self.add_ranked(&mut videos, bounds, count, losses).await? {
                return Ok(page);
            }
        }
        self.add_gains(videos).await
    }

    /// Lists the videos that match the filter, if there is one and they are not too many.
    async fn list_matching(&self, max: usize) -> Result<Option<Vec<VideoKey>>, Error> {
        let ContentRanking { filter, include_all, .. } = *self.ranking;
        // Those without a gain are in no rollup.
        let is_listed = filter.is_selective() || include_all && filter.is_limited_to_accounts();
        if !is_listed {
            return Ok(None);
        }
        let pg = self.pg.acquire().await?;
        let listed = content::list_matching(&pg, self.history.organization(), filter, max as i64 + 1).await?;
        Ok(Some(listed).filter(|listed| listed.len() <= max))
    }

    /// Returns the page by the gains of all videos that match the filter.
    async fn rank_listed(&self, listed: Vec<VideoKey>) -> Result<Ranked, Error> {
        let ContentRanking { metric, window, direction, include_all, after, limit, .. } = *self.ranking;
        let key = |video: &VideoKey| PostKey { subject_id: video.subject_id, internal_id: video.internal_id };
        let keys: Vec<_> = listed.iter().map(key).collect();
        let gains = post_gains::fetch_totals(self.history, &keys, window).await?;
        let sort_key = |video: VideoKey| {
            let gain = gains.get(&video.internal_id).map_or(0, |gains| metric.of(gains));
            (Reverse(direction.sign() * gain), video.id, video)
        };
        let mut ranked: Vec<_> = listed.into_iter().map(sort_key).collect();
        ranked.retain(|(Reverse(rank), id, _)| {
            (include_all || *rank > 0)
                && after.is_none_or(|(start, last)| (Reverse(*rank), *id) > (Reverse(start), last))
        });
        ranked.sort_unstable_by_key(|(rank, id, _)| (*rank, *id));
        ranked.truncate(limit + SPARE_VIDEOS);
        let candidate = |(Reverse(rank), _, video): &(_, _, VideoKey)| Candidate::new(*video, *rank);
        let candidates: Vec<_> = ranked.iter().map(candidate).collect();
        Ok(Ranked { videos: self.select(&candidates, limit).await?, gains })
    }

    /// Adds videos whose ranks are within bounds that exclude 0, until the page is full; `ranks` are the `count` largest. Returns
    /// the whole page if too few of those with the largest gains match.
    async fn add_ranked(
        &self,
        videos: &mut Vec<RankedContent>,
        bounds: RangeInclusive<i64>,
        mut count: usize,
        mut ranks: Vec<Candidate>,
    ) -> Result<Option<Ranked>, Error> {
        let limit = self.ranking.limit;
        let least = *bounds.start();
        loop {
            videos.extend(self.select(&ranks, limit - videos.len()).await?);
            let most = match ranks.last() {
                Some(smallest) if ranks.len() >= count && videos.len() < limit && smallest.rank > least => {
                    smallest.rank - 1
                }
                _ => return Ok(None),
            };
            if count == FILTERED_CANDIDATES
                && let Some(listed) = self.list_matching(MAX_LISTED_IF_RARE).await?
            {
                return self.rank_listed(listed).await.map(Some);
            }
            count = MAX_CANDIDATES.min(count * CANDIDATE_GROWTH);
            ranks = self.fetch_ranks(least..=most, count).await?;
        }
    }

    /// Adds what videos gained by their snapshots, of which there are fewer than rows of the rollup.
    async fn add_gains(&self, videos: Vec<RankedContent>) -> Result<Ranked, Error> {
        let refs: Vec<_> = videos.iter().map(VideoRef::from).collect();
        let totals = videos::fetch_totals(self.history, &refs, self.ranking.window).await?;
        let gains = refs.iter().filter_map(|video| Some((video.internal_id, *totals.get(video)?))).collect();
        Ok(Ranked { videos, gains })
    }

    /// Adds videos with a gain of 0, in the order of their ids, until the page is full.
    async fn append_zero_gain(&self, videos: &mut Vec<RankedContent>) -> Result<(), Error> {
        let ContentRanking { filter, limit, .. } = *self.ranking;
        let organization = self.history.organization();
        let gained = self.fetch_ranks(i64::MIN..=i64::MAX, usize::MAX >> 1).await?;
        // A set would take a multiple of the memory.
        let mut gained: Vec<_> = gained.into_iter().map(|row| row.internal_id).collect();
        gained.sort_unstable();
        let mut after = self.ranking.after.filter(|(rank, _)| *rank == 0).map(|(_, id)| id);
        let mut count = limit + SPARE_UNGAINED;
        let mut ungained = Vec::new();
        loop {
            let pg = self.pg.acquire().await?;
            let listed = content::list_by_id(&pg, organization, filter, after, count as i64).await?;
            let is_last = listed.len() < count;
            after = listed.last().map(|video| video.id);
            let is_ungained = |video: &&VideoKey| gained.binary_search(&video.internal_id).is_err();
            ungained.extend(listed.iter().filter(is_ungained).map(|video| Candidate::new(*video, 0)));
            if is_last || ungained.len() >= limit - videos.len() {
                break;
            }
            count = MAX_CANDIDATES.min(count * CANDIDATE_GROWTH);
        }
        ungained.truncate(limit - videos.len() + SPARE_VIDEOS);
        videos.extend(self.select(&ungained, limit - videos.len()).await?);
        Ok(())
    }

    /// Selects the first candidates after the start of the page that match the filter. Candidates are in the order of their
    /// ranks; the first of them often suffice.
    async fn select(&self, candidates: &[Candidate], limit: usize) -> Result<Vec<RankedContent>, Error> {
        let ContentRanking { filter, after, .. } = *self.ranking;
        let organization = self.history.organization();
        let (mut selected, mut rest) = (Vec::new(), candidates);
        let mut count = SELECTED_CANDIDATES * limit;
        while selected.len() < limit
            && let Some(last) = rest.get(..count).unwrap_or(rest).last()
        {
            let (chunk, smaller) =
                rest.split_at(rest.partition_point(|candidate| candidate.rank >= last.rank));
            let missing = (limit - selected.len()) as i64;
            let pg = self.pg.acquire().await?;
            selected
                .extend(content::select_candidates(&pg, organization, filter, chunk, after, missing).await?);
            rest = smaller;
            count *= CANDIDATE_GROWTH;
        }
        Ok(selected)
    }

    /// Reads up to `count` of the largest ranks within bounds, descending, and those that equal the last one.
    async fn fetch_ranks(&self, bounds: RangeInclusive<i64>, count: usize) -> Result<Vec<Candidate>, Error> {
        let Some(window) = self.history.clip(self.ranking.window).filter(|_| !bounds.is_empty()) else {
            return Ok(Vec::new());
        };
        let chunks = self.scope.chunks(SQL);
        let is_split = chunks.len() > 1;
        let bind = |query| self.bind(query, &bounds, count);
        let rows: Vec<RankRow> = self.history.fetch_chunks(chunks, window, bind).await?;
        let mut ranked: Vec<_> = rows.into_iter().map(Candidate::from).collect();
        if is_split {
            ranked.sort_unstable_by_key(|candidate| Reverse(candidate.rank));
            if let Some(last) = ranked.get(count - 1).map(|candidate| candidate.rank) {
                ranked.truncate(ranked.partition_point(|candidate| candidate.rank >= last));
            }
        }
        Ok(ranked)
    }

    fn bind(&self, query: Query, bounds: &RangeInclusive<i64>, count: usize) -> Query {
        query
            .param("gain", self.ranking.metric.gain_column())
            .param("sign", self.ranking.direction.sign())
            .param("least", bounds.start())
            .param("most", bounds.end())
            .param("limit", count)
    }
}

impl From<RankRow> for Candidate {
    fn from(row: RankRow) -> Self {
        Candidate { internal_id: row.video_id.cast_signed(), rank: row.rank }
    }
}
