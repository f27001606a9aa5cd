//! Breakouts: videos with many times the views that earlier posts of their account and media type had at the same age.
//!
//! ClickHouse returns the views of all posts at the age, a stored value. Their baselines are computed here, post by post: a
//! window that moves costs less than a sort for each. A video without an account is the only post of its subject.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::scope::{ScopedSql, SubjectScope};
use crate::model::ages::LastPosts;
use crate::model::limits::DEFAULT_MIN_MULTIPLE;
use crate::model::period::{Period, Window, clamp_day};
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::records::content::{self, ContentFilter, IdentifiedContent};

const SQL: ScopedSql = ScopedSql {
    organization: include_str!("breakouts/organization.sql"),
    subjects: include_str!("breakouts/subjects.sql"),
};

/// The posts that count as breakouts.
pub struct BreakoutQuery<'a> {
    /// One of the ages whose views are stored.
    pub age: u16,
    pub min_multiple: f64,
    pub posted_after: DateTime<Utc>,
    /// Which posts count besides those of the scope, by their records. All are compared with.
    pub filter: &'a ContentFilter,
    /// The last day of which views are known.
    pub complete_through: NaiveDate,
    /// The multiple in hundredths and the id of the breakout after which the list starts.
    pub after: Option<(i64, Uuid)>,
    pub limit: usize,
}

/// A video that has many times the views of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakout {
    pub id: Uuid,
    pub views: i64,
    pub is_interpolated: bool,
    pub baseline_in_tenths: i64,
    pub multiple_in_hundredths: i64,
    /// Number of posts behind the baseline.
    pub sample: usize,
}

impl Breakout {
    /// Where it stands among others.
    const fn place(&self) -> (Reverse<i64>, Uuid) {
        (Reverse(self.multiple_in_hundredths), self.id)
    }
}

/// A page of breakouts, and the number of videos that earlier posts are too few for.
pub struct Breakouts {
    pub videos: Vec<(IdentifiedContent, Breakout)>,
    pub without_baseline: usize,
}

/// Finds breakouts in a scope, by multiple and then by id.
pub async fn find(
    pg: &FairReads,
    history: &VersionedHistory,
    scope: &SubjectScope,
    query: &BreakoutQuery<'_>,
) -> Result<Breakouts, Error> {
    let posts = fetch_posts(history, scope, query).await?;
    let (mut ranked, mut without_baseline) = compare(posts, query);
    if query.filter.is_selective() {
        let ids: Vec<_> =
            ranked.iter().map(|found| found.id).chain(without_baseline.iter().copied()).collect();
        let organization = history.organization();
        let pg = pg.acquire().await?;
        let matching = content::select_matching(&pg, organization, query.filter, &ids).await?;
        ranked.retain(|found| matching.contains(&found.id));
        without_baseline.retain(|id| matching.contains(id));
    }
    ranked.sort_unstable_by_key(Breakout::place);
    if let Some((multiple, id)) = query.after {
        ranked.drain(..ranked.partition_point(|found| found.place() <= (Reverse(multiple), id)));
    }
    let mut videos = Vec::new();
    for candidates in ranked.chunks(query.limit) {
        let ids: Vec<_> = candidates.iter().map(|found| found.id).collect();
        let found = content::fetch_identified(&*pg.acquire().await?, history.organization(), &ids).await?;
        let mut found: HashMap<_, _> = found.into_iter().map(|video| (video.identity.id, video)).collect();
        // Postgres lacks videos that were deleted or merged a moment ago.
        videos
            .extend(candidates.iter().filter_map(|breakout| Some((found.remove(&breakout.id)?, *breakout))));
        if videos.len() >= query.limit {
            break;
        }
    }
    videos.truncate(query.limit);
    Ok(Breakouts { videos, without_baseline: without_baseline.len() })
}

/// Compares the posts of some accounts whose views at an age are known, with what breakouts have by default. None for a post
/// that is no breakout.
pub async fn compare_at_age(
    history: &VersionedHistory,
    subjects: Vec<i64>,
    age: u16,
    complete_through: NaiveDate,
) -> Result<HashMap<Uuid, Option<Breakout>>, Error> {
    let query = BreakoutQuery {
        age,
        min_multiple: DEFAULT_MIN_MULTIPLE,
        posted_after: DateTime::UNIX_EPOCH,
        filter: &ContentFilter::default(),
        complete_through,
        after: None,
        limit: usize::MAX,
    };
    let posts = fetch_posts(history, &SubjectScope::from_subjects(subjects), &query).await?;
    let mut compared: HashMap<_, _> = posts.iter().map(|post| (post.id, None)).collect();
    let (found, _) = compare(posts, &query);
    compared.extend(found.into_iter().map(|breakout| (breakout.id, Some(breakout))));
    Ok(compared)
}

/// A post with its views at the age.
#[derive(Row, Deserialize)]
struct AgedPost {
    subject_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    post_type: Option<String>,
    posted_micros: i64,
    views: i64,
    is_interpolated: u8,
}

/// Reads the posts of a scope that have reached the age within retention.
async fn fetch_posts(
    history: &VersionedHistory,
    scope: &SubjectScope,
    query: &BreakoutQuery<'_>,
) -> Result<Vec<AgedPost>, Error> {
    let age = Days::new(query.age.into());
    let first = clamp_day(history.clip_day(NaiveDate::MIN));
    let posted = Window { period: Period::Custom, start: first - age, end: query.complete_through - age };
    let bind =
        |statement: Query| statement.param("views", format!("views_{}", query.age)).param("age", query.age);
    history.fetch_chunks(scope.chunks(SQL), posted, bind).await
}

/// Compares each post with earlier ones. Returns the breakouts, and the posts without a baseline.
fn compare(mut posts: Vec<AgedPost>, query: &BreakoutQuery<'_>) -> (Vec<Breakout>, Vec<Uuid>) {
    posts.sort_by(|one, other| {
        let key = |post: &AgedPost| (post.posted_micros, post.id);
        let group = (one.subject_id, &one.post_type).cmp(&(other.subject_id, &other.post_type));
        group.then_with(|| key(one).cmp(&key(other)))
    });
    let posted_after = query.posted_after.timestamp_micros();
    let (mut breakouts, mut without_baseline) = (Vec::new(), Vec::new());
    let is_comparable = |one: &AgedPost, other: &AgedPost| {
        (one.subject_id, &one.post_type) == (other.subject_id, &other.post_type)
    };
    for group in posts.chunk_by(is_comparable) {
        let mut earlier = LastPosts::default();
        for post in group {
            if post.posted_micros >= posted_after {
                let baseline = earlier.baseline();
                without_baseline.extend(baseline.is_none().then_some(post.id));
                breakouts.extend(baseline.and_then(|baseline| {
                    let multiple_in_hundredths = baseline.multiple_in_hundredths(post.views)?;
                    (multiple_in_hundredths as f64 / 100.0 >= query.min_multiple).then_some(Breakout {
                        id: post.id,
                        views: post.views,
                        is_interpolated: post.is_interpolated == 1,
                        baseline_in_tenths: baseline.tenths(),
                        multiple_in_hundredths,
                        sample: baseline.sample,
                    })
                }));
            }
            earlier.push(post.views);
        }
    }
    (breakouts, without_baseline)
}
