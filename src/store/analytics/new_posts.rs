//! Posts per day, by the time at which they were created.

use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::accounts::SubjectFilter;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::postgres::keyset::push_equal;

/// Pushes a query of the days of a window with posts (`day`, `platform`, `posts`), in no order: of all videos, or of those
/// discovered on the accounts that match.
pub(super) fn push_days(
    query: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    filter: &SubjectFilter,
    window: Window,
) {
    if filter.is_limited_to_accounts() {
        push_days_of_accounts(query, organization, filter, window);
    } else {
        push_all_days(query, organization, filter.platform, window);
    }
}

fn push_all_days(
    query: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    platform: Option<Platform>,
    window: Window,
) {
    query.push("select day, platform, sum(posts)::bigint as posts from post_days where organization_id = ");
    query.push_bind(organization);
    query.push(" and day between ").push_bind(window.start).push(" and ").push_bind(window.end);
    push_equal(query, "platform", platform);
    query.push(" group by day, platform");
}

/// Counts in the index `videos_of_account`, one account at a time: `offset 0` excludes plans that read other videos.
fn push_days_of_accounts(
    query: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    filter: &SubjectFilter,
    window: Window,
) {
    let [start, end] = window.times();
    query.push(
        "select (v.create_time at time zone 'UTC')::date as day, a.platform, count(*) as posts
         from accounts a cross join lateral (
             select create_time from videos where account_id = a.id and create_time >= ",
    );
    query.push_bind(start);
    query.push(" and create_time < ").push_bind(end);
    query.push(" offset 0) v where a.organization_id = ").push_bind(organization);
    filter.push_to(query);
    query.push(" group by 1, 2");
}
