//! A Postgres session advisory lock, held by one process at a time.
//!
//! A connection pooler may run statements of several processes in one session, which then all acquire the lock, or of one
//! process in several sessions. So the session that has the lock also has a variable that names the owner.

use std::marker::PhantomData;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row};
use uuid::Uuid;

use super::session;
use crate::store::Error;

/// The name of an advisory lock, and of the session variable that names its owner.
pub trait LockName {
    const NAME: &'static str;
    /// The key as an SQL expression.
    fn key() -> String {
        format!("hashtext('{}')", Self::NAME)
    }
}

/// A connection for a lock. Dropping it closes the connection, which releases the lock a moment later.
pub struct AdvisoryLock<N> {
    connection: PgConnection,
    owner: Uuid,
    name: PhantomData<N>,
}

impl<N: LockName> AdvisoryLock<N> {
    /// Returns `None` while another process holds the lock. The connection is not one of the
    /// pool, because it stays open with the lock.
    pub async fn try_acquire(pg: &PgPool) -> Result<Option<Self>, Error> {
        let mut lock = AdvisoryLock::connect(&pg.connect_options()).await?;
        Ok(lock.try_lock().await?.then_some(lock))
    }

    /// Connects without acquiring the lock.
    pub async fn connect(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        let mut connection = PgConnection::connect_with(options).await?;
        sqlx::raw_sql(session::KEEPALIVE_SETTINGS).execute(&mut connection).await?;
        Ok(AdvisoryLock { connection, owner: Uuid::now_v7(), name: PhantomData })
    }

    /// Returns false while another process holds the lock.
    pub async fn try_lock(&mut self) -> Result<bool, sqlx::Error> {
        // One statement without parameters, so that a pooler runs all of it in one session.
        let lock = format!(
            "select case when pg_try_advisory_lock({}) then set_config('{}', '{}', false) end is not null",
            N::key(),
            N::NAME,
            self.owner
        );
        self.fetch_flag(lock).await
    }

    /// The connection that holds the lock.
    pub const fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Releases the lock before it returns.
    pub async fn release(mut self) -> Result<(), Error> {
        let unlock = format!("select pg_advisory_unlock({})", N::key());
        sqlx::raw_sql(AssertSqlSafe(unlock)).execute(&mut self.connection).await?;
        Ok(self.connection.close().await?)
    }

    /// Whether any process holds the lock.
    pub async fn is_held(connection: &mut PgConnection) -> Result<bool, Error> {
        let is_held = format!("select exists ({})", holders::<N>());
        Ok(sqlx::query_scalar(AssertSqlSafe(is_held)).fetch_one(connection).await?)
    }

    /// Fails unless this connection's session has the lock, and no other process has acquired it in the same session.
    pub async fn ensure_held(&mut self) -> Result<(), Error> {
        let is_held = format!(
            "select exists ({} and l.pid = pg_backend_pid())
                 and coalesce(current_setting('{}', true) = '{}', false)",
            holders::<N>(),
            N::NAME,
            self.owner
        );
        if self.fetch_flag(is_held).await? { Ok(()) } else { Err(Error::SharedSession) }
    }

    async fn fetch_flag(&mut self, sql: String) -> Result<bool, sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut self.connection).await?.try_get(0)
    }
}

/// A query of the session that has a lock.
fn holders<N: LockName>() -> String {
    format!(
        "select from pg_locks l join pg_database d on d.oid = l.database
         where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
             and (l.classid::bigint << 32 | l.objid::bigint) = {}",
        N::key()
    )
}
