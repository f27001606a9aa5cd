//! The copies in the media folder, and the space that they occupy.

use std::collections::BTreeSet;

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::picture::PictureName;
use crate::store::Error;
use crate::store::postgres::Transaction;

/// How long a scrape leaves a picture alone whose copy was evicted: in a folder that is too small, scrapes would fetch the
/// same pictures again and again.
const EVICTED_COOLDOWN_DAYS: i32 = 7;
/// A file that is served all the time is recorded once in this time.
const SERVED_PRECISION: &str = "1 hour";
/// Copies that one transaction evicts.
const EVICTION_ROWS: i64 = 1_000;

/// Returns the secret under which copies are named. The first process generates it.
pub async fn fetch_secret(pg: &PgPool, generated: [u8; 32]) -> Result<[u8; 32], Error> {
    sqlx::query("insert into media (secret) values ($1) on conflict do nothing")
        .bind(generated)
        .execute(pg)
        .await?;
    Ok(sqlx::query_scalar("select secret from media").fetch_one(pg).await?)
}

/// Returns the secret under which copies are named, unless none is generated yet.
pub async fn find_secret(pg: &PgPool) -> Result<Option<[u8; 32]>, Error> {
    Ok(sqlx::query_scalar("select secret from media").fetch_optional(pg).await?)
}

/// Removes copies whose files are damaged. The next scrapes of the records that had them make them due.
pub async fn remove_damaged(pg: &PgPool, names: &[PictureName]) -> Result<(), Error> {
    let mut usage = MediaUsage::lock(pg).await?;
    usage.remove(names).await?;
    usage.commit().await
}

/// Records that copies were served.
pub async fn record_served(pg: &PgPool, names: &[PictureName]) -> Result<(), Error> {
    sqlx::query(
        "update pictures set served_at = now()
         where name = any($1) and served_at < now() - $2::interval",
    )
    .bind(names)
    .bind(SERVED_PRECISION)
    .execute(pg)
    .await?;
    Ok(())
}

/// Returns the names of copies that begin with a byte.
pub async fn fetch_names(pg: &PgPool, first_byte: u8) -> Result<Vec<PictureName>, Error> {
    let mut bounds = [[0; 32], [0xff; 32]];
    bounds.iter_mut().for_each(|bound| bound[0] = first_byte);
    let names = sqlx::query_scalar("select name from pictures where name between $1 and $2")
        .bind(bounds[0])
        .bind(bounds[1])
        .fetch_all(pg)
        .await?;
    Ok(names)
}

/// Whether the folder has to be compared with the table now; if so, other processes do not for an interval.
pub async fn begin_sweep(pg: &PgPool, interval_hours: i32) -> Result<bool, Error> {
    let begun =
        sqlx::query("update media set swept_at = now() where swept_at < now() - make_interval(hours => $1)")
            .bind(interval_hours)
            .execute(pg)
            .await?;
    Ok(begun.rows_affected() > 0)
}

/// The state of the media folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageSummary {
    /// Space that the copies occupy.
    pub used_bytes: i64,
    /// Pictures to be fetched, counted up to 100,000.
    pub waiting: i64,
}

/// Returns the state of the folder; `None` before the first tracker used one.
pub async fn fetch_summary(pg: &PgPool) -> Result<Option<UsageSummary>, Error> {
    let summary = sqlx::query_as(
        "select used_bytes,
                (select count(*) from (select from record_pictures where due_at is not null limit 100000) w) as waiting
         from media",
    )
    .fetch_optional(pg)
    .await?;
    Ok(summary)
}

/// A change of the copies in the folder. While it is open, no other process adds or removes any.
pub struct MediaUsage {
    transaction: Transaction,
    used_bytes: i64,
    /// Organizations with records that lost their copies.
    organizations: BTreeSet<Uuid>,
}

impl MediaUsage {
    pub async fn lock(pg: &PgPool) -> Result<Self, Error> {
        let mut transaction = Transaction::begin(pg).await?;
        let used_bytes = sqlx::query_scalar("select used_bytes from media for update")
            .fetch_one(&mut *transaction)
            .await?;
        Ok(MediaUsage { transaction, used_bytes, organizations: BTreeSet::new() })
    }

    pub const fn used_bytes(&self) -> i64 {
        self.used_bytes
    }

