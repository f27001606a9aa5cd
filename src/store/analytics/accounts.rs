//! The accounts of a query, with the subject ids of their history.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::period::Window;
use crate::model::picture::PictureUrl;
use crate::model::platform::Platform;
use crate::model::readable::ReadablePlatforms;
use crate::model::tracking::TrackingStatus;
use crate::store::Error;
use crate::store::pictures::picture_url;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::keyset::{push_equal, push_labels};
use crate::store::records::accounts;

/// An account, and the subject of its history.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct AccountSubject {
    pub id: Uuid,
    pub internal_id: i64,
}

/// The accounts of a ranking.
#[derive(Debug, Clone, Default)]
pub struct RankingFilter {
    pub accounts: SubjectFilter,
    /// Accounts with one of these statuses.
    pub status: Option<Vec<TrackingStatus>>,
    /// A substring of the username.
    pub q: Option<String>,
    /// Whether it has a creator.
    pub linked: Option<bool>,
}

/// Columns of an account in a ranking besides the metrics of the window.
#[derive(Debug, Clone, Serialize, JsonSchema, FromRow)]
pub struct AccountIdentity {
    /// Account id.
    pub id: Uuid,
    /// Platform of the account.
    pub platform: Platform,
    /// Username on the platform, in lower case, without `@`.
    #[schemars(example = &"salt.and.tide")]
    pub username: String,
    /// Display name; null before the first scrape, or if there is none.
    #[schemars(example = &"Salt & Tide")]
    pub name: Option<String>,
    /// Profile picture: a stable copy if there is one, otherwise the platform's URL.
    #[schemars(example = &"https://cdn.example/pictures/salt.and.tide.jpg")]
    #[schemars(with = "Option<String>")]
    pub profile_pic_url: Option<PictureUrl>,
    /// Followers at the latest scrape.
    #[schemars(example = 48_210)]
    pub follower_count: i64,
    /// Creator of the account; null if it has none.
    pub creator_id: Option<Uuid>,
    /// Name of the creator.
    #[schemars(example = &"Marta Soares")]
    pub creator_name: Option<String>,
}

/// Discovered videos that were posted in a window and in the previous one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct PostCounts {
    pub current: i64,
    pub previous: i64,
}

/// Finds the accounts of the organization among ids.
pub fn find(organization: Uuid, ids: &[Uuid]) -> RecordsQuery<Vec<AccountSubject>> {
    let mut query = QueryBuilder::new("select id, internal_id from accounts where organization_id = ");
    query.push_bind(organization).push(" and id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// Selects the subjects of a request: accounts that have all of its values.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SubjectFilter {
    /// Filter by platform.
    pub platform: Option<Platform>,
    /// Filter by account.
    #[serde(rename = "account_id")]
    pub account: Option<Uuid>,
    /// Filter by the creator of the account.
    #[serde(rename = "creator_id")]
    pub creator: Option<Uuid>,
    #[serde(flatten)]
    pub labels: AccountLabels,
}

impl SubjectFilter {
    pub fn account(id: Uuid) -> Self {
        SubjectFilter { account: Some(id), ..SubjectFilter::default() }
    }

    pub fn creator(id: Uuid) -> Self {
        SubjectFilter { creator: Some(id), ..SubjectFilter::default() }
    }

    /// Whether it excludes videos without an account: they have no value but a platform.
    pub fn is_limited_to_accounts(&self) -> bool {
        self.account.is_some() || self.creator.is_some() || !self.labels.is_empty()
    }

    /// Adds its conditions on accounts, as `a`, to those of a query.
    pub(super) fn push_to(&self, query: &mut QueryBuilder<Postgres>) {
        push_equal(query, "a.id", self.account);
        push_equal(query, "a.creator_id", self.creator);
        push_equal(query, "a.platform", self.platform);
        push_labels(query, "a", &self.labels);
    }

    /// Adds the columns `has_account` and `has_creator` to a query, false if the organization lacks them.
    pub(super) fn push_existence(&self, query: &mut QueryBuilder<Postgres>, organization: Uuid) {
        let parents = [("account", "accounts", self.account), ("creator", "creators", self.creator)];
        for (name, table, id) in parents {
            match id {
                None => query.push(", true"),
                Some(id) => {
                    query.push(format_args!(", exists (select from {table} where organization_id = "));
                    query.push_bind(organization).push(" and id = ").push_bind(id).push(")")
                }
            };
            query.push(format_args!(" as has_{name}"));
        }
    }
}

#[derive(FromRow)]
struct RankingRow {
    ids: Vec<Uuid>,
    internal_ids: Vec<i64>,
    has_creator: bool,
}

/// Lists the accounts to rank. Fails if the organization lacks the creator.
pub fn list_for_ranking(
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &RankingFilter,
) -> RecordsQuery<Vec<AccountSubject>> {
    let mut query = QueryBuilder::new(
        "select coalesce(array_agg(id), '{}') as ids, coalesce(array_agg(internal_id), '{}') as internal_ids",
    );
    filter.accounts.push_existence(&mut query, organization);
    query.push(" from (select a.id, a.internal_id from accounts a where a.organization_id = ");
    query.push_bind(organization);
    filter.accounts.push_to(&mut query);
    if let Some(statuses) = &filter.status {
        accounts::push_status_condition(&mut query, readable, statuses);
    }
    push_equal(&mut query, "(a.creator_id is not null)", filter.linked);
    if let Some(text) = accounts::username_filter(filter.q.as_deref()) {
        text.push(&mut query);
    }
    query.push(") ranked");
    RecordsQuery::row(query).and_then(|RankingRow { ids, internal_ids, has_creator }| {
        let accounts = ids.into_iter().zip(internal_ids);
        let accounts = accounts.map(|(id, internal_id)| AccountSubject { id, internal_id }).collect();
        if has_creator { Ok(accounts) } else { Err(Error::NotFound("creator")) }
    })
}

/// Counts the posts of an account `a` in a window and in the previous one. Each account is a range of one index, and no row of
/// a video is read where its page was vacuumed since its last change.
macro_rules! count_posts_sql {
    () => {
        "cross join lateral (
             select count(*) filter (where create_time >= $4) as current,
                    count(*) filter (where create_time < $4) as previous
             from videos
             where account_id = a.id and create_time >= $3 and create_time < $5
         ) posted"
    };
}

