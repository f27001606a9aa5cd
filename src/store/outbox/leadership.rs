//! The relay's place, which one process has at a time: a lock that lives as long as a connection to Postgres.

use sqlx::{Connection, PgConnection};

use crate::store::Error;

/// The place of the process that delivers; given up by dropping it.
pub struct Leadership(PgConnection);

impl Leadership {
    /// Takes the relay's place; none while another process has it.
    pub async fn take(database_url: &str) -> Result<Option<Self>, Error> {
        let mut connection = PgConnection::connect(database_url).await?;
        // A leader whose machine is gone says no goodbye: Postgres has to find out, within half a minute.
        for setting in [
            "set tcp_keepalives_idle = 10",
            "set tcp_keepalives_interval = 5",
            "set tcp_keepalives_count = 4",
        ] {
            sqlx::query(setting).execute(&mut connection).await?;
        }
        let leads: bool = sqlx::query_scalar("select pg_try_advisory_lock(hashtext('tidemark.relay'))")
            .fetch_one(&mut connection)
            .await?;
        Ok(leads.then_some(Leadership(connection)))
    }

    /// Leaves the place to the next one, who need not find out that this one is gone.
    pub async fn give_up(self) -> Result<(), Error> {
        Ok(self.0.close().await?)
    }

    /// Fails when the place is lost.
    pub async fn confirm(&mut self) -> Result<(), Error> {
        Ok(self.0.ping().await?)
    }
}

/// Whether some process has the relay's place.
pub async fn is_led(connection: &mut PgConnection) -> Result<bool, Error> {
    let is_led = sqlx::query_scalar(
        "select exists (
             select from pg_locks l join pg_database d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
                 and l.objid::bigint = hashtext('tidemark.relay')::bigint & 4294967295
         )",
    )
    .fetch_one(connection)
    .await?;
    Ok(is_led)
}
