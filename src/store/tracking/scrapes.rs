//! Reads the account or video to scrape, and checks that a response is about the requested account.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::event::{EventData, EventType};
use crate::model::identifier::VideoIds;
use crate::model::platform::Platform;
use crate::store::records::events::NewEvent;
use crate::store::tracking::targets::DeepReads;
use crate::store::{Error, Write, observations};

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ScrapeAccount {
    pub internal_id: i64,
    pub username: String,
    pub platform_id: Option<String>,
    pub max_posts: i32,
    /// Posts before this day are not read.
    pub not_before: NaiveDate,
    #[sqlx(flatten)]
    pub deep_reads: DeepReads,
}

/// The ids of posts, as records have them.
#[derive(Debug, Clone, Default)]
pub struct PostIds {
    external_ids: Vec<String>,
    shortcodes: Vec<String>,
}

impl Extend<VideoIds> for PostIds {
    fn extend<T: IntoIterator<Item = VideoIds>>(&mut self, posts: T) {
        for ids in posts {
            self.external_ids.extend(ids.external_ids());
            self.shortcodes.extend(ids.shortcode_key().map(str::to_owned));
        }
    }
}

/// The identity of an account in a platform's response.
#[derive(Debug, Clone, Copy)]
pub struct ObservedIdentity<'a> {
    pub platform_id: Option<&'a str>,
    pub username: &'a str,
    /// The ids of the account's posts.
    pub posts: &'a PostIds,
    /// Posts before this day were not requested.
    pub not_before: NaiveDate,
}

