//! Account-discovered videos.

use chrono::TimeDelta;
use harness::TestApi;
use serde_json::{Value, json};

use super::accounts::insert_video;

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn discovered_video_shows_account_and_its_tracking() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": creator});
    let account = api.create("/v2/accounts", body).await;
    let (id, internal_id) = insert_video(&api, &account, "42", false, None).await;
    let shown = api.get(&format!("/v2/account-videos/{id}")).await.json["data"].clone();
    let tracking = api.get(&format!("/v2/accounts/{account}")).await.json["data"]["tracking"].clone();
    assert_eq!(
        shown,
        json!({
            "id": id, "type": "account_video", "internal_id": internal_id, "platform": "tiktok", "external_id": "42",
            "shortcode": null, "url": "https://www.tiktok.com/@one/video/42", "description": "42", "hashtags": [], "media_type": null, "duration": null,
            "cover_image_url": null, "cover_image_url_original": null, "video_url": null, "video_url_original": null,
            "create_time": null, "added_at": shown["added_at"], "updated_at": shown["updated_at"], "is_tracked": false,
            "is_active": true, "is_unavailable": false, "scrape_interval_hours": 24, "metadata": {},
            "account_id": account, "account_username": "one", "account_name": null, "platform_account_id": null,
            "creator_id": creator, "creator_name": "Ann", "first_scrape_time": null, "last_scrape_time": null,
            "view_count": 0, "like_count": 0, "comment_count": 0, "share_count": 0, "saved_count": null,
            "play_count": 0, "ig_play_count": null, "fb_play_count": null, "fb_like_count": null,
            "unknown_counters": ["view_count", "like_count", "comment_count", "share_count", "saved_count", "play_count"],
            "platform_data": {}, "tracking": tracking,
        })
    );
    assert_eq!(api.get("/v2/account-videos").await.json["data"], json!([shown]));
    assert_eq!(api.get(&format!("/v2/accounts/{account}/videos")).await.json["data"], json!([shown]));
    assert_eq!(api.get("/v2/account-videos/x").await.fields(), ["video_id"]);
    assert_eq!(api.get(&format!("/v2/account-videos/{account}")).await.status, 404);
    api.patch(&format!("/v2/accounts/{account}"), json!({"is_active": false})).await;
    let shown = api.get(&format!("/v2/account-videos/{id}")).await.json["data"].clone();
    assert_eq!((&shown["tracking"]["status"], &shown["is_active"]), (&json!("paused"), &json!(true)));
}

#[tokio::test]
async fn discovered_videos_are_sorted_filtered_and_paged() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let one = api
        .create("/v2/accounts", json!({"platform": "tiktok", "username": "one", "creator_id": creator}))
        .await;
    let two = api.create("/v2/accounts", json!({"platform": "instagram", "username": "two"})).await;
    let now = harness::now();
    let mut created = Vec::new();
    for (account, caption, hours) in
        [(&one, "a%b", Some(1)), (&two, "A_B", Some(3)), (&one, "undated", None), (&two, "late", Some(0))]
    {
        let posted = hours.map(|hours| now - TimeDelta::hours(hours));
        created.push(insert_video(&api, account, caption, false, posted).await.0.to_string());
    }
    let sorted = [&created[3], &created[0], &created[1], &created[2]];
    let all = api.get("/v2/account-videos?include_total=true").await.json;
    assert_eq!(
        (ids(&all), &all["pagination"]["total_count"]),
        (sorted.map(String::as_str).to_vec(), &json!(4))
    );
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("/v2/account-videos?limit=1{cursor}")).await.json;
        paged.extend(ids(&page).into_iter().map(str::to_owned));
        match page["pagination"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged.iter().collect::<Vec<_>>(), sorted);
    for (query, expected) in [
        ("platform=tiktok".to_owned(), vec![0, 2]),
        (format!("account_id={two}"), vec![3, 1]),
        (format!("creator_id={creator}"), vec![0, 2]),
        ("q=%25".to_owned(), vec![0]),
        ("q=a_".to_owned(), vec![1]),
        ("q=A&platform=instagram".to_owned(), vec![3, 1]),
        ("is_active=false".to_owned(), vec![]),
    ] {
        let found = api.get(&format!("/v2/account-videos?{query}")).await.json;
        let expected: Vec<_> = expected.into_iter().map(|index: usize| created[index].as_str()).collect();
        assert_eq!(ids(&found), expected, "{query}");
    }
    let by_account =
        api.get(&format!("/v2/accounts/{two}/videos?sort=create_time&platform=tiktok")).await.json;
    assert_eq!(ids(&by_account), [created[1].as_str(), created[3].as_str()]);
    assert_eq!(
        by_account["filters"],
        json!({"account_id": two, "order_by": "create_time", "order_direction": "asc"})
    );
    assert_eq!(api.get("/v2/accounts/@two/videos?limit=0").await.fields(), ["account_id", "limit"]);
    assert_eq!(api.get(&format!("/v2/account-videos?q={}", "x".repeat(129))).await.fields(), ["q"]);
}
