//! What a scrape has to know before it asks a platform, and whether the answer is about the account it asked for.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::tracking::targets::DeepReads;
use crate::store::{Error, Write, observations};

/// An account as a scrape has to know it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ScrapeAccount {
    pub internal_id: i64,
    pub username: String,
    pub platform_id: Option<String>,
    pub scrape_interval_hours: i32,
    /// How many posts are read at most.
    pub max_posts: i32,
    /// The day before which posts are not read.
    pub not_before: NaiveDate,
    #[sqlx(flatten)]
    pub deep_reads: DeepReads,
}

/// What an answer says of who the account is.
#[derive(Debug, Clone, Copy)]
pub struct ObservedIdentity<'a> {
    pub platform_id: Option<&'a str>,
    pub username: &'a str,
    /// The platform's ids of its posts.
    pub post_ids: &'a [&'a str],
    /// The day before which posts were not asked for.
    pub not_before: NaiveDate,
}

/// Reads an account before its scrape.
///
/// The first scrape goes as deep as the limits say, and so does one that has to find known posts under a username that
/// was given by hand. Later ones read the posts of the last 14 days, weekly those of
/// 90 days, and monthly all; never beyond the oldest post that is known, but always back to the last scrape. As
/// intervals vary by a twentieth, a week is over a tenth of an interval early.
pub async fn fetch_account(
    pg: &PgPool,
    organization: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<ScrapeAccount>, Error> {
    let account = sqlx::query_as(
        "select a.internal_id, a.username, a.platform_id, a.scrape_interval_hours,
                coalesce(a.max_recent_posts, o.default_max_recent_posts) as max_posts,
                reach.weekly or reach.monthly as weekly, reach.monthly,
                greatest(limits.oldest, case when a.first_scrape_time is not null and not a.username_unchecked then greatest(
                    case when reach.monthly then limits.oldest
                         when reach.weekly then ($3 - interval '90 days')::date
                         else ($3 - interval '14 days')::date end,
                    least(
                        ($3 - interval '14 days')::date,
                        a.last_scrape_time::date,
                        (select min(create_time)::date from videos where account_id = a.id)
                    )
                ) end) as not_before
         from accounts a
         join organizations o on o.id = a.organization_id
         join scrape_targets t on t.id = a.id
         cross join lateral (
            select ($3 - make_interval(days => coalesce(a.post_lookback_days, o.default_post_lookback_days)))::date
                as oldest
         ) limits
         cross join lateral (
            select a.first_scrape_time is null or a.username_unchecked
                    or coalesce(t.weekly_read_at <= early - interval '7 days', true) as weekly,
                a.first_scrape_time is null or a.username_unchecked
                    or coalesce(t.monthly_read_at <= early - interval '30 days', true) as monthly
            from (select $3 + make_interval(hours => a.scrape_interval_hours) / 10 as early) e
         ) reach
         where a.organization_id = $1 and a.id = $2",
    )
    .bind(organization)
    .bind(id)
    .bind(now)
    .fetch_optional(pg)
    .await?;
    Ok(account)
}

/// An individually tracked video as a scrape has to know it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ScrapeVideo {
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub username: Option<String>,
    pub scrape_interval_hours: i32,
}

pub async fn fetch_video(pg: &PgPool, organization: Uuid, id: Uuid) -> Result<Option<ScrapeVideo>, Error> {
    let video = sqlx::query_as(
        "select v.external_id, v.shortcode, a.username, v.scrape_interval_hours
         from videos v left join accounts a on a.id = v.account_id
         where v.organization_id = $1 and v.id = $2 and v.is_tracked",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(pg)
    .await?;
    Ok(video)
}

/// Whether an answer is about the account it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityCheck {
    Matches,
    /// The name leads to somebody else now; why nothing of the answer may be kept.
    OtherAccount(String),
    /// The account was given another name meanwhile, by which it has to be asked for again.
    Renamed,
    /// The account was deleted meanwhile.
    Deleted,
}

#[derive(sqlx::FromRow)]
struct Known {
    platform: Platform,
    username: String,
    platform_id: Option<String>,
    is_unavailable: bool,
    holds_username: bool,
    username_unchecked: bool,
}

async fn lock(write: &mut Write, account: Uuid) -> Result<Option<Known>, Error> {
    let known = sqlx::query_as(
        "select platform, username, platform_id, is_unavailable, holds_username, username_unchecked from accounts
         where organization_id = $1 and id = $2 for update",
    )
    .bind(write.organization())
    .bind(account)
    .fetch_optional(write.connection())
    .await?;
    Ok(known)
}

/// Whether the account still goes by the name that it was asked for by, which it does until the commit.
pub async fn has_username(write: &mut Write, account: Uuid, asked: &str) -> Result<bool, Error> {
    Ok(lock(write, account).await?.is_some_and(|known| known.username == asked))
}