/// Reads an account and how far back to read its posts.
///
/// The first scrape reads up to the account's limits, and so does one that checks a corrected username. Later scrapes read
/// the posts of the last 14 days, weekly those of 90 days, and monthly all: never beyond the oldest stored post, but always
/// back to the last scrape. Intervals are jittered, so a week counts as over a tenth of an interval early.
pub async fn fetch_account(
    pg: &PgPool,
    organization: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<ScrapeAccount>, Error> {
    let account = sqlx::query_as(
        "select a.internal_id, a.username, a.platform_id,
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

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ScrapeVideo {
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub username: Option<String>,
}

pub async fn fetch_video(pg: &PgPool, organization: Uuid, id: Uuid) -> Result<Option<ScrapeVideo>, Error> {
    let video = sqlx::query_as(
        "select v.external_id, coalesce(v.whole_shortcode, v.shortcode) as shortcode, a.username
         from videos v left join accounts a on a.id = v.account_id
         where v.organization_id = $1 and v.id = $2 and v.is_tracked",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(pg)
    .await?;
    Ok(video)
}

/// Whether a response is about the requested account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityCheck {
    Matches,
    /// The username belongs to another account. The text is the error of the attempt.
    OtherAccount(String),
    /// The username was corrected meanwhile: request it again.
    Renamed,
    Deleted,
}

#[derive(sqlx::FromRow)]
struct LockedAccount {
    platform: Platform,
    username: String,
    platform_id: Option<String>,
    is_unavailable: bool,
    holds_username: bool,
    username_unchecked: bool,
}

async fn lock(write: &mut Write, account: Uuid) -> Result<Option<LockedAccount>, Error> {
    let account = sqlx::query_as(
        "select platform, username, platform_id, is_unavailable, holds_username, username_unchecked from accounts
         where organization_id = $1 and id = $2 for update",
    )
    .bind(write.organization())
    .bind(account)
    .fetch_optional(write.connection())
    .await?;
    Ok(account)
}

/// Locks an account until the commit, and returns whether it has a username.
pub async fn lock_and_compare_username(
    write: &mut Write,
    account: Uuid,
    username: &str,
) -> Result<bool, Error> {
    Ok(lock(write, account).await?.is_some_and(|locked| locked.username == username))
}

/// Compares an account with the identity in the response to a request for `requested`, and records the result: a new
/// username is stored, one that belongs to another account is released, and one that the account has again is restored.
pub async fn check_identity(
    write: &mut Write,
    account: Uuid,
    requested: &str,
    observed: ObservedIdentity<'_>,
    now: DateTime<Utc>,
) -> Result<IdentityCheck, Error> {
    let Some(locked) = lock(write, account).await? else { return Ok(IdentityCheck::Deleted) };
    if locked.username != requested {
        return Ok(IdentityCheck::Renamed);
    }
    if let (Some(stored), Some(observed)) = (locked.platform_id.as_deref(), observed.platform_id)
        && stored != observed
    {
        mark_unavailable(write, account, false, now).await?;
        return Ok(IdentityCheck::OtherAccount(format!(
            "the username {requested} now belongs to another account of the platform: correct the username, or delete the \
             account"
        )));
    }
    if locked.platform_id.is_none()
        && let Some(platform_id) = observed.platform_id
        && let Some(other) = find_by_platform_id(write, account, platform_id, observed.posts).await?
    {
        if !other.gives_way {
            mark_unavailable(write, account, true, now).await?;
            return Ok(IdentityCheck::OtherAccount(describe_duplicate(&other.username)));
        }
        release_platform_id(write, other.id, &locked.username, now).await?;
    }
    let same_id = locked.platform_id.is_some() && observed.platform_id.is_some();
    if locked.username_unchecked && !same_id && !has_known_post(write, account, observed).await? {
        mark_unavailable(write, account, false, now).await?;
        return Ok(IdentityCheck::OtherAccount(format!(
            "the username {requested} shows none of the account's known posts: correct the username, or delete the account"
        )));
    }
    // Without an id, a released username cannot be attributed to the account again.
    let owns_username = locked.holds_username || same_id;
    update_identity(write, account, &locked, observed, owns_username, now).await?;
    Ok(IdentityCheck::Matches)
}

/// Another account with the platform id of a response.
#[derive(sqlx::FromRow)]
struct Duplicate {
    id: Uuid,
    username: String,
    /// It is newer, and the history of this account, if it has any, is that of the response.
    gives_way: bool,
}

fn describe_duplicate(username: &str) -> String {
    format!("the platform's account is tracked already, as {username}: delete this one")
}

async fn find_by_platform_id(
    write: &mut Write,
    account: Uuid,
    platform_id: &str,
    posts: &PostIds,
) -> Result<Option<Duplicate>, Error> {
    let duplicate = sqlx::query_as(
        "select o.id, o.username,
                (o.added_at, o.id) > (a.added_at, a.id) and (a.tracked_since is null or exists (
                    select from videos where account_id = a.id and (external_id = any($4) or shortcode = any($5))
                )) as gives_way
         from accounts a
         join accounts o on o.organization_id = a.organization_id and o.platform = a.platform
             and o.platform_id = $3 and o.id <> a.id
         where a.organization_id = $1 and a.id = $2",
    )
    .bind(write.organization())
    .bind(account)
    .bind(platform_id)
    .bind(&posts.external_ids)
    .bind(&posts.shortcodes)
    .fetch_optional(write.connection())
    .await?;
    Ok(duplicate)
}

/// Marks an account as unavailable because an older one, with a username, is that of the platform. What has its own username
/// later must show one of its known posts.
async fn release_platform_id(
    write: &mut Write,
    account: Uuid,
    older: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    mark_unavailable(write, account, true, now).await?;
    sqlx::query(
        "with released as (
             update accounts set platform_id = null, username_unchecked = true where organization_id = $1 and id = $2
         )
         update scrape_targets set last_error = $3 where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(account)
    .bind(describe_duplicate(older))
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Stores the platform id, and the username if the account owns it and no other account of the organization holds it.
async fn update_identity(
    write: &mut Write,
    account: Uuid,
    locked: &LockedAccount,
    observed: ObservedIdentity<'_>,
    owns_username: bool,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let new_username =
        Some(observed.username.to_lowercase()).filter(|name| !name.is_empty() && owns_username);
    let username: String = sqlx::query_scalar(
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
    .bind(write.organization())
    .bind(account)
    .bind(observed.platform_id)
    .bind(new_username)
    .bind(locked.platform)
    .fetch_one(write.connection())
    .await
    // Another transaction took the username or the platform id since it was checked.
    .map_err(Error::of_unique_write)?;
    let is_renamed = username != locked.username;
    if locked.is_unavailable {
        write.record_target_change(account);
        let event = NewEvent::of_account(EventType::AccountAvailable, account, EventData::default());
        write.record_event(event, now);
    }
    if is_renamed {
        write.record_account_change(account);
        let data = EventData { previous_username: Some(locked.username.clone()), ..EventData::default() };
        write.record_event(NewEvent::of_account(EventType::AccountRenamed, account, data), now);
    }
    if locked.is_unavailable || is_renamed {
        tracing::info!(%account, username, "account is available again, or has a new username");
    }
    Ok(())
}

/// Whether a response contains a stored post of the account. Also true if no stored post could be in it.
async fn has_known_post(
    write: &mut Write,
    account: Uuid,
    observed: ObservedIdentity<'_>,
) -> Result<bool, Error> {
    let found = sqlx::query_scalar(
        "select coalesce(bool_or(external_id = any($3) or coalesce(shortcode = any($5), false)), true) from videos
         where organization_id = $1 and account_id = $2 and external_id is not null
           and (create_time is null or create_time >= $4)",
    )
    .bind(write.organization())
    .bind(account)
    .bind(&observed.posts.external_ids)
    .bind(observed.not_before.and_time(NaiveTime::MIN).and_utc())
    .bind(&observed.posts.shortcodes)
    .fetch_one(write.connection())
    .await?;
    Ok(found)
}

/// Marks an account as unavailable. Unless it keeps its username, another account of the organization may have that.
pub async fn mark_unavailable(
    write: &mut Write,
    account: Uuid,
    keeps_username: bool,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let is_news: Option<bool> = sqlx::query_scalar(
        "with before as (
            select id, is_unavailable from accounts where organization_id = $1 and id = $2 for update
         )
         update accounts a set is_unavailable = true, holds_username = holds_username and $3
         from before where a.id = before.id
         returning not before.is_unavailable",
    )
    .bind(write.organization())
    .bind(account)
    .bind(keeps_username)
    .fetch_optional(write.connection())
    .await?;
    write.record_target_change(account);
    if is_news == Some(true) {
        let event = NewEvent::of_account(EventType::AccountUnavailable, account, EventData::default());
        write.record_event(event, now);
    }
    Ok(())
}

/// Returns false if the video is no longer tracked. Locks its account first.
pub async fn set_video_unavailable(write: &mut Write, video: Uuid, unavailable: bool) -> Result<bool, Error> {
    observations::lock_account_of_video(write, video).await?;
    let has_changed: Option<bool> = sqlx::query_scalar(
        "with before as (
            select id, is_unavailable from videos where organization_id = $1 and id = $2 and is_tracked for update
         )
         update videos v set is_unavailable = $3 from before where v.id = before.id
         returning before.is_unavailable <> $3",
    )
    .bind(write.organization())
    .bind(video)
    .bind(unavailable)
    .fetch_optional(write.connection())
    .await?;
    if has_changed == Some(true) {
        write.record_target_change(video);
    }
    Ok(has_changed.is_some())
}
