//! The table `post_days`, posts per day: triggers on `videos` append changes, which this merges into one row per day.

use sqlx::PgPool;

use crate::store::Error;

/// Merges up to `limit` rows into the sum of their day and returns how many. Processes may run it concurrently.
pub async fn compact(pg: &PgPool, limit: i64) -> Result<u64, Error> {
    let added: i64 = sqlx::query_scalar(
        "with taken as (
             delete from post_days where ctid = any(array(
                 select ctid from post_days where not is_sum limit $1 for update skip locked))
             returning organization_id, platform, day, posts
         ), added as (
             insert into post_days (organization_id, platform, day, posts, is_sum)
             select organization_id, platform, day, sum(posts), true from taken group by 1, 2, 3 order by 1, 3, 2
             on conflict (organization_id, day, platform) where is_sum
             do update set posts = post_days.posts + excluded.posts
         )
         select count(*) from taken",
    )
    .bind(limit)
    .fetch_one(pg)
    .await?;
    Ok(added.unsigned_abs())
}
