//! Posts per day, by the time at which they were created.

use chrono::NaiveDate;
use sqlx::{PgPool, QueryBuilder};
use uuid::Uuid;

use super::accounts::AccountFilter;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::keyset::push_equal;

/// Number of videos of a platform that were posted on a UTC day.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct DayPosts {
    pub day: NaiveDate,
    pub platform: Platform,
    pub posts: i64,
}

/// Reads the days of a window with posts, in no order: of all videos, or of those discovered on the accounts that match.
pub(super) async fn fetch(
    pg: &PgPool,
    organization: Uuid,
    filter: &AccountFilter,
    window: Window,
) -> Result<Vec<DayPosts>, Error> {
    if filter.is_limited_to_accounts() {
        fetch_of_accounts(pg, organization, filter, window).await
    } else {
        fetch_all(pg, organization, filter.platform, window).await
    }
}

async fn fetch_all(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
    window: Window,
) -> Result<Vec<DayPosts>, Error> {
    let mut query = QueryBuilder::new(
        "select day, platform, sum(posts)::bigint as posts from post_days where organization_id = ",
    );
    query.push_bind(organization);
    query.push(" and day between ").push_bind(window.start).push(" and ").push_bind(window.end);
    push_equal(&mut query, "platform", platform);
    query.push(" group by day, platform");
    Ok(query.build_query_as().fetch_all(pg).await?)
}

/// Counts in the index `videos_of_account`, one account at a time: `offset 0` excludes plans that read other videos.
async fn fetch_of_accounts(
    pg: &PgPool,
    organization: Uuid,
    filter: &AccountFilter,
    window: Window,
) -> Result<Vec<DayPosts>, Error> {
    let [start, end] = window.times();
    let mut query = QueryBuilder::new(
        "select (v.create_time at time zone 'UTC')::date as day, a.platform, count(*) as posts
         from accounts a cross join lateral (
             select create_time from videos where account_id = a.id and create_time >= ",
    );
    query.push_bind(start);
    query.push(" and create_time < ").push_bind(end);
    query.push(" offset 0) v where a.organization_id = ").push_bind(organization);
    filter.push_to(&mut query);
    query.push(" group by 1, 2");
    Ok(query.build_query_as().fetch_all(pg).await?)
}