    /// Adds copies, with the space that each occupies. Known ones are not removed for a while.
    pub async fn add(&mut self, copies: &[(PictureName, i64)]) -> Result<(), Error> {
        let (names, bytes): (Vec<_>, Vec<_>) = copies.iter().copied().unzip();
        let added: Option<i64> = sqlx::query_scalar(
            "with stored as (
                insert into pictures as p (name, bytes, stored_at, served_at)
                select distinct on (x.name) x.name, x.bytes, now(), now()
                from unnest($1::bytea[], $2::bigint[]) as x(name, bytes) order by x.name
                on conflict (name) do update set stored_at = excluded.stored_at, served_at = excluded.served_at
                returning bytes, xmax = 0 as is_new
             )
             select sum(bytes)::bigint from stored where is_new",
        )
        .bind(names)
        .bind(bytes)
        .fetch_one(&mut *self.transaction)
        .await?;
        self.used_bytes += added.unwrap_or_default();
        Ok(())
    }

    /// Removes the least recently served copies until at most `max_bytes` are used, but only so many that other
    /// transactions do not wait long for this one. The caller deletes their files.
    pub async fn evict(&mut self, max_bytes: i64) -> Result<Vec<PictureName>, Error> {
        let evicted: Vec<PictureName> = sqlx::query_scalar(
            "select name from (
                select name, bytes, sum(bytes) over (order by served_at, name) as total
                from (select * from pictures order by served_at, name limit $2) oldest
             ) c where total - bytes < $1",
        )
        .bind(self.used_bytes - max_bytes)
        .bind(EVICTION_ROWS)
        .fetch_all(&mut *self.transaction)
        .await?;
        self.remove_with_cooldown(&evicted, Some(EVICTED_COOLDOWN_DAYS)).await?;
        Ok(evicted)
    }

    /// Removes copies. The next scrapes of the records that had them make them due.
    pub async fn remove(&mut self, names: &[PictureName]) -> Result<(), Error> {
        self.remove_with_cooldown(names, None).await
    }

    async fn remove_with_cooldown(
        &mut self,
        names: &[PictureName],
        cooldown_days: Option<i32>,
    ) -> Result<(), Error> {
        let removed: Option<i64> = sqlx::query_scalar(
            "with removed as (delete from pictures where name = any($1) returning bytes)
             select sum(bytes)::bigint from removed",
        )
        .bind(names)
        .fetch_one(&mut *self.transaction)
        .await?;
        self.used_bytes -= removed.unwrap_or_default();
        let organizations: Vec<Uuid> = sqlx::query_scalar(
            "with changed as (
                update record_pictures
                set name = null, copied_source = null, retry_at = now() + make_interval(days => $2)
                where name = any($1) returning organization_id
             )
             select distinct organization_id from changed",
        )
        .bind(names)
        .bind(cooldown_days)
        .fetch_all(&mut *self.transaction)
        .await?;
        self.organizations.extend(organizations);
        Ok(())
    }

    /// Removes copies that nothing refers to and that were not stored within `grace_seconds`, up to a number.
    pub async fn remove_unreferenced(
        &mut self,
        grace_seconds: f64,
        limit: i64,
    ) -> Result<Vec<PictureName>, Error> {
        let names: Vec<PictureName> = sqlx::query_scalar(
            "select name from pictures p
             where stored_at <= now() - make_interval(secs => $1)
                and not exists (select from record_pictures r where r.name = p.name)
             limit $2",
        )
        .bind(grace_seconds)
        .bind(limit)
        .fetch_all(&mut *self.transaction)
        .await?;
        self.remove(&names).await?;
        Ok(names)
    }

    /// Removes those copies without a file that were not stored lately, and returns their number.
    pub async fn remove_lost(&mut self, names: &[PictureName], grace_seconds: f64) -> Result<usize, Error> {
        let lost: Vec<PictureName> = sqlx::query_scalar(
            "select name from pictures
             where name = any($1) and stored_at <= now() - make_interval(secs => $2)",
        )
        .bind(names)
        .bind(grace_seconds)
        .fetch_all(&mut *self.transaction)
        .await?;
        self.remove(&lost).await?;
        Ok(lost.len())
    }

    /// Removes all copies, because the folder is lost.
    pub async fn remove_all(&mut self) -> Result<(), Error> {
        sqlx::query("delete from pictures").execute(&mut *self.transaction).await?;
        let organizations: Vec<Uuid> = sqlx::query_scalar(
            "with changed as (
                update record_pictures set name = null, copied_source = null, retry_at = null
                where name is not null or retry_at is not null returning organization_id
             )
             select distinct organization_id from changed",
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        self.used_bytes = 0;
        self.organizations.extend(organizations);
        Ok(())
    }

    /// Adds up the space again.
    pub async fn recount(&mut self) -> Result<(), Error> {
        self.used_bytes = sqlx::query_scalar("select coalesce(sum(bytes), 0)::bigint from pictures")
            .fetch_one(&mut *self.transaction)
            .await?;
        Ok(())
    }

    /// Commits the change, and makes cached responses stale that show other pictures now.
    pub async fn commit(mut self) -> Result<(), Error> {
        sqlx::query("update media set used_bytes = $1")
            .bind(self.used_bytes)
            .execute(&mut *self.transaction)
            .await?;
        // Last, because scrapes of these organizations wait for it.
        sqlx::query(
            "update organizations set accounts_version = accounts_version + 1, videos_version = videos_version + 1
             where id = any($1)",
        )
        .bind(self.organizations.into_iter().collect::<Vec<_>>())
        .execute(&mut *self.transaction)
        .await?;
        self.transaction.commit().await?;
        Ok(())
    }
}
