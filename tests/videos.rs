//! Individually tracked videos through the API: every form of identifier, search by caption, and counting each video
//! once.

use harness::{Organization, Stack, send, wait_until};
use serde_json::{Value, json};

/// Adds a video and returns it after its first scrape.
async fn add(organization: &Organization, platform: &str, identifier: &str) -> Value {
    let body = json!({"platform": platform, "identifier": identifier});
    let created = organization.post("/videos", body).await.ok(201);
    wait_scraped(organization, created.text("/data/id")).await
}

async fn wait_scraped(organization: &Organization, id: &str) -> Value {
    let path = format!("/videos/{id}");
    let response = wait_until("the video is scraped", async || {
        let response = organization.get(&path).await.ok(200);
        (!response.at("/data/last_scrape_time").is_null()).then_some(response)
    })
    .await;
    response.at("/data").clone()
}

#[tokio::test]
async fn video_is_scraped_by_any_form_of_identifier() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let accounts = ["instagram", "tiktok"].map(|platform| stack.sandbox_account(platform));
    let viewed = async || [stack.viewed_posts(accounts[0]).await, stack.viewed_posts(accounts[1]).await];
    let [posts, videos] = viewed().await;
    let text = |post: &Value, field: &str| post[field].as_str().unwrap().to_owned();
    let (post, video) = (|number: usize| &posts[number], |number: usize| &videos[number]);
    let user = &accounts[1].username;
    let cases = [
        (
            "instagram",
            format!("https://www.instagram.com/reel/{}/?igsh=x", text(post(0), "shortcode")),
            post(0),
        ),
        ("instagram", text(post(1), "shortcode"), post(1)),
        ("instagram", text(post(2), "id"), post(2)),
        ("tiktok", format!("https://www.tiktok.com/@{user}/video/{}", text(video(0), "id")), video(0)),
        ("tiktok", text(video(1), "id"), video(1)),
        ("tiktok", format!("https://vm.tiktok.com/ZM{}/", text(video(2), "id")), video(2)),
        ("tiktok", format!("https://www.tiktok.com/t/ZM{}/", text(video(3), "id")), video(3)),
    ];
    let additions = cases.iter().map(|(platform, identifier, _)| add(&organization, platform, identifier));
    let added = futures_util::future::join_all(additions).await;
    let later = viewed().await.concat();
    for ((platform, identifier, post), scraped) in cases.iter().zip(&added) {
        assert_eq!(scraped["external_id"], post["id"], "{identifier}");
        assert_eq!(scraped["shortcode"], post["shortcode"], "{identifier}");
        assert_eq!(scraped["create_time"], post["create_time"], "{identifier}");
        assert_eq!(scraped["tracking"]["status"], "active", "{identifier}: {scraped}");
        assert!(
            scraped["description"].is_string() && scraped["account_id"].is_null(),
            "{identifier}: {scraped}"
        );
        assert_eq!(scraped["platform"], *platform);
        let views = |post: &Value| post["view_count"].as_i64().unwrap();
        let last = later.iter().find(|later| later["id"] == post["id"]).unwrap();
        assert!((views(post)..=views(last)).contains(&views(scraped)), "{identifier}: {scraped}");
    }

    let caption = added[0]["description"].as_str().unwrap();
    let q: String = caption.chars().take(60).collect();
    wait_until("the caption is found", async || {
        let request = organization.request(reqwest::Method::GET, "/search").query(&[("q", q.trim())]);
        let results = send(request).await.ok(200);
        let videos = results.list("/data/videos").to_vec();
        videos.iter().any(|video| video["id"] == added[0]["id"]).then_some(())
    })
    .await;
    let overview = organization.get("/overview").await.ok(200);
    let totals = |name: &str| overview.integer(&format!("/data/totals/{name}"));
    assert_eq!(
        (totals("videos"), totals("individual_videos"), totals("account_videos"), totals("accounts")),
        (7, 7, 0, 0)
    );
}

