//! The pictures of records: their copies, and what is to be fetched.

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::picture::{PictureKind, PictureName, PictureSource};
use crate::model::platform::Platform;
use crate::store::{Error, Write};

/// How long a leased picture may take before another process fetches it.
const LEASE_SECONDS: f64 = 60.0;

/// The stored state of a record's picture.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct PictureReference {
    pub record_id: Uuid,
    pub source: PictureSource,
    pub name: Option<PictureName>,
    /// Whether the copy is of `source`.
    pub is_current: bool,
    /// Whether it is to be fetched already.
    pub is_due: bool,
    /// Whether a picture without a copy may be fetched.
    pub may_retry: bool,
}

pub async fn fetch_references(pg: &PgPool, records: &[Uuid]) -> Result<Vec<PictureReference>, Error> {
    let references = sqlx::query_as(
        "select record_id, source, name, coalesce(copied_source = source, false) as is_current,
                due_at is not null as is_due, coalesce(retry_at <= now(), true) as may_retry
         from record_pictures where record_id = any($1)",
    )
    .bind(records)
    .fetch_all(pg)
    .await?;
    Ok(references)
}

/// A picture to fetch, by the record that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedPicture {
    pub organization: Uuid,
    pub record_id: Uuid,
    pub kind: PictureKind,
    pub source: PictureSource,
}

/// Makes pictures due. Those of organizations that were deleted meanwhile are left out.
pub async fn request(pg: &PgPool, mut pictures: Vec<OfferedPicture>) -> Result<(), Error> {
    // Rows are locked in order, so that processes do not deadlock.
    pictures.sort_unstable_by_key(|picture| picture.record_id);
    sqlx::query(
        "insert into record_pictures as r (record_id, organization_id, kind, source, due_at)
         select x.record_id, x.organization_id, x.kind, x.source, now()
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[])
            with ordinality as x(record_id, organization_id, kind, source, position)
         join organizations o on o.id = x.organization_id and o.deleted_at is null
         order by x.position
         on conflict (record_id) do update set source = excluded.source, due_at = now(), attempts = 0",
    )
    .bind(pictures.iter().map(|picture| picture.record_id).collect::<Vec<_>>())
    .bind(pictures.iter().map(|picture| picture.organization).collect::<Vec<_>>())
    .bind(pictures.iter().map(|picture| picture.kind.as_str()).collect::<Vec<_>>())
    .bind(pictures.iter().map(|picture| picture.source).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// A leased picture.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct DuePicture {
    pub record_id: Uuid,
    pub organization_id: Uuid,
    pub kind: PictureKind,
    pub source: PictureSource,
    pub attempts: i16,
    /// How long it has been due.
    pub due_seconds: f64,
    /// None of a record that was deleted, or has no picture any more.
    pub platform: Option<Platform>,
    pub url: Option<String>,
    /// The copy that another record has of `source`.
    pub shared: Option<PictureName>,
}

/// Leases due pictures: profile pictures first, and the latest of a kind. A lease that is not finished ends on its own.
pub async fn lease_due(pg: &PgPool, limit: usize) -> Result<Vec<DuePicture>, Error> {
    let leased = sqlx::query_as(
        "with due as (
            select record_id, due_at from record_pictures
            where due_at <= now() order by kind desc, due_at desc limit $1 for update skip locked
         ), leased as (
            update record_pictures r set due_at = now() + make_interval(secs => $2), attempts = r.attempts + 1
            from due where r.record_id = due.record_id
            returning r.record_id, r.organization_id, r.kind, r.attempts, r.source,
                extract(epoch from now() - due.due_at)::double precision as due_seconds
         )
         select l.record_id, l.organization_id, l.kind, l.source, l.attempts, l.due_seconds,
                coalesce(a.platform, v.platform) as platform,
                coalesce(a.profile_pic_url_original, v.cover_image_url_original) as url,
                (select s.name from record_pictures s where s.copied_source = l.source limit 1) as shared
         from leased l
         left join accounts a on l.kind = 'profile' and a.id = l.record_id
         left join videos v on l.kind = 'cover' and v.id = l.record_id",
    )
    .bind(limit as i64)
    .bind(LEASE_SECONDS)
    .fetch_all(pg)
    .await?;
    Ok(leased)
}

