//! Reads accounts. [`create`] and [`change`] write them.

pub mod change;
pub mod create;
mod list;

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::{Account, AccountCategory, AccountStats, AccountTracking};
use crate::model::counters::Counters;
use crate::model::identifier::Username;
use crate::model::platform::{Platform, names};
use crate::model::readable::ReadablePlatforms;
use crate::model::text::fold_case;
use crate::model::tracking::{FailureReason, TrackingStatus};
use crate::store::pictures::picture_url;
use crate::store::{Error, Write};

pub(in crate::store) use list::username_filter;
pub use list::{AccountFilter, AccountSort, list, list_named, list_query, named_query};

/// How a request identifies an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountIdentifier {
    Id(Uuid),
    /// As stored: without `@`, in lower case.
    Username(String),
}

/// The columns of an account, up to the parameter of the last one, `tracking_supported`.
static COLUMNS: LazyLock<String> = LazyLock::new(|| {
    let column = |field: &&str| match *field {
        "profile_pic_url" => picture_url!("a", "profile_pic_url").to_owned(),
        "creator_name" => format!("c.name as {field}"),
        "counters" => Counters::NAMES.map(|name| format!("a.{name}")).join(", "),
        "max_recent_posts_per_account" => format!("a.max_recent_posts as {field}"),
        "effective_max_recent_posts_per_account" => {
            format!("coalesce(a.max_recent_posts, o.default_max_recent_posts) as {field}")
        }
        "effective_post_lookback_days" => {
            format!("coalesce(a.post_lookback_days, o.default_post_lookback_days) as {field}")
        }
        "tracking" => format!("{TRACKING} a.platform = any("),
        field => format!("a.{field}"),
    };
    let fields = Account::FIELDS.iter().filter(|field| **field != "r#type");
    fields.map(column).collect::<Vec<_>>().join(", ")
});

const TRACKING: &str = "
    a.is_unavailable as tracking_unavailable, a.is_active as tracking_active,
    coalesce(c.is_active, true) as tracking_creator_active, coalesce(t.failures > 0, false) as tracking_failing,
    a.last_scrape_time is not null as tracking_scraped, t.last_attempt_at as tracking_last_attempt_at,
    t.next_attempt_at as tracking_next_attempt_at, t.last_error as tracking_last_error, ";

/// The time of the next attempt of `scrape_targets t`, null while none is planned. It is indexed.
const NEXT_ATTEMPT: &str = "(case when t.enabled then t.next_attempt_at end)";

const JOINS: &str = ") as tracking_supported
    from page
    join accounts a on a.id = page.id
    join organizations o on o.id = a.organization_id
    left join creators c on c.id = a.creator_id
    left join scrape_targets t on t.id = a.id";

fn push_select(query: &mut QueryBuilder<Postgres>, readable: &ReadablePlatforms) {
    query.push("select ").push(COLUMNS.as_str()).push_bind(names(&readable.accounts)).push(JOINS);
}

/// Pushes the condition that `accounts a` has one of these tracking statuses. The stored status of its target does not know
/// which platforms have a source.
///
/// coalesce: the planner has no statistics of this, and would rather sort all rows than expect many.
pub(in crate::store) fn push_status_condition(
    query: &mut QueryBuilder<Postgres>,
    readable: &ReadablePlatforms,
    statuses: &[TrackingStatus],
) {
    let statuses: Vec<_> = statuses.iter().map(ToString::to_string).collect();
    query.push(" and coalesce(case when a.platform <> all(").push_bind(names(&readable.accounts));
    query.push(") then 'unsupported' else (select status from scrape_targets where id = a.id) end = any(");
    query.push_bind(statuses).push("), false)");
}

/// Pushes the condition that `accounts a` is failing for a reason.
fn push_failure_condition(
    query: &mut QueryBuilder<Postgres>,
    readable: &ReadablePlatforms,
    reason: FailureReason,
) {
    query.push(" and a.platform = any(").push_bind(names(&readable.accounts));
    query.push(") and coalesce((select counted_failure from scrape_targets where id = a.id) = ");
    query.push_bind(reason).push(", false)");
}

/// Reads one account.
pub async fn get(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    readable: &ReadablePlatforms,
    id: Uuid,
) -> Result<Account, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("with page as (select id from accounts where organization_id = ");
    query.push_bind(organization).push(" and id = ").push_bind(id).push(") ");
    push_select(&mut query, readable);
    query.build_query_as().fetch_optional(pg).await?.ok_or(Error::NotFound("account"))
}