/// Removing the video or its account leaves it tracked the other way.
#[tokio::test]
async fn discovered_video_counts_once_and_survives_either_removal() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let account = stack.sandbox_account("instagram");
    let posts = stack.viewed_posts(account).await;
    let code = |number: usize| posts[number]["shortcode"].as_str().unwrap().to_owned();
    let before = add(&organization, "instagram", &code(0)).await;
    let tracked = organization.track(account).await;
    let count = tracked["total_post_count"].as_i64().unwrap();
    let after = add(&organization, "instagram", &code(1)).await;
    organization.wait_applied().await;

    let overview = organization.get("/overview").await.ok(200);
    let totals = |name: &str| overview.integer(&format!("/data/totals/{name}"));
    assert_eq!((totals("videos"), totals("account_videos"), totals("individual_videos")), (count, count, 2));
    for video in [&before, &after] {
        let id = video["id"].as_str().unwrap();
        let discovered = organization.get(&format!("/account-videos/{id}")).await.ok(200);
        assert_eq!(
            (discovered.at("/data/account_id"), discovered.at("/data/is_tracked")),
            (&tracked["id"], &json!(true))
        );
    }
    let new_posts = overview.integer("/data/new_posts/current");

    organization.delete(&format!("/videos/{}", before["id"].as_str().unwrap())).await.ok(204);
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!(overview.integer("/data/totals/videos"), count, "still discovered");
    assert_eq!(overview.integer("/data/new_posts/current"), new_posts);
    let history = format!("/videos/{}/analytics?values=cumulative", after["id"].as_str().unwrap());
    let counted = organization.get(&history).await.ok(200).integer("/data/6/view_count");
    assert!(counted > 0);
    organization.delete(&format!("/accounts/{}", tracked["id"].as_str().unwrap())).await.ok(204);
    let unchanged = organization.get(&history).await.ok(200);
    assert_eq!(unchanged.integer("/data/6/view_count"), counted, "the history is retained: {unchanged}");
    let videos = organization.get("/videos").await.ok(200);
    assert_eq!(videos.list("/data").len(), 1, "the other video is still tracked: {videos}");
    assert_eq!(videos.at("/data/0/account_id"), &Value::Null);
    organization.delete(&format!("/videos/{}", after["id"].as_str().unwrap())).await.ok(204);
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!((overview.integer("/data/totals/videos"), overview.at("/data/views/current")), (0, &json!(0)));
    organization.wait_applied().await;
}

#[tokio::test]
async fn scrape_merges_tracked_video_into_discovered_video() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let account = stack.sandbox_account("instagram");
    organization.track(account).await;
    // As discovered by a source that returns no shortcodes.
    let (discovered, code): (uuid::Uuid, String) = sqlx::query_as(
        "with latest as (select id, shortcode from videos where organization_id = $1 order by create_time desc limit 1)
         update videos v set shortcode = null from latest where v.id = latest.id returning v.id, latest.shortcode",
    )
    .bind(organization.id)
    .fetch_one(stack.pg())
    .await
    .unwrap();
    let body = json!({"platform": "instagram", "identifier": code, "metadata": {"a": "b"}});
    let tracked = organization.post("/videos", body).await.ok(201);
    assert_ne!(tracked.text("/data/id"), discovered.to_string());
    let merged = wait_until("the videos are merged", async || {
        let list = organization.get("/videos").await.ok(200);
        (list.list("/data").len() == 1 && list.text("/data/0/id") == discovered.to_string()).then_some(list)
    })
    .await;
    assert_eq!(merged.at("/data/0/shortcode"), &json!(code));
    assert_eq!(merged.at("/data/0/metadata"), &json!({"a": "b"}));
    assert_eq!(
        (merged.text("/data/0/tracking/status"), merged.at("/data/0/tracking/last_error")),
        ("active", &Value::Null)
    );
    organization.get(&format!("/videos/{}", tracked.text("/data/id"))).await.ok(404);
    organization.wait_applied().await;
}

/// Triggers do what foreign keys would: with a check per statement, not per row.
#[tokio::test]
async fn videos_need_their_account_and_organization_and_go_with_them() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let insert = "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked,
                     added_at, updated_at)
                  select gen_random_uuid(), n, $1, 'tiktok', n::text, $2, true, now(), now() from generate_series(1, 3) n";
    let violated = async |sql: &'static str, organization: uuid::Uuid, account: Option<uuid::Uuid>| {
        let result = sqlx::query(sql).bind(organization).bind(account).execute(stack.pg()).await;
        result.err().map(|error| error.as_database_error().unwrap().constraint().unwrap().to_owned())
    };
    let unknown = uuid::Uuid::now_v7();
    let to_account = Some("videos_account_id_fkey".to_owned());
    assert_eq!(violated(insert, organization.id, Some(unknown)).await, to_account);
    assert_eq!(violated(insert, unknown, None).await, Some("videos_organization_id_fkey".to_owned()));
    let account: uuid::Uuid = sqlx::query_scalar(
        "insert into accounts (id, organization_id, platform, username, added_at, updated_at)
         values (gen_random_uuid(), $1, 'tiktok', 'parent', now(), now()) returning id",
    )
    .bind(organization.id)
    .fetch_one(stack.pg())
    .await
    .unwrap();
    assert_eq!(violated(insert, organization.id, Some(account)).await, None);
    let attach = "update videos set account_id = $2 where organization_id = $1";
    assert_eq!(violated(attach, organization.id, Some(unknown)).await, to_account);
    let count = async || -> i64 {
        let sql = "select count(*) from videos where organization_id = $1";
        sqlx::query_scalar(sql).bind(organization.id).fetch_one(stack.pg()).await.unwrap()
    };
    assert_eq!(count().await, 3);
    sqlx::query("delete from accounts where id = $1").bind(account).execute(stack.pg()).await.unwrap();
    assert_eq!(count().await, 0);
    assert_eq!(violated(insert, organization.id, None).await, None);
    sqlx::query("delete from organizations where id = $1")
        .bind(organization.id)
        .execute(stack.pg())
        .await
        .unwrap();
    assert_eq!(count().await, 0);
}