/// A record whose picture was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedPicture {
    pub record_id: Uuid,
    /// The picture when it was leased.
    pub leased: PictureSource,
    /// The picture that was copied: the record's URL may be of a later one.
    pub source: PictureSource,
    pub name: PictureName,
}

/// Sets the copies of records of the organization, unless the copies were removed meanwhile. A record for which another
/// picture was requested since its lease stays due.
pub async fn set_copies(write: &mut Write, copied: &[CopiedPicture]) -> Result<(), Error> {
    let organization = write.organization();
    // The lock keeps copies from being removed before the commit.
    let updated: Vec<PictureKind> = sqlx::query_scalar(
        "with p as (select name from pictures where name = any($5) order by name for key share)
         update record_pictures r set name = x.name, copied_source = x.source, retry_at = null, attempts = 0,
            source = case when r.source = x.leased then x.source else r.source end,
            due_at = case when r.source <> x.leased then r.due_at end
         from unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[]) as x(record_id, leased, source, name)
         join p on p.name = x.name
         where r.organization_id = $1 and r.record_id = x.record_id
         returning r.kind",
    )
    .bind(organization)
    .bind(copied.iter().map(|picture| picture.record_id).collect::<Vec<_>>())
    .bind(copied.iter().map(|picture| picture.leased).collect::<Vec<_>>())
    .bind(copied.iter().map(|picture| picture.source).collect::<Vec<_>>())
    .bind(copied.iter().map(|picture| picture.name).collect::<Vec<_>>())
    .fetch_all(write.connection())
    .await?;
    updated.into_iter().for_each(|kind| write.record_picture_change(kind));
    Ok(())
}

/// A picture that was not copied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedPicture {
    pub record_id: Uuid,
    /// When to retry; `None`: not before a scrape reports it again.
    pub due_in_seconds: Option<f64>,
    /// How long a scrape does not make it due.
    pub cooldown_seconds: Option<f64>,
}

/// Postpones pictures whose copying failed, and returns their number. A picture that changed or was copied meanwhile is
/// left out.
pub async fn postpone(pg: &PgPool, failed: &[FailedPicture]) -> Result<u64, Error> {
    let postponed = sqlx::query(
        "update record_pictures r set due_at = now() + make_interval(secs => x.due_in),
            retry_at = now() + make_interval(secs => x.cooldown)
         from unnest($1::uuid[], $2::double precision[], $3::double precision[]) as x(record_id, due_in, cooldown)
         where r.record_id = x.record_id and r.attempts > 0",
    )
    .bind(failed.iter().map(|picture| picture.record_id).collect::<Vec<_>>())
    .bind(failed.iter().map(|picture| picture.due_in_seconds).collect::<Vec<_>>())
    .bind(failed.iter().map(|picture| picture.cooldown_seconds).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(postponed.rows_affected())
}

/// Moves the picture of a merged record to another that has none.
pub async fn merge(write: &mut Write, from: Uuid, into: Uuid) -> Result<(), Error> {
    sqlx::query(
        "update record_pictures set record_id = $3 where organization_id = $1 and record_id = $2
           and not exists (select from record_pictures where record_id = $3)",
    )
    .bind(write.organization())
    .bind(from)
    .bind(into)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Deletes the pictures of records that do not exist.
pub async fn delete(pg: &PgPool, records: &[Uuid]) -> Result<(), Error> {
    sqlx::query("delete from record_pictures where record_id = any($1)").bind(records).execute(pg).await?;
    Ok(())
}
