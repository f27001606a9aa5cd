//! The posts of a collection with what its figures need of them, and their gains.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::post_gains::{self, PlatformDay, PostKey};
use super::reader::VersionedHistory;
use super::scope::SubjectScope;
use super::subjects;
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::postgres::keyset::push_equal;
use crate::store::records::collections::membership::Membership;

/// More posts are not read within the time of a request.
pub const MAX_POSTS: usize = 300_000;

const COLUMNS: &str = "v.id, v.internal_id, v.subject_id, v.platform, v.account_id, v.create_time, v.is_unavailable, \
    v.view_count, v.like_count, v.comment_count, v.share_count, v.saved_count, v.play_count";

/// A post of a collection.
#[derive(Debug, Clone, FromRow)]
pub struct Member {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    pub platform: Platform,
    pub account_id: Option<Uuid>,
    /// Creator of the account.
    #[sqlx(skip)]
    pub creator_id: Option<Uuid>,
    pub create_time: Option<DateTime<Utc>>,
    pub is_unavailable: bool,
    pub view_count: i64,
    pub like_count: i64,
    pub comment_count: i64,
    pub share_count: i64,
    pub saved_count: Option<i64>,
    pub play_count: i64,
}

impl Member {
    pub const fn key(&self) -> PostKey {
        PostKey { subject_id: self.subject_id, internal_id: self.internal_id }
    }

    /// The UTC day on which it was posted.
    pub fn posted(&self) -> Option<NaiveDate> {
        self.create_time.map(|time| time.date_naive())
    }
}

/// Lists the posts of a collection, on one platform or all, in no particular order. Fails if there are too many.
pub async fn list_members(
    pg: &FairReads,
    membership: &Membership,
    platform: Option<Platform>,
) -> Result<Vec<Member>, Error> {
    let mut query = members_query(membership, platform);
    let pg = pg.acquire().await?;
    let members = fetch(&pg, membership.organization, &mut query).await?;
    if members.len() > MAX_POSTS {
        return Err(Error::Conflict(format!(
            "the collection has more than {MAX_POSTS} posts: narrow its rule, for example with posted_after"
        )));
    }
    Ok(members)
}

fn members_query(membership: &Membership, platform: Option<Platform>) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("select * from ");
    membership.push_videos(&mut query, COLUMNS);
    query.push(" v where true");
    push_equal(&mut query, "v.platform", platform);
    query.push(format_args!(" limit {}", MAX_POSTS + 1));
    query
}

/// Lists the posts that are excluded from a collection by hand.
pub async fn list_excluded(pg: &FairReads, membership: &Membership) -> Result<Vec<Member>, Error> {
    if !membership.has_excluded {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::new("select * from ");
    membership.push_excluded(&mut query, COLUMNS);
    query.push(" v");
    let pg = pg.acquire().await?;
    fetch(&pg, membership.organization, &mut query).await
}

/// Reads posts, planned for the values of the query, which decide how many match; then the creators of their accounts, of
/// which there are fewer.
async fn fetch(
    pg: &PgPool,
    organization: Uuid,
    query: &mut QueryBuilder<Postgres>,
) -> Result<Vec<Member>, Error> {
    let mut members: Vec<Member> = query.build_query_as().persistent(false).fetch_all(pg).await?;
    let accounts: HashSet<_> = members.iter().filter_map(|member| member.account_id).collect();
    let creators: HashMap<Uuid, Uuid> = sqlx::query_as(
        "select id, creator_id from accounts where organization_id = $1 and id = any($2) and creator_id is not null",
    )
    .bind(organization)
    .bind(accounts.into_iter().collect::<Vec<_>>())
    .fetch_all(pg)
    .await?
    .into_iter()
    .collect();
    for member in &mut members {
        member.creator_id = member.account_id.and_then(|account| creators.get(&account).copied());
    }
    Ok(members)
}

/// The latest counters of some posts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetime {
    pub views: i64,
    pub likes: i64,
    pub comments: i64,
    pub shares: i64,
    /// Unknown where no platform reports them.
    pub saves: Option<i64>,
    pub plays: i64,
}

impl Lifetime {
    pub fn add(&mut self, member: &Member) {
        self.views += member.view_count;
        self.likes += member.like_count;
        self.comments += member.comment_count;
        self.shares += member.share_count;
        self.saves = subjects::sum_known(self.saves, member.saved_count);
        self.plays += member.play_count;
    }
}

/// Gains by day, and the latest observation of the accounts and videos in scope.
pub async fn fetch_daily(
    history: &VersionedHistory,
    members: &[Member],
    window: Window,
    shown: Window,
) -> Result<(Vec<PlatformDay>, Option<DateTime<Utc>>), Error> {
    let keys = keys(members);
    let days = post_gains::fetch_daily(history, &keys, window);
    Ok(tokio::try_join!(days, fetch_latest_observation(history, members, shown))?)
}

/// Gains of each post, by internal id, and the latest observation of the accounts and videos in scope.
pub async fn fetch_gains(
    history: &VersionedHistory,
    members: &[Member],
    window: Window,
) -> Result<(BTreeMap<i64, Gains>, Option<DateTime<Utc>>), Error> {
    let keys = keys(members);
    let gains = async { Ok(post_gains::fetch_totals(history, &keys, window).await?.into_iter().collect()) };
    Ok(tokio::try_join!(gains, fetch_latest_observation(history, members, window))?)
}

fn keys(members: &[Member]) -> Vec<PostKey> {
    members.iter().map(Member::key).collect()
}

/// The latest observation of the accounts of posts, and of posts without an account, by the end of a window.
pub async fn fetch_latest_observation(
    history: &VersionedHistory,
    members: &[Member],
    window: Window,
) -> Result<Option<DateTime<Utc>>, Error> {
    let distinct: HashSet<_> = members.iter().map(|member| member.subject_id).collect();
    let scope = SubjectScope::from_subjects(distinct.into_iter().collect());
    subjects::fetch_latest_observation(history, &scope, window).await
}