/// Compares what the platform says of the identity of the account that was asked for by a name with what is known,
/// and records the outcome: a new name of the same account is taken over, one that belongs to somebody else is given
/// up, and one that it has again is held again.
pub async fn check_identity(
    write: &mut Write,
    account: Uuid,
    asked: &str,
    said: ObservedIdentity<'_>,
) -> Result<IdentityCheck, Error> {
    let ObservedIdentity { platform_id, username, .. } = said;
    let organization = write.organization();
    let Some(known) = lock(write, account).await? else { return Ok(IdentityCheck::Deleted) };
    if known.username != asked {
        return Ok(IdentityCheck::Renamed);
    }
    if let (Some(before), Some(now)) = (known.platform_id.as_deref(), platform_id)
        && before != now
    {
        give_up_username(write, account).await?;
        return Ok(IdentityCheck::OtherAccount(format!(
            "the username {} now belongs to another account of the platform: correct the username, or delete the account",
            known.username
        )));
    }
    if known.platform_id.is_none()
        && let Some(platform_id) = platform_id
    {
        let other: Option<String> = sqlx::query_scalar(
            "select username from accounts
             where organization_id = $1 and platform = $2 and platform_id = $3 and id <> $4",
        )
        .bind(organization)
        .bind(known.platform)
        .bind(platform_id)
        .bind(account)
        .fetch_optional(write.connection())
        .await?;
        if let Some(other) = other {
            set_account_unavailable(write, account, true).await?;
            return Ok(IdentityCheck::OtherAccount(format!(
                "the platform's account is tracked already, as {other}: delete this one"
            )));
        }
    }
    let same_id = known.platform_id.is_some() && platform_id.is_some();
    if known.username_unchecked && !same_id && !finds_known_post(write, account, said).await? {
        give_up_username(write, account).await?;
        return Ok(IdentityCheck::OtherAccount(format!(
            "none of the account's known posts is found under the username {}: correct the username, or delete the account",
            known.username
        )));
    }
    // Without an id, nobody can tell whether a name that was given up is ours again.
    let ours = known.holds_username || same_id;
    let says = Some(username.to_lowercase()).filter(|name| !name.is_empty() && ours);
    let now_called: String = sqlx::query_scalar(
        "update accounts a set platform_id = coalesce(platform_id, $3), is_unavailable = false, username_unchecked = false,
            username = case when free then $4 else username end, holds_username = holds_username or free
         from (
            select $4 is not null and not exists (
                select from accounts o where o.organization_id = $1 and o.platform = $5 and o.username = $4
                  and o.holds_username and o.id <> $2
            ) as free
         ) name
         where a.organization_id = $1 and a.id = $2
         returning a.username",
    )
    .bind(organization)
    .bind(account)
    .bind(platform_id)
    .bind(says)
    .bind(known.platform)
    .fetch_one(write.connection())
    .await
    .map_err(made_meanwhile)?;
    let renamed = now_called != known.username;
    if renamed {
        write.record_account_change(account);
    }
    if known.is_unavailable || renamed {
        tracing::info!(%account, username = now_called, "an account is found again, or under a new name");
    }
    Ok(IdentityCheck::Matches)
}

/// Whether a post that is known of an account is among those of an answer. An account of which no post is known that
/// the answer could hold has nothing to be told by.
async fn finds_known_post(
    write: &mut Write,
    account: Uuid,
    said: ObservedIdentity<'_>,
) -> Result<bool, Error> {
    let found = sqlx::query_scalar(
        "select coalesce(bool_or(external_id = any($3)), true) from videos
         where organization_id = $1 and account_id = $2 and external_id is not null
           and (create_time is null or create_time >= $4)",
    )
    .bind(write.organization())
    .bind(account)
    .bind(said.post_ids)
    .bind(said.not_before.and_time(NaiveTime::MIN).and_utc())
    .fetch_one(write.connection())
    .await?;
    Ok(found)
}

/// Another unit of work took the name or the platform's id between the look and the change.
fn made_meanwhile(error: sqlx::Error) -> Error {
    match &error {
        sqlx::Error::Database(database) if database.is_unique_violation() => Error::WriteConflict,
        _ => error.into(),
    }
}

async fn give_up_username(write: &mut Write, account: Uuid) -> Result<(), Error> {
    sqlx::query(
        "update accounts set is_unavailable = true, holds_username = false
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(account)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Marks an account as one that the platform does not show, or shows again.
pub async fn set_account_unavailable(
    write: &mut Write,
    account: Uuid,
    unavailable: bool,
) -> Result<(), Error> {
    sqlx::query("update accounts set is_unavailable = $3 where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(account)
        .bind(unavailable)
        .execute(write.connection())
        .await?;
    Ok(())
}

/// Marks an individually tracked video likewise. False when it is gone.
///
/// Its account is locked before it, as by everyone who changes both.
pub async fn set_video_unavailable(write: &mut Write, video: Uuid, unavailable: bool) -> Result<bool, Error> {
    observations::lock_accounts_of(write, &[video]).await?;
    let updated = sqlx::query(
        "update videos set is_unavailable = $3 where organization_id = $1 and id = $2 and is_tracked",
    )
    .bind(write.organization())
    .bind(video)
    .bind(unavailable)
    .execute(write.connection())
    .await?;
    Ok(updated.rows_affected() == 1)
}
