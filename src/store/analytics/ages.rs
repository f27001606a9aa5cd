//! Counters of videos at an age, computed from their snapshots.

use chrono::{Days, NaiveDate};
use clickhouse::query::Query;
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::snapshots::{Snapshot, deduplicate};
use crate::model::ages::{LevelOnDay, MAX_FIRST_OBSERVATION_DAYS};
use crate::model::period::clamp_day;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// A video with the UTC day on which it was posted.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct Post {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    pub posted_on: Option<NaiveDate>,
}

/// Finds videos of the organization, of either kind, among ids.
pub fn find(organization: Uuid, ids: &[Uuid]) -> RecordsQuery<Vec<Post>> {
    let mut query = QueryBuilder::new(
        "select id, internal_id, subject_id, (create_time at time zone 'UTC')::date as posted_on
         from videos where organization_id = ",
    );
    query.push_bind(organization).push(" and id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// Finds one video of the organization, of either kind. Fails if it does not exist.
pub fn get(organization: Uuid, id: Uuid) -> RecordsQuery<Post> {
    find(organization, &[id]).and_then(|mut found| found.pop().ok_or(Error::NotFound("video")))
}

/// Reads the views of posts at ages, in the order of both; those of days after `complete_through` are unknown.
pub async fn fetch_views(
    history: &VersionedHistory,
    posts: &[Post],
    ages: &[u16],
    complete_through: NaiveDate,
) -> Result<Vec<Vec<Option<LevelOnDay>>>, Error> {
    let sql = include_str!("video_counter.sql");
    let bind = |query: Query| query.param("counter", "view_count");
    let snapshots = PostSnapshots::fetch(history, posts, sql, bind).await?;
    let views_of = |post: &Post| {
        let curve = snapshots.curve(post);
        let views_at = |age: &u16| curve?.level(0, history, *age, complete_through);
        ages.iter().map(views_at).collect()
    };
    Ok(posts.iter().map(views_of).collect())
}

/// All snapshots of some posts, ascending by video and day.
pub(super) struct PostSnapshots(Vec<Snapshot>);

impl PostSnapshots {
    /// Runs a statement that returns snapshots of `videos` from `since` to `end`.
    pub async fn fetch(
        history: &VersionedHistory,
        posts: &[Post],
        sql: &'static str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Self, Error> {
        if posts.is_empty() {
            return Ok(PostSnapshots(Vec::new()));
        }
        let keys: Vec<_> = posts.iter().map(|post| (post.subject_id, post.internal_id)).collect();
        let bind = |query: Query| {
            let [since, end] = [NaiveDate::MIN, NaiveDate::MAX].map(clamp_day);
            bind(query.param("videos", keys).param("since", since).param("end", end))
        };
        Ok(PostSnapshots(deduplicate(history.fetch_all(sql, bind).await?)))
    }

    /// The curve of a post; none if it was not observed soon after it was posted.
    pub fn curve(&self, post: &Post) -> Option<Curve<'_>> {
        let video = post.internal_id.cast_unsigned();
        let start = self.0.partition_point(|snapshot| snapshot.video_id < video);
        let end = self.0.partition_point(|snapshot| snapshot.video_id <= video);
        let (snapshots, posted_on) = (&self.0[start..end], post.posted_on?);
        let latest = posted_on.checked_add_days(Days::new(MAX_FIRST_OBSERVATION_DAYS))?;
        (snapshots.first()?.date <= latest).then_some(Curve { posted_on, snapshots })
    }
}

/// The counters of a post since it was posted.
#[derive(Clone, Copy)]
pub(super) struct Curve<'a> {
    posted_on: NaiveDate,
    snapshots: &'a [Snapshot],
}

impl Curve<'_> {
    /// A counter at an age, if that is reached by `complete_through` and within retention.
    pub fn level(
        &self,
        counter: usize,
        history: &VersionedHistory,
        age: u16,
        complete_through: NaiveDate,
    ) -> Option<LevelOnDay> {
        let day = self.posted_on.checked_add_days(Days::new(age.into()))?;
        let is_readable = day <= complete_through && history.retains(day);
        is_readable.then(|| LevelOnDay::interpolate(&self.known(counter), day)).flatten()
    }

    /// Whether a counter was ever observed.
    pub fn knows(&self, counter: usize) -> bool {
        self.snapshots.iter().any(|snapshot| snapshot.counters.get(counter).copied().flatten().is_some())
    }

    /// The days on which a counter was observed, ascending.
    fn known(&self, counter: usize) -> Vec<(NaiveDate, i64)> {
        let value = |snapshot: &Snapshot| snapshot.counters.get(counter).copied().flatten();
        self.snapshots.iter().filter_map(|snapshot| Some((snapshot.date, value(snapshot)?))).collect()
    }
}