pub const RANKED_ACCOUNTS_SQL: &str = concat!(
    "
    select a.id, a.platform, a.username, a.name, a.follower_count, a.creator_id, c.name as creator_name,
        ",
    picture_url!("a", "profile_pic_url"),
    ", posted.current, posted.previous
    from accounts a left join creators c on c.id = a.creator_id ",
    count_posts_sql!(),
    " where a.organization_id = $1 and a.id = any($2)"
);

/// An account of a ranking with its posts.
#[derive(FromRow)]
struct ShownAccount {
    #[sqlx(flatten)]
    identity: AccountIdentity,
    #[sqlx(flatten)]
    posts: PostCounts,
}

/// Columns of accounts in a ranking by id, with their posts in a window and in the previous one.
pub async fn fetch_shown(
    pg: &PgPool,
    organization: Uuid,
    ids: &[Uuid],
    window: Window,
) -> Result<HashMap<Uuid, (AccountIdentity, PostCounts)>, Error> {
    let ([previous, _], [start, end]) = (window.previous().times(), window.times());
    let found: Vec<ShownAccount> = sqlx::query_as(RANKED_ACCOUNTS_SQL)
        .bind(organization)
        .bind(ids)
        .bind(previous)
        .bind(start)
        .bind(end)
        .fetch_all(pg)
        .await?;
    Ok(found.into_iter().map(|account| (account.identity.id, (account.identity, account.posts))).collect())
}

pub const COUNT_POSTS: &str = concat!(
    "select a.internal_id, posted.current, posted.previous from accounts a ",
    count_posts_sql!(),
    " where a.organization_id = $1 and a.internal_id = any($2)"
);

/// Counts the posts of accounts in a window and in the previous one, by internal id.
pub async fn count_posts(
    pg: &PgPool,
    organization: Uuid,
    subjects: &[i64],
    window: Window,
) -> Result<HashMap<i64, PostCounts>, Error> {
    let ([previous_start, _], [start, end]) = (window.previous().times(), window.times());
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as(COUNT_POSTS)
        .bind(organization)
        .bind(subjects)
        .bind(previous_start)
        .bind(start)
        .bind(end)
        .fetch_all(pg)
        .await?;
    let counts =
        rows.into_iter().map(|(subject, current, previous)| (subject, PostCounts { current, previous }));
    Ok(counts.collect())
}
