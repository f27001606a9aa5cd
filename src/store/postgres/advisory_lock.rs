//! A Postgres session advisory lock, held by one process at a time.

use std::marker::PhantomData;

use sqlx::{Connection, PgConnection};

use crate::store::Error;

/// The name of an advisory lock. Its hash is the key.
pub trait LockName {
    const NAME: &'static str;
}

/// A held lock. Dropping it closes the connection, which releases the lock a moment later.
pub struct AdvisoryLock<N>(PgConnection, PhantomData<N>);

impl<N: LockName> AdvisoryLock<N> {
    /// Returns `None` while another process holds the lock.
    pub async fn try_acquire(database_url: &str) -> Result<Option<Self>, Error> {
        let mut connection = PgConnection::connect(database_url).await?;
        // Postgres detects a lock holder whose machine is gone within 30 s.
        let keepalive =
            "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 4";
        sqlx::raw_sql(keepalive).execute(&mut connection).await?;
        let acquired: bool = sqlx::query_scalar("select pg_try_advisory_lock(hashtext($1))")
            .bind(N::NAME)
            .fetch_one(&mut connection)
            .await?;
        Ok(acquired.then_some(AdvisoryLock(connection, PhantomData)))
    }

    /// Releases the lock before it returns.
    pub async fn release(mut self) -> Result<(), Error> {
        let unlock = sqlx::query("select pg_advisory_unlock(hashtext($1))").bind(N::NAME);
        unlock.execute(&mut self.0).await?;
        Ok(self.0.close().await?)
    }

    /// Whether any process holds the lock.
    pub async fn is_held(connection: &mut PgConnection) -> Result<bool, Error> {
        let is_held = sqlx::query_scalar(
            "select exists (
                 select from pg_locks l join pg_database d on d.oid = l.database
                 where d.datname = current_database() and l.locktype = 'advisory' and l.granted
                     and l.objsubid = 1 and l.objid::bigint = hashtext($1)::bigint & 4294967295
             )",
        )
        .bind(N::NAME)
        .fetch_one(connection)
        .await?;
        Ok(is_held)
    }

    /// Fails if the lock was lost with its connection.
    pub async fn ensure_held(&mut self) -> Result<(), Error> {
        Ok(self.0.ping().await?)
    }
}
