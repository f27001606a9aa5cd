//! Maximum sizes: 1,000 ids per request, and a creator with thousands of accounts.

use chrono::{Days, NaiveTime};
use harness::Stack;
use serde_json::json;
use tidemark::import::{self, ImportOptions};
use uuid::Uuid;

/// More accounts than one statement takes (6,000), each with one video.
const ACCOUNTS: i64 = 6_050;

#[tokio::test]
async fn requests_cover_1000_ids_and_thousands_of_accounts() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let yesterday = today - Days::new(1);
    let mut text =
        "platform,username,external_id,observed_at,create_time,view_count,follower_count,creator\n"
            .to_owned();
    for n in 0..ACCOUNTS {
        text +=
            &format!("tiktok,user{n},,{yesterday},,,101,Agency\ntiktok,user{n},{n},{today},{today},{n},,\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.csv");
    std::fs::write(&path, text).unwrap();
    import::load(&stack.databases, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    let total: i64 = (0..ACCOUNTS).sum();

    let creator = organization.get("/creators").await.ok(200).text("/data/0/id").to_owned();
    let top = organization.get("/creators/top?period=7d").await.ok(200);
    assert_eq!((top.integer("/data/0/views"), top.integer("/data/0/account_count")), (total, ACCOUNTS));
    // No observation is in this window: data_as_of is the latest observation of all accounts before it.
    let later = format!("start_date={0}&end_date={0}", today + Days::new(1));
    let midnight = today.and_time(NaiveTime::MIN).and_utc();
    let top = organization.get(&format!("/creators/top?{later}")).await.ok(200);
    assert_eq!((top.integer("/data/0/views"), top.at("/meta/data_as_of")), (0, &json!(midnight)));
    for path in [
        format!("/creators/{creator}/analytics/timeseries?period=7d"),
        format!("/analytics/timeseries?creator_id={creator}&period=7d"),
    ] {
        assert_eq!(organization.get(&path).await.ok(200).integer("/data/6/views"), total, "{path}");
    }
    let rows = organization.get(&format!("/creators/{creator}/analytics?values=cumulative")).await.ok(200);
    assert_eq!(rows.integer("/data/6/view_count"), total);
    assert_eq!(rows.integer("/meta/totals/view_count"), total);

    let ids: Vec<(Uuid, Uuid, i64, i64)> = sqlx::query_as(
        "select v.id, a.id, v.internal_id, v.view_count
         from videos v join accounts a on a.id = v.account_id where v.organization_id = $1 limit 1000",
    )
    .bind(organization.id)
    .fetch_all(stack.pg())
    .await
    .unwrap();
    let videos: Vec<_> = ids.iter().map(|ids| ids.0).collect();
    let accounts: Vec<_> = ids.iter().map(|ids| ids.1).collect();
    let internal: Vec<_> = ids.iter().map(|ids| ids.2).collect();
    for (path, body, figure) in [
        ("/videos/metrics", json!({"video_ids": videos}), "views"),
        ("/accounts/metrics", json!({"account_ids": accounts}), "views"),
        ("/account-videos/metrics", json!({"tiktok_video_ids": internal}), "views"),
        ("/videos/deltas", json!({"video_ids": videos}), "7d"),
    ] {
        let response = organization.post(path, body).await.ok(200);
        let data = response.at("/data").as_object().unwrap();
        let sum: i64 = data.values().map(|gains| gains[figure].as_i64().unwrap()).sum();
        assert_eq!((data.len(), sum), (1_000, ids.iter().map(|ids| ids.3).sum()), "{path}");
    }

    // Thousands of deletions that are not applied in ClickHouse yet are excluded too, in several statements.
    let removed = sqlx::query(
        "insert into removed_subjects (organization_id, subject_id)
         select organization_id, internal_id from accounts where organization_id = $1 and username <> 'user7'",
    );
    removed.bind(organization.id).execute(stack.pg()).await.unwrap();
    let overview = organization.get("/overview?period=7d").await.ok(200);
    assert_eq!(
        (overview.integer("/data/views/current"), overview.integer("/data/followers/current")),
        (7, 101)
    );
    let series = organization.get("/analytics/timeseries?period=7d").await.ok(200);
    assert_eq!(series.integer("/data/6/views"), 7);
}
