//! New posts are added up from changes that triggers note: they have to agree with the videos, whatever happens to those
//! and whenever housekeeping adds them up.

use chrono::Days;
use serde_json::json;
use tidemark::import::{self, ImportOptions};
use tidemark::store::records::post_days;

use crate::harness::{Organization, Stack};

#[tokio::test]
async fn new_posts_agree_with_the_videos_whenever_changes_are_added_up() {
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
    // Without a time of posting until the second file says one.
    text += &format!("instagram,poster2,100,{},,1\n", today - Days::new(1));
    load(&organization, text).await;
    agrees(&organization, (22, 18), (22, 18)).await;
    load(&organization, format!("{header}\ninstagram,poster2,100,{today},{},1\n", today - Days::new(3)))
        .await;
    agrees(&organization, (23, 18), (22, 18)).await;

    let adding = || post_days::compact(stack.pg(), 7);
    let (one, other) = tokio::join!(adding(), adding());
    one.and(other).unwrap();
    while adding().await.unwrap() > 0 {}
    agrees(&organization, (23, 18), (22, 18)).await;

    let accounts = organization.get("/accounts?q=poster1").await.ok(200);
    organization.delete(&format!("/accounts/{}", accounts.text("/data/0/id"))).await.ok(204);
    agrees(&organization, (13, 8), (12, 8)).await;
    while adding().await.unwrap() > 0 {}
    agrees(&organization, (13, 8), (12, 8)).await;
}

async fn load(organization: &Organization, text: String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.csv");
    std::fs::write(&path, text).unwrap();
    let stores = &organization.stack.databases;
    import::load(stores, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
}

/// Compares the posts of eleven days and of the eleven before, of both platforms and of TikTok alone, with these.
async fn agrees(organization: &Organization, all: (i64, i64), on_tiktok: (i64, i64)) {
    let today = organization.stack.databases.clock.now().await.date_naive();
    let start = today - Days::new(10);
    for (platform, (current, previous)) in [("", all), ("&platform=tiktok", on_tiktok)] {
        let path = format!("/overview?period=custom&start_date={start}&end_date={today}{platform}");
        let answer = organization.get(&path).await.ok(200);
        let posts = answer.at("/data/new_posts");
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
        let totals = ["videos", "account_videos"].map(|name| answer.integer(&format!("/data/totals/{name}")));
        assert_eq!(totals, [counted.0, counted.1], "{path}");
    }
}
