//! Counts of new posts come from changes that commits append. They must equal the counts of videos before and after
//! housekeeping compacts the changes.

use chrono::Days;
use harness::{Organization, Stack};
use serde_json::json;
use tidemark::import::{self, ImportOptions};
use tidemark::store::records::post_days;

#[tokio::test]
async fn new_post_counts_match_videos_before_and_after_compaction() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let header = "platform,username,external_id,observed_at,create_time,view_count";
    let mut text = format!("{header}\n");
    for n in 0..40 {
        let posted = today - Days::new(n % 20);
        let account = n % 2;
        text += &format!("tiktok,poster{account},{n},{today},{posted},{n}\n");
    }
    // No creation time until the second file is imported.
    text += &format!("instagram,poster2,100,{},,1\n", today - Days::new(1));
    load(&organization, text).await;
    check_new_posts(&organization, (22, 18), (22, 18)).await;
    load(&organization, format!("{header}\ninstagram,poster2,100,{today},{},1\n", today - Days::new(3)))
        .await;
    check_new_posts(&organization, (23, 18), (22, 18)).await;

    let compact = || post_days::TABLE.compact(stack.pg(), 7);
    let (one, other) = tokio::join!(compact(), compact());
    one.and(other).unwrap();
    while compact().await.unwrap() > 0 {}
    check_new_posts(&organization, (23, 18), (22, 18)).await;

    let accounts = organization.get("/accounts?q=poster1").await.ok(200);
    organization.delete(&format!("/accounts/{}", accounts.text("/data/0/id"))).await.ok(204);
    check_new_posts(&organization, (13, 8), (12, 8)).await;
    while compact().await.unwrap() > 0 {}
    check_new_posts(&organization, (13, 8), (12, 8)).await;
}

async fn load(organization: &Organization, text: String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.csv");
    std::fs::write(&path, text).unwrap();
    let stores = &organization.stack.databases;
    import::load(stores, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
}

/// Checks the new posts of 11 days and of the 11 days before, on both platforms and on TikTok only.
async fn check_new_posts(organization: &Organization, all: (i64, i64), on_tiktok: (i64, i64)) {
    let today = organization.stack.databases.clock.now().await.date_naive();
    let start = today - Days::new(10);
    for (platform, (current, previous)) in [("", all), ("&platform=tiktok", on_tiktok)] {
        let path = format!("/overview?period=custom&start_date={start}&end_date={today}{platform}");
        let response = organization.get(&path).await.ok(200);
        let posts = response.at("/data/new_posts");
        assert_eq!((&posts["current"], &posts["previous"]), (&json!(current), &json!(previous)), "{path}");
        let counted: (i64, i64) = sqlx::query_as(
            "select count(*), count(*) filter (where account_id is not null) from videos
             where organization_id = $1 and (platform = 'tiktok' or $2)",
        )
        .bind(organization.id)
        .bind(platform.is_empty())
        .fetch_one(organization.pg())
        .await
        .unwrap();
        let totals =
            ["videos", "account_videos"].map(|name| response.integer(&format!("/data/totals/{name}")));
        assert_eq!(totals, [counted.0, counted.1], "{path}");
    }
}
