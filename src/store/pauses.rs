//! Platforms whose queue rests: until when, and why. Every tracker process obeys them, a restarted one too.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use super::Error;
use crate::model::platform::Platform;

/// Why a platform's queue rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Cause {
    RateLimit,
    Credentials,
}

/// The rest of a platform's queue. Once it is over, one attempt shows whether the queue may go on.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Pause {
    pub platform: Platform,
    pub until: DateTime<Utc>,
    pub cause: Cause,
    pub reason: String,
}

/// The platforms whose queue rests, or rested and has not gone on yet.
pub async fn all(pg: &PgPool) -> Result<Vec<Pause>, Error> {
    Ok(sqlx::query_as("select platform, until, cause, reason from platform_pauses").fetch_all(pg).await?)
}

/// Stops a platform's queue until then, or longer if it was to rest longer. Says whether it went on until now.
pub async fn begin(pg: &PgPool, pause: &Pause, now: DateTime<Utc>) -> Result<bool, Error> {
    let begun = sqlx::query_scalar(
        "insert into platform_pauses as p (platform, until, cause, reason, since) values ($1, $2, $3, $4, $5)
         on conflict (platform) do update set until = greatest(p.until, excluded.until),
            cause = case when p.until > excluded.until then p.cause else excluded.cause end,
            reason = case when p.until > excluded.until then p.reason else excluded.reason end
         returning xmax = 0",
    )
    .bind(pause.platform)
    .bind(pause.until)
    .bind(pause.cause)
    .bind(&pause.reason)
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(begun)
}

/// Lets a platform's queue go on after its rest. Says whether it had rested.
pub async fn end(pg: &PgPool, platform: Platform, now: DateTime<Utc>) -> Result<bool, Error> {
    let ended = sqlx::query("delete from platform_pauses where platform = $1 and until <= $2")
        .bind(platform)
        .bind(now)
        .execute(pg)
        .await?;
    Ok(ended.rows_affected() > 0)
}

/// Lets platforms try at once whose credentials were refused: a process that starts may bring new ones.
pub async fn retry_credentials(pg: &PgPool, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query("update platform_pauses set until = least(until, $1) where cause = 'credentials'")
        .bind(now)
        .execute(pg)
        .await?;
    Ok(())
}