/// Reads whether accounts are updated, by id.
pub async fn fetch_tracking(
    pg: &PgPool,
    organization: Uuid,
    readable: &ReadablePlatforms,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, AccountTracking>, Error> {
    #[derive(sqlx::FromRow)]
    struct TrackingRow {
        id: Uuid,
        #[sqlx(flatten)]
        tracking: AccountTracking,
    }
    let rows: Vec<TrackingRow> =
        tracking_query(organization, readable, ids).build_query_as().fetch_all(pg).await?;
    Ok(rows.into_iter().map(|TrackingRow { id, tracking }| (id, tracking)).collect())
}

/// Builds the query of [`fetch_tracking`].
pub fn tracking_query(
    organization: Uuid,
    readable: &ReadablePlatforms,
    ids: &[Uuid],
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("with page as (select id from accounts where organization_id = ");
    query.push_bind(organization).push(" and id = any(").push_bind(ids).push(")) select a.id, a.is_active, ");
    query.push(TRACKING).push(" a.platform = any(").push_bind(names(&readable.accounts)).push(JOINS);
    query
}

/// Finds the account that a request identifies. Fails if a username matches on several platforms.
pub async fn find(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    identifier: &AccountIdentifier,
    platform: Option<Platform>,
) -> Result<Uuid, Error> {
    let found: Vec<Uuid> = match identifier {
        AccountIdentifier::Id(id) => {
            let query = sqlx::query_scalar("select id from accounts where organization_id = $1 and id = $2");
            query.bind(organization).bind(id).fetch_all(pg).await?
        }
        // Postgres rejects NUL in text.
        AccountIdentifier::Username(username) if username.contains('\0') => Vec::new(),
        AccountIdentifier::Username(username) => {
            let query = sqlx::query_scalar(
                "select id from accounts
                 where organization_id = $1 and username = $2 and holds_username and platform = coalesce($3, platform)",
            );
            query.bind(organization).bind(username).bind(platform).fetch_all(pg).await?
        }
    };
    match found[..] {
        [] => Err(Error::NotFound("account")),
        [id] => Ok(id),
        _ => Err(Error::Conflict(
            "the username is tracked on both platforms: add ?platform=, or use the account's id".to_owned(),
        )),
    }
}

/// Returns the organization's accounts of these names, and those of the same usernames on other platforms.
async fn find_tracked(
    write: &mut Write,
    names: &[(Platform, &str)],
) -> Result<HashMap<(Platform, String), Uuid>, Error> {
    let usernames: Vec<_> = names.iter().map(|(_, username)| *username).collect();
    let tracked: Vec<(Platform, String, Uuid)> = sqlx::query_as(FIND_TRACKED)
        .bind(write.organization())
        .bind(usernames)
        .fetch_all(write.connection())
        .await?;
    Ok(tracked.into_iter().map(|(platform, username, id)| ((platform, username), id)).collect())
}

/// Public for tests of its plan. Not by a join: while statistics do not know a new organization, the planner would expect one
/// account, and read all of them for each name.
pub const FIND_TRACKED: &str = "select platform, username, id from accounts
     where organization_id = $1 and username = any($2) and holds_username";

fn already_tracked(id: Uuid, platform: Platform, username: &Username) -> Error {
    let username = username.as_str();
    Error::Exists { id, detail: format!("{platform} account @{username} is already tracked as account {id}") }
}

/// Fails if the organization has no such account.
pub async fn require(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<(), Error> {
    find(pg, organization, &AccountIdentifier::Id(id), None).await.map(drop)
}

/// Counts each account's discovered posts, in all and on each of the seven days until today.
pub async fn fetch_stats(
    pg: &PgPool,
    organization: Uuid,
    today: NaiveDate,
) -> Result<Vec<AccountStats>, Error> {
    let days = AccountStats::days(today);
    let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
    let until: DateTime<Utc> = midnight(today) + chrono::Days::new(1);
    let rows: Vec<(Uuid, i64, Option<NaiveDate>, Option<i64>)> = sqlx::query_as(
        "select a.id, a.total_post_count, posted.day, posted.posts
         from accounts a
         left join (
             select account_id, (create_time at time zone 'UTC')::date as day, count(*) as posts
             from videos
             where organization_id = $1 and account_id is not null and create_time >= $2 and create_time < $3
             group by 1, 2
         ) posted on posted.account_id = a.id
         where a.organization_id = $1
         order by a.id",
    )
    .bind(organization)
    .bind(midnight(days[0]))
    .bind(until)
    .fetch_all(pg)
    .await?;
    let mut stats: Vec<AccountStats> = Vec::new();
    for (account_id, account_videos_count, day, posts) in rows {
        if stats.last().is_none_or(|last| last.account_id != account_id) {
            stats.push(AccountStats { account_id, account_videos_count, posts_per_day_7d: [0; 7] });
        }
        let index = day.and_then(|day| days.iter().position(|other| *other == day));
        if let (Some(last), Some(index), Some(posts)) = (stats.last_mut(), index, posts) {
            last.posts_per_day_7d[index] = posts;
        }
    }
    Ok(stats)
}

/// Counts the accounts of each category, by the lower-case form of its name, as names are sorted.
pub async fn fetch_categories(pg: &PgPool, organization: Uuid) -> Result<Vec<AccountCategory>, Error> {
    let mut categories: Vec<AccountCategory> = sqlx::query_as(
        "select category, count(*) as accounts from accounts
         where organization_id = $1 and category is not null group by category",
    )
    .bind(organization)
    .fetch_all(pg)
    .await?;
    categories.sort_by_cached_key(|entry| (fold_case(&entry.category), entry.category.clone()));
    Ok(categories)
}
