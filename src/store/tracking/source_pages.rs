//! Counts the pages of posts that sources deliver, by UTC day, for all processes together: they price an account's read.

use chrono::NaiveDate;
use sqlx::PgPool;

use crate::model::cost::PageCounts;
use crate::model::platform::Platform;
use crate::store::Error;

/// Adds the pages of a read to a source's day.
pub async fn record(
    pg: &PgPool,
    platform: Platform,
    source: &str,
    day: NaiveDate,
    counts: PageCounts,
) -> Result<(), Error> {
    sqlx::query(
        "insert into source_pages as p (platform, source, day, reads, full_pages, full_page_posts, surplus_pages)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (platform, source, day) do update set
            reads = p.reads + excluded.reads, full_pages = p.full_pages + excluded.full_pages,
            full_page_posts = p.full_page_posts + excluded.full_page_posts,
            surplus_pages = p.surplus_pages + excluded.surplus_pages",
    )
    .bind(platform)
    .bind(source)
    .bind(day)
    .bind(counts.reads)
    .bind(counts.full_pages)
    .bind(counts.full_page_posts)
    .bind(counts.surplus_pages)
    .execute(pg)
    .await?;
    Ok(())
}

/// Returns the sum of a source's days since one.
pub async fn fetch(
    pg: &PgPool,
    platform: Platform,
    source: &str,
    since: NaiveDate,
) -> Result<PageCounts, Error> {
    let counts = sqlx::query_as(
        "select coalesce(sum(reads), 0)::bigint as reads, coalesce(sum(full_pages), 0)::bigint as full_pages,
            coalesce(sum(full_page_posts), 0)::bigint as full_page_posts,
            coalesce(sum(surplus_pages), 0)::bigint as surplus_pages
         from source_pages where platform = $1 and source = $2 and day >= $3",
    )
    .bind(platform)
    .bind(source)
    .bind(since)
    .fetch_one(pg)
    .await?;
    Ok(counts)
}
