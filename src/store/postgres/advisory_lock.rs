//! A place that one process has at a time: a lock that lives as long as a connection to Postgres.

use std::marker::PhantomData;

use sqlx::{Connection, PgConnection};

use crate::store::Error;

/// What only one process does at a time.
pub trait LockName {
    /// The text whose hash is the lock.
    const NAME: &'static str;
}

/// The place of the process that does some work; given up by dropping it.
pub struct AdvisoryLock<W>(PgConnection, PhantomData<W>);

impl<W: LockName> AdvisoryLock<W> {
    /// Takes the place; none while another process has it.
    pub async fn try_acquire(database_url: &str) -> Result<Option<Self>, Error> {
        let mut connection = PgConnection::connect(database_url).await?;
        // Who had it and whose machine is gone says no goodbye: Postgres has to find out, within half a minute.
        for setting in [
            "set tcp_keepalives_idle = 10",
            "set tcp_keepalives_interval = 5",
            "set tcp_keepalives_count = 4",
        ] {
            sqlx::query(setting).execute(&mut connection).await?;
        }
        let taken: bool = sqlx::query_scalar("select pg_try_advisory_lock(hashtext($1))")
            .bind(W::NAME)
            .fetch_one(&mut connection)
            .await?;
        Ok(taken.then_some(AdvisoryLock(connection, PhantomData)))
    }

    /// Leaves the place to the next one, who finds it free from now on.
    pub async fn release(mut self) -> Result<(), Error> {
        // With its connection alone the lock would go when the server comes to that.
        let unlock = sqlx::query("select pg_advisory_unlock(hashtext($1))").bind(W::NAME);
        unlock.execute(&mut self.0).await?;
        Ok(self.0.close().await?)
    }

    /// Fails when the place is lost.
    pub async fn ensure_held(&mut self) -> Result<(), Error> {
        Ok(self.0.ping().await?)
    }
}

/// Whether some process has the place for this work.
pub async fn is_held<W: LockName>(connection: &mut PgConnection) -> Result<bool, Error> {
    let is_held = sqlx::query_scalar(
        "select exists (
             select from pg_locks l join pg_database d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
                 and l.objid::bigint = hashtext($1)::bigint & 4294967295
         )",
    )
    .bind(W::NAME)
    .fetch_one(connection)
    .await?;
    Ok(is_held)
}
