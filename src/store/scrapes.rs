//! What a scrape has to know before it asks a platform, and whether the answer is about the account it asked for.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Write};
use crate::model::platform::Platform;

/// An account as a scrape has to know it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Account {
    pub internal_id: i64,
    pub username: String,
    pub platform_id: Option<String>,
    pub scrape_interval_hours: i32,
    /// How many posts are read at most.
    pub max_posts: i32,
    /// The day before which posts are not read.
    pub not_before: NaiveDate,
}

/// Reads an account before its scrape. The first scrape goes as deep as the limits say; later ones only to the
/// oldest post that is due: those younger than 14 days at every scrape, younger than 90 weekly, older monthly.
pub async fn account(
    pg: &PgPool,
    organization: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Account>, Error> {
    let account = sqlx::query_as(
        "select a.internal_id, a.username, a.platform_id, a.scrape_interval_hours,
                coalesce(a.max_recent_posts, o.default_max_recent_posts) as max_posts,
                greatest(
                    limits.oldest,
                    case when a.first_scrape_time is not null then least(
                        ($3 - interval '14 days')::date,
                        (select min(v.create_time)::date from videos v
                         where v.account_id = a.id and v.create_time >= limits.oldest
                           and v.last_scrape_time <= $3 - case
                                when v.create_time > $3 - interval '90 days' then interval '7 days'
                                else interval '30 days' end)
                    ) end
                ) as not_before
         from accounts a
         join organizations o on o.id = a.organization_id
         cross join lateral (
            select ($3 - make_interval(days => coalesce(a.post_lookback_days, o.default_post_lookback_days)))::date
                as oldest
         ) limits
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
pub struct Video {
    pub external_id: Option<String>,
    pub shortcode: Option<String>,
    pub username: Option<String>,
    pub scrape_interval_hours: i32,
}

pub async fn video(pg: &PgPool, organization: Uuid, id: Uuid) -> Result<Option<Video>, Error> {
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
pub enum Identity {
    Same,
    /// The name leads to somebody else now; why nothing of the answer may be kept.
    Foreign(String),
    /// The account was deleted meanwhile.
    Gone,
}

/// Compares what the platform says of the account's identity with what is known, and records the outcome: a new
/// name of the same account is taken over, a name that belongs to somebody else is given up.
pub async fn identify(
    write: &mut Write,
    account: Uuid,
    platform_id: Option<&str>,
    username: &str,
) -> Result<Identity, Error> {
    #[derive(sqlx::FromRow)]
    struct Known {
        platform: Platform,
        username: String,
        platform_id: Option<String>,
        is_unavailable: bool,
    }
    let organization = write.organization();
    let known: Option<Known> = sqlx::query_as(
        "select platform, username, platform_id, is_unavailable from accounts
         where organization_id = $1 and id = $2 for update",
    )
    .bind(organization)
    .bind(account)
    .fetch_optional(write.connection())
    .await?;
    let Some(known) = known else { return Ok(Identity::Gone) };

    if let (Some(before), Some(now)) = (known.platform_id.as_deref(), platform_id)
        && before != now
    {
        give_up_username(write, account).await?;
        return Ok(Identity::Foreign(format!(
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
            return Ok(Identity::Foreign(format!(
                "the platform's account is tracked already, as {other}: delete this one"
            )));
        }
    }
    let username = username.to_lowercase();
    let renamed = !username.is_empty() && username != known.username;
    sqlx::query(
        "update accounts set platform_id = coalesce(platform_id, $3), is_unavailable = false,
            username = case when $4 and not exists (
                select from accounts o where o.organization_id = $1 and o.platform = accounts.platform
                  and o.username = $5 and o.holds_username and o.id <> accounts.id
            ) then $5 else username end
         where organization_id = $1 and id = $2",
    )
    .bind(organization)
    .bind(account)
    .bind(platform_id)
    .bind(renamed)
    .bind(&username)
    .execute(write.connection())
    .await?;
    if renamed {
        write.account_changed(account);
    }
    if known.is_unavailable || renamed {
        tracing::info!(%account, username, "an account is found again, or under a new name");
    }
    Ok(Identity::Same)
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
pub async fn set_video_unavailable(write: &mut Write, video: Uuid, unavailable: bool) -> Result<bool, Error> {
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
