//! Pauses of sources: until when no tracker process may send requests, and why.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::PgPool;

use crate::model::platform::Platform;
use crate::store::Error;

/// Why a source is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum PauseCause {
    /// The platform's limit, or the budget of the day, is used up.
    RateLimit,
    /// The platform refuses the credentials.
    Credentials,
}

/// A pause of a source on a platform. After its end, one attempt decides whether the source is resumed.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SourcePause {
    pub platform: Platform,
    pub source: String,
    pub until: DateTime<Utc>,
    pub cause: PauseCause,
    pub reason: String,
}

impl SourcePause {
    /// Whether the source is still paused: a rate limit ends at `until`, rejected credentials only with a success.
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        self.cause == PauseCause::Credentials || self.until > now
    }
}

/// Returns all pauses, including those that are over but not resumed yet.
pub async fn fetch_all(pg: &PgPool) -> Result<Vec<SourcePause>, Error> {
    Ok(sqlx::query_as("select platform, source, until, cause, reason from source_pauses")
        .fetch_all(pg)
        .await?)
}

/// Pauses a source, or prolongs its pause; never shortens it. Returns whether the pause is new.
pub async fn start(pg: &PgPool, pause: &SourcePause, now: DateTime<Utc>) -> Result<bool, Error> {
    // `xmax = 0` holds for an inserted row, not for an updated one.
    let is_new = sqlx::query_scalar(
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
    Ok(is_new)
}

/// Resumes a source whose pause is over. Returns whether it was paused.
pub async fn end(pg: &PgPool, platform: Platform, source: &str, now: DateTime<Utc>) -> Result<bool, Error> {
    let ended = sqlx::query("delete from source_pauses where platform = $1 and source = $2 and until <= $3")
        .bind(platform)
        .bind(source)
        .bind(now)
        .execute(pg)
        .await?;
    Ok(ended.rows_affected() > 0)
}

/// Ends the pauses for rejected credentials now: a process that starts may have new ones.
pub async fn expire_credential_pauses(pg: &PgPool, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query("update source_pauses set until = least(until, $1) where cause = 'credentials'")
        .bind(now)
        .execute(pg)
        .await?;
    Ok(())
}
