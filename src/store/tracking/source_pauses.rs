//! Sources that may not be asked for a while: until when, and why. Every tracker process obeys them, a restarted one too.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

use crate::model::platform::Platform;
use crate::store::Error;

/// Why a source rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum PauseCause {
    RateLimit,
    Credentials,
}

/// The rest of a source on a platform. Once it is over, one attempt shows whether it may be asked again.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SourcePause {
    pub platform: Platform,
    pub source: String,
    pub until: DateTime<Utc>,
    pub cause: PauseCause,
    pub reason: String,
}

impl SourcePause {
    /// Whether the source rests: at its limit until then, without credentials until it has answered.
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        self.cause == PauseCause::Credentials || self.until > now
    }
}

/// The sources that rest, or rested and have not answered since.
pub async fn fetch_all(pg: &PgPool) -> Result<Vec<SourcePause>, Error> {
    Ok(sqlx::query_as("select platform, source, until, cause, reason from source_pauses")
        .fetch_all(pg)
        .await?)
}

/// Lets a source rest until then, or longer if it was to rest longer. Says whether it went on until now.
pub async fn start(pg: &PgPool, pause: &SourcePause, now: DateTime<Utc>) -> Result<bool, Error> {
    let begun = sqlx::query_scalar(
        "insert into source_pauses as p (platform, source, until, cause, reason, since) values ($1, $2, $3, $4, $5, $6)
         on conflict (platform, source) do update set until = greatest(p.until, excluded.until),
            cause = case when p.until > excluded.until then p.cause else excluded.cause end,
            reason = case when p.until > excluded.until then p.reason else excluded.reason end
         returning xmax = 0",
    )
    .bind(pause.platform)
    .bind(&pause.source)
    .bind(pause.until)
    .bind(pause.cause)
    .bind(&pause.reason)
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(begun)
}

/// Lets a source go on after its rest. Says whether it had rested.
pub async fn end(pg: &PgPool, platform: Platform, source: &str, now: DateTime<Utc>) -> Result<bool, Error> {
    let ended = sqlx::query("delete from source_pauses where platform = $1 and source = $2 and until <= $3")
        .bind(platform)
        .bind(source)
        .bind(now)
        .execute(pg)
        .await?;
    Ok(ended.rows_affected() > 0)
}

/// Lets sources try at once whose credentials were refused: a process that starts may bring new ones.
pub async fn expire_credential_pauses(pg: &PgPool, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query("update source_pauses set until = least(until, $1) where cause = 'credentials'")
        .bind(now)
        .execute(pg)
        .await?;
    Ok(())
}
