//! The tables that commits derive from records: rebuilt after a test wrote records with SQL, and compared with such a rebuild.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Rebuilds the derived tables of an organization.
pub async fn rebuild_derived_tables(pg: &PgPool, organization: Uuid) {
    let mut transaction = pg.begin().await.unwrap();
    rebuild(&mut transaction, organization).await;
    transaction.commit().await.unwrap();
}

async fn rebuild(connection: &mut PgConnection, organization: Uuid) {
    for statement in include_str!("derived_tables.sql").trim_end().split_terminator(';') {
        sqlx::query(statement).bind(organization).execute(&mut *connection).await.unwrap();
    }
}

/// Fails unless the derived tables of an organization are as a rebuild makes them.
pub async fn assert_derived_tables(pg: &PgPool, organization: Uuid) {
    let mut transaction = pg.begin().await.unwrap();
    let derived = describe(&mut transaction, organization).await;
    rebuild(&mut transaction, organization).await;
    let rebuilt = describe(&mut transaction, organization).await;
    transaction.rollback().await.unwrap();
    assert_eq!(derived, rebuilt);
}

/// The contents of the derived tables, a line for each value.
async fn describe(connection: &mut PgConnection, organization: Uuid) -> Vec<String> {
    sqlx::query_scalar(
        "select 'target ' || (id, found_by, status, counted_failure)::text
         from scrape_targets where organization_id = $1
         union all
         select 'targets ' || (platform, found_by, status, failure, sum(targets))::text
         from target_counts where organization_id = $1 group by platform, found_by, status, failure having sum(targets) <> 0
         union all
         select 'without a wakeup ' || id from scrape_targets t
         where organization_id = $1 and enabled and not exists (
            select from scrape_wakeups w where w.organization_id = $1 and w.platform = t.platform and w.kind = t.kind
                and w.wake_at <= t.next_attempt_at)
         union all
         select distinct 'caption ' || (video, caption)::text
         from caption_blocks, unnest(videos, string_to_array(captions, 'A')) as x(video, caption)
         where organization_id = $1
         union all
         select 'posts ' || (platform, day, sum(posts))::text
         from post_days where organization_id = $1 group by platform, day having sum(posts) <> 0
         order by 1",
    )
    .bind(organization)
    .fetch_all(connection)
    .await
    .unwrap()
}

/// Has trackers look at all targets, after a test made some due with SQL.
pub async fn wake_trackers(pg: &PgPool) {
    sqlx::query(
        "insert into scrape_wakeups (organization_id, platform, kind, wake_at)
         select distinct organization_id, platform, kind, '-infinity'::timestamptz from scrape_targets",
    )
    .execute(pg)
    .await
    .unwrap();
}
