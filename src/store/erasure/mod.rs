//! How what was deleted goes for good: deleted organizations with all they had, and what deletions of accounts, videos
//! and creators leave behind in ClickHouse, in the outbox and in the files of Postgres.
//!
//! Every step may be repeated, by this process or another, and none looks at what another step remembers: what is left to
//! do is what is still there. When each is due is `worker::erasure`'s matter.

pub mod history;
pub mod organizations;
pub mod outbox;
pub mod vacuum;

use sqlx::{Connection, PgConnection};

use super::Error;

/// The place of the process that erases; given up by dropping it.
pub struct Turn(PgConnection);

impl Turn {
    /// Takes the place; none while another process has it.
    pub async fn take(database_url: &str) -> Result<Option<Self>, Error> {
        let mut connection = PgConnection::connect(database_url).await?;
        let taken: bool = sqlx::query_scalar("select pg_try_advisory_lock(hashtext('tidemark.erasure'))")
            .fetch_one(&mut connection)
            .await?;
        Ok(taken.then_some(Turn(connection)))
    }

    /// Fails when the place is lost.
    pub async fn confirm(&mut self) -> Result<(), Error> {
        Ok(self.0.ping().await?)
    }
}
