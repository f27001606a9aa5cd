//! The figures of an overview that are in Postgres: numbers of records and of new posts.

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::accounts::SubjectFilter;
use super::new_posts;
use super::scope::{ScopeRow, SubjectScope, push_scope};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::keyset::push_equal;

/// Number of records of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, FromRow)]
pub struct RecordCounts {
    /// Accounts, including paused ones.
    #[schemars(example = 128)]
    pub accounts: i64,
    /// Accounts whose own `is_active` is true.
    #[schemars(example = 121)]
    pub active_accounts: i64,
    /// Creators; with a filter, those of the accounts that match.
    #[schemars(example = 64)]
    pub creators: i64,
    /// Account-discovered and individually tracked videos, each counted once.
    #[schemars(example = 18_420)]
    pub videos: i64,
    /// Account-discovered videos.
    #[schemars(example = 18_377)]
    pub account_videos: i64,
    /// Individually tracked videos.
    #[schemars(example = 96)]
    pub individual_videos: i64,
}

/// The part of an overview that is in Postgres.
#[derive(Debug)]
pub struct OverviewRecords {
    pub scope: SubjectScope,
    pub totals: RecordCounts,
    /// Number of videos posted in the window.
    pub new_posts: i64,
    /// Number of videos posted in the previous window.
    pub previous_posts: i64,
}

#[derive(FromRow)]
struct OverviewRow {
    #[sqlx(flatten)]
    scope: ScopeRow,
    #[sqlx(flatten)]
    totals: RecordCounts,
    new_posts: i64,
    previous_posts: i64,
}

/// Reads the subjects, and counts records and posts: of the whole organization, on one platform or all, or of the accounts that
/// match. Fails if the organization lacks the account or the creator to filter by.
pub fn records(organization: Uuid, filter: &SubjectFilter, window: Window) -> RecordsQuery<OverviewRecords> {
    let mut query = QueryBuilder::new("select counts.*, posted.*, ");
    push_scope(&mut query, organization, filter);
    query.push(" from (");
    if filter.is_limited_to_accounts() {
        push_counts_of_accounts(&mut query, organization, filter);
    } else {
        push_all_counts(&mut query, organization, filter.platform);
    }
    query.push(") counts cross join (select coalesce(sum(posts) filter (where day >= ");
    query
        .push_bind(window.start)
        .push("), 0)::bigint as new_posts, coalesce(sum(posts) filter (where day < ");
    query.push_bind(window.start).push("), 0)::bigint as previous_posts from (");
    let both = Window { start: window.previous().start, ..window };
    new_posts::push_days(&mut query, organization, filter, both);
    query.push(") days) posted");
    let filter = filter.clone();
    RecordsQuery::row(query).and_then(move |row: OverviewRow| {
        let OverviewRow { scope, totals, new_posts, previous_posts } = row;
        let scope = scope.into_scope(&filter)?;
        Ok(OverviewRecords { scope, totals, new_posts, previous_posts })
    })
}

/// Counts all records. With a platform, creators are those with an account there. Discovered videos are the sum of the
/// accounts' own totals, which costs less than counting rows.
fn push_all_counts(query: &mut QueryBuilder<Postgres>, organization: Uuid, platform: Option<Platform>) {
    query.push("select accounts, active_accounts, ");
    if platform.is_none() {
        query
            .push("(select count(*) from creators where organization_id = ")
            .push_bind(organization)
            .push(") as ");
    }
    query.push(
        "creators, account_videos + tracked_alone as videos, account_videos, individual_videos
         from (
            select count(*) as accounts, count(*) filter (where is_active) as active_accounts,",
    );
    if platform.is_some() {
        query.push(" count(distinct creator_id) as creators,");
    }
    query.push(" coalesce(sum(total_post_count), 0)::bigint as account_videos from accounts where organization_id = ");
    query.push_bind(organization);
    push_equal(query, "platform", platform);
    query.push(
        ") a cross join (
            select count(*) filter (where account_id is null) as tracked_alone, count(*) as individual_videos
            from videos where is_tracked and organization_id = ",
    );
    query.push_bind(organization);
    push_equal(query, "platform", platform);
    query.push(") v");
}

/// Counts accounts, their creators and their discovered videos.
fn push_counts_of_accounts(query: &mut QueryBuilder<Postgres>, organization: Uuid, filter: &SubjectFilter) {
    query.push(
        "with matching as (
            select a.id, a.is_active, a.creator_id, a.total_post_count from accounts a where a.organization_id = ",
    );
    query.push_bind(organization);
    filter.push_to(query);
    query.push(
        "), tracked as (
            select count(*) as videos from videos
            where is_tracked and account_id in (select id from matching) and organization_id = ",
    );
    query.push_bind(organization);
    query.push(
        ")
        select count(*) as accounts, count(*) filter (where is_active) as active_accounts,
               count(distinct creator_id) as creators,
               coalesce(sum(total_post_count), 0)::bigint as videos,
               coalesce(sum(total_post_count), 0)::bigint as account_videos,
               (select videos from tracked) as individual_videos
        from matching",
    );
}
