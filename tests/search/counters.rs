//! Counters are not in the index: a scrape that changes only counters changes the ranking without a search change.

use harness::api_database;
use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::model::counters::Counters;
use tidemark::model::observed::{VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::{AccountRef, ObservedVideo, VideoOrigin, save_videos};
use uuid::Uuid;

use crate::setup::{IndexFollower, add_account, organization};

async fn scrape(pg: &PgPool, organization: Uuid, account: AccountRef, views: [i64; 2], caption: &str) {
    let now = harness::now();
    let posts = (1..)
        .zip(views)
        .map(|(number, views)| {
            let counters = Counters { view_count: Some(views), ..Counters::default() };
            let mut latest = VideoLatest::default();
            let description = Some(format!("{caption} {number}"));
            latest.record(VideoFields { description, ..VideoFields::default() }, counters, now);
            ObservedVideo {
                platform: Platform::Tiktok,
                external_id: Some(number.to_string()),
                shortcode: None,
                origin: VideoOrigin::Account(account),
                latest,
                observations: vec![(now, counters)],
                scraped_at: Some(now),
            }
        })
        .collect();
    let mut write = Write::begin(pg, organization).await.unwrap();
    save_videos(&mut write, now, posts).await.unwrap();
    write.commit().await.unwrap();
}

async fn count_changes(pg: &PgPool, organization: Uuid) -> i64 {
    let changes = "select sum(1 + coalesce(cardinality(more_ids), 0))::bigint
                   from search_changes where organization_id = $1";
    sqlx::query_scalar(changes).bind(organization).fetch_one(pg).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn counter_change_reranks_without_search_change() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    let id = add_account(&pg, organization, "scraped", 1, None).await;
    let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(id)
        .fetch_one(&pg)
        .await
        .unwrap();
    let account = AccountRef { id, subject_id };
    let captions = || async {
        let found = follower.search(&pg, organization, "a caption").await.videos;
        found.into_iter().map(|hit| hit.caption.unwrap()).collect::<Vec<_>>()
    };
    scrape(&pg, organization, account, [10, 20], "A caption").await;
    follower.wait_applied(&pg).await;
    assert_eq!(captions().await, ["A caption 2", "A caption 1"]);

    let before = count_changes(&pg, organization).await;
    assert_eq!(before, 3, "an account and two videos");
    scrape(&pg, organization, account, [30, 20], "A caption").await;
    assert_eq!(captions().await, ["A caption 1", "A caption 2"]);
    assert_eq!(count_changes(&pg, organization).await, before);

    scrape(&pg, organization, account, [30, 20], "Another text").await;
    assert_eq!(count_changes(&pg, organization).await, before + 2);
    follower.close().await;
}
