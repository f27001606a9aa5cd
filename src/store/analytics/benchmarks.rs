//! Percentiles of the last posts of an account at an age.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::ages::{Curve, Post, PostSnapshots};
use super::reader::VersionedHistory;
use crate::model::ages::{Distribution, MAX_COMPARED_POSTS, MAX_FIRST_OBSERVATION_DAYS, MIN_COMPARED_POSTS};
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::postgres::keyset::push_equal;

/// Posts that the first query reads, and each further one. Nearly all of them have known values.
const FIRST_POSTS: i64 = 128;
const MORE_POSTS: i64 = 512;
/// Positions of the counters in the rows of video_totals.sql.
const VIEWS: usize = 0;
const ENGAGEMENT: [usize; 3] = [2, 3, 4];

/// Which posts are compared, and at which ages.
pub struct BenchmarkQuery<'a> {
    pub organization: Uuid,
    pub account: Uuid,
    /// All media types if it is `None`.
    pub media_type: Option<&'a str>,
    pub ages: &'a [u16],
    pub complete_through: NaiveDate,
}

/// Percentiles and mean of the last posts at an age.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Benchmark {
    /// Days after the day on which a video was posted.
    #[schemars(example = 7)]
    age_days: u16,
    /// Number of posts whose views are known; the values are null below 10.
    #[schemars(example = 100)]
    sample: usize,
    /// Views.
    views: Distribution<i64>,
    /// Likes, comments and shares, without posts of which one is known at other ages only.
    engagement: Distribution<i64>,
    /// Engagement per view, rounded to six decimals, of posts with views.
    engagement_rate: Distribution<f64>,
}

/// Reads benchmarks, in the order of the ages.
pub async fn fetch(
    pg: &FairReads,
    history: &VersionedHistory,
    query: &BenchmarkQuery<'_>,
) -> Result<Vec<Benchmark>, Error> {
    let mut samples: Vec<_> = query.ages.iter().map(|age| Sample::new(*age)).collect();
    let (mut before, mut limit) = (query.position_of_age(0), FIRST_POSTS);
    loop {
        let mut incomplete: Vec<_> = samples.iter_mut().filter(|sample| !sample.is_complete()).collect();
        let ages = || incomplete.iter().map(|sample| sample.age);
        let (Some(youngest), Some(oldest)) = (ages().min(), ages().max()) else { break };
        before = before.min(query.position_of_age(youngest));
        // Planned with its values: another plan for a large account reads all of its posts.
        let mut select = posts_query(query, before, limit);
        let rows: Vec<PostRow> =
            select.build_query_as().persistent(false).fetch_all(&*pg.acquire().await?).await?;
        let posts: Vec<_> = rows.iter().map(|row| row.post).collect();
        let sql = include_str!("video_totals.sql");
        let snapshots = PostSnapshots::fetch(history, &posts, sql, |statement| statement).await?;
        for curve in posts.iter().filter_map(|post| snapshots.curve(post)) {
            incomplete.iter_mut().for_each(|sample| sample.add(curve, history, query.complete_through));
        }
        let has_more = |last: &&PostRow| {
            let last_day = last.create_time.date_naive() + Days::new(oldest.into());
            rows.len() as i64 == limit && history.retains(last_day)
        };
        let Some(last) = rows.last().filter(has_more) else { break };
        (before, limit) = ((last.create_time, last.post.id), MORE_POSTS);
    }
    Ok(samples.into_iter().map(Sample::into_benchmark).collect())
}

impl BenchmarkQuery<'_> {
    /// The posts that have reached an age are those before this position.
    fn position_of_age(&self, age: u16) -> (DateTime<Utc>, Uuid) {
        let day = self.complete_through + Days::new(1) - Days::new(age.into());
        (day.and_time(NaiveTime::MIN).and_utc(), Uuid::nil())
    }
}

#[derive(sqlx::FromRow)]
struct PostRow {
    #[sqlx(flatten)]
    post: Post,
    create_time: DateTime<Utc>,
}

/// Builds the query of the posts before a position, the last one first, that were observed soon after they were posted and
/// whose views are known: of a picture on Instagram they never are.
pub fn posts_query(
    query: &BenchmarkQuery<'_>,
    (create_time, id): (DateTime<Utc>, Uuid),
    limit: i64,
) -> QueryBuilder<Postgres> {
    let mut posts = QueryBuilder::new(
        "select id, internal_id, subject_id, (create_time at time zone 'UTC')::date as posted_on, create_time
         from videos where account_id = ",
    );
    posts.push_bind(query.account);
    posts.push(" and exists (select from accounts where id = ").push_bind(query.account);
    posts.push(" and organization_id = ").push_bind(query.organization).push(")");
    push_equal(&mut posts, "media_type", query.media_type);
    posts.push(" and (create_time, id) < (").push_bind(create_time).push(", ").push_bind(id);
    posts.push(format_args!(
        ") and tracked_since <= (create_time at time zone 'UTC')::date + {MAX_FIRST_OBSERVATION_DAYS}
             and known_at -> 'view_count' is distinct from 'null'
         order by create_time desc nulls last, id desc limit {limit}"
    ));
    posts
}

/// The values of the last posts at an age.
struct Sample {
    age: u16,
    views: Vec<i64>,
    engagement: Vec<i64>,
    /// Engagement and views.
    rates: Vec<(i64, i64)>,
}

impl Sample {
    const fn new(age: u16) -> Self {
        Sample { age, views: Vec::new(), engagement: Vec::new(), rates: Vec::new() }
    }

    const fn is_complete(&self) -> bool {
        self.views.len() == MAX_COMPARED_POSTS
    }

    /// Adds an earlier post if its views are known. One of whose likes, comments and shares some are known, but not at this
    /// age, has no engagement.
    fn add(&mut self, curve: Curve<'_>, history: &VersionedHistory, complete_through: NaiveDate) {
        let level =
            |counter| curve.level(counter, history, self.age, complete_through).map(|level| level.value);
        let Some(views) = level(VIEWS).filter(|_| !self.is_complete()) else { return };
        let known = ENGAGEMENT.into_iter().filter(|counter| curve.knows(*counter));
        let engagement = known.map(level).sum::<Option<i64>>();
        self.views.push(views);
        self.engagement.extend(engagement);
        self.rates.extend(engagement.filter(|_| views > 0).map(|engagement| (engagement, views)));
    }

    fn into_benchmark(self) -> Benchmark {
        let (age_days, sample) = (self.age, self.views.len());
        let Sample { views, engagement, rates, .. } =
            if sample < MIN_COMPARED_POSTS { Sample::new(age_days) } else { self };
        Benchmark {
            age_days,
            sample,
            views: Distribution::from_counts(views),
            engagement: Distribution::from_counts(engagement),
            engagement_rate: Distribution::from_rates(&rates),
        }
    }
}
