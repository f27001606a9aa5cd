//! Individually tracked videos, also of videos that were discovered on an account.

use futures_util::future::join_all;
use harness::{Response, TestApi};
use serde_json::{Value, json};
use tidemark::app::App;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::outbox::event::Event;
use uuid::Uuid;

use super::accounts::{insert_video, is_enabled, outbox_events, parse_id};

const INSTAGRAM: &str = "https://www.instagram.com/some.one/reel/CfUjwr8vyv2/?igsh=x";
const TIKTOK: &str = "https://m.tiktok.com/@Some.One/video/7301234567890123456?_r=1";

fn body(platform: &str, identifier: &str) -> Value {
    json!({"platform": platform, "identifier": identifier})
}

/// Fetches the ids of a list.
async fn list_ids(api: &TestApi, path: &str) -> Vec<String> {
    let page = api.get(path).await.ok(200);
    let page = page.json;
    page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn created_video_has_all_fields_and_is_due() {
    let api = TestApi::start().await;
    let body = json!({
        "platform": "tiktok", "identifier": TIKTOK, "metadata": {"team": "a"}, "scrape_interval_hours": 6
    });
    let created = api.post("/v2/videos", body).await.ok(201);
    let shown = created.json["data"].clone();
    let id = shown["id"].as_str().unwrap();
    assert_eq!(created.header("location"), format!("/v2/videos/{id}"));
    assert_eq!(
        shown,
        json!({
            "id": id, "type": "video", "internal_id": shown["internal_id"], "platform": "tiktok",
            "external_id": "7301234567890123456", "shortcode": null,
            "url": "https://www.tiktok.com/@some.one/video/7301234567890123456", "description": null,
            "media_type": null, "duration": null, "cover_image_url": null, "cover_image_url_original": null,
            "video_url": null, "video_url_original": null, "create_time": null, "added_at": shown["added_at"],
            "updated_at": shown["added_at"], "is_tracked": true, "is_active": true, "is_unavailable": false,
            "scrape_interval_hours": 6, "metadata": {"team": "a"}, "account_id": null, "account_username": null,
            "account_name": null, "platform_account_id": null, "creator_id": null, "creator_name": null,
            "first_scrape_time": null, "last_scrape_time": null, "view_count": 0, "like_count": 0,
            "comment_count": 0, "share_count": 0, "saved_count": null, "play_count": 0, "ig_play_count": null,
            "fb_play_count": null, "fb_like_count": null, "platform_data": {}, "hashtags": [],
            "unknown_counters": ["view_count", "like_count", "comment_count", "share_count", "saved_count", "play_count"],
            "tracking": {"status": "pending", "last_attempt_at": null,
                         "next_attempt_at": shown["tracking"]["next_attempt_at"], "last_error": null},
        })
    );
    assert!(shown["tracking"]["next_attempt_at"].is_string() && is_enabled(&api, id).await);
    assert_eq!(api.get(&format!("/v2/videos/{id}")).await.json["data"], shown);
    assert_eq!(api.get("/v2/videos").await.json["data"], json!([shown]));
    assert_eq!(api.get(&format!("/v2/account-videos/{id}")).await.status, 404);
    assert_eq!(api.get("/v2/account-videos").await.json["data"], json!([]));
    let events = outbox_events(&api).await;
    assert!(events.contains(&Event::VideosChanged(vec![parse_id(id)])), "{events:?}");
}

#[tokio::test]
async fn every_identifier_finds_the_tracked_video() {
    let api = TestApi::start().await;
    let code = api.post("/v2/videos", body("instagram", INSTAGRAM)).await.json["data"].clone();
    assert_eq!((&code["external_id"], &code["shortcode"]), (&Value::Null, &json!("CfUjwr8vyv2")));
    assert_eq!(code["url"], "https://www.instagram.com/p/CfUjwr8vyv2/");
    let number = api.create("/v2/videos", body("instagram", "17976197140599116")).await;
    let tiktok = api.create("/v2/videos", body("tiktok", "7301234567890123456")).await;
    for (platform, identifier, id) in [
        ("instagram", "CfUjwr8vyv2", code["id"].as_str().unwrap()),
        ("instagram", "instagram.com/p/CfUjwr8vyv2", code["id"].as_str().unwrap()),
        ("instagram", " 17976197140599116 ", &number),
        ("tiktok", TIKTOK, &tiktok),
        ("tiktok", "tiktok.com/@other/photo/7301234567890123456", &tiktok),
    ] {
        let again = api.post("/v2/videos", body(platform, identifier)).await;
        assert_eq!(again.status, 409, "{identifier}: {again}");
        let problem = again.json;
        assert_eq!(problem["code"], "CONFLICT");
        assert!(problem["detail"].as_str().unwrap().contains(id), "{identifier}: {problem}");
    }
    // Shortcodes are case-sensitive.
    api.create("/v2/videos", body("instagram", "cfujwr8vyv2")).await;
    assert_eq!(list_ids(&api, "/v2/videos").await.len(), 4);
}

#[tokio::test]
async fn invalid_video_lists_all_violations() {
    let api = TestApi::start().await;
    for (body, fields) in [
        (json!({}), vec!["platform", "identifier"]),
        (json!([]), vec!["body"]),
        (json!({"platform": "youtube", "identifier": "x"}), vec!["platform"]),
        (json!({"platform": "tiktok", "identifier": null}), vec!["identifier"]),
        (json!({"platform": "tiktok", "identifier": 7301234567890123456_u64}), vec!["identifier"]),
        (body("tiktok", ""), vec!["identifier"]),
        (body("tiktok", "CfUjwr8vyv2"), vec!["identifier"]),
        (body("tiktok", INSTAGRAM), vec!["identifier"]),
        (body("instagram", TIKTOK), vec!["identifier"]),
        (body("instagram", "https://vm.tiktok.com/ZMabc/"), vec!["identifier"]),
        (body("instagram", "https://www.instagram.com/some.one/"), vec!["identifier"]),
        (body("tiktok", "https://evil.example/@some.one/video/7301234567890123456"), vec!["identifier"]),
        (body("tiktok", &"1".repeat(2049)), vec!["identifier"]),
        (body("instagram", "a\u{0}bcdef"), vec!["identifier"]),
        (
            json!({"platform": "instagram", "identifier": "!", "is_active": null, "scrape_interval_hours": 5,
                   "metadata": {"a": 1}, "account_id": 1}),
            vec!["identifier", "is_active", "metadata.a", "scrape_interval_hours", "account_id"],
        ),
    ] {
        assert_eq!(api.post("/v2/videos", body.clone()).await.fields(), fields, "{body}");
    }
    let problem = api.post("/v2/videos", body("instagram", TIKTOK)).await.json;
    assert!(problem["errors"][0]["message"].as_str().unwrap().contains("tiktok"), "{problem}");
    assert_eq!(list_ids(&api, "/v2/videos").await.len(), 0);
}

/// Starts another API on the same database, with these sources.
async fn start_with_sources(api: &TestApi, readable: ReadablePlatforms) -> TestApi {
    api.start_another(App { readable, ..api.app.clone() }).await
}

#[tokio::test]
async fn video_without_a_source_is_rejected_or_unsupported() {
    let api = TestApi::start().await;
    let code = api.create("/v2/videos", body("instagram", "CfUjwr8vyv2")).await;
    let tiktok = api.create("/v2/videos", body("tiktok", TIKTOK)).await;
    let official = ReadablePlatforms {
        accounts: vec![Platform::Instagram, Platform::Tiktok],
        posts_by_id: vec![Platform::Tiktok],
        posts_by_shortcode: vec![],
    };
    let official = start_with_sources(&api, official).await;
    for identifier in ["CabcDEF1234", INSTAGRAM, "17976197140599116"] {
        let rejected = official.post("/v2/videos", body("instagram", identifier)).await;
        assert_eq!(rejected.fields(), ["identifier"]);
        assert!(rejected.body_text().contains("no configured source"), "{rejected}");
    }
    official.create("/v2/videos", body("tiktok", "7301234567890123457")).await;
    let status = |shown: Response| shown.json["data"]["tracking"].clone();
    let unsupported = status(official.get(&format!("/v2/videos/{code}")).await);
    assert_eq!(
        (&unsupported["status"], &unsupported["next_attempt_at"]),
        (&json!("unsupported"), &Value::Null)
    );
    assert_eq!(status(official.get(&format!("/v2/videos/{tiktok}")).await)["status"], "pending");
    let none = start_with_sources(&api, ReadablePlatforms::new([])).await;
    assert_eq!(
        none.post("/v2/videos", body("tiktok", "https://vm.tiktok.com/ZMabc")).await.fields(),
        ["identifier"]
    );
}

#[tokio::test]
async fn concurrent_creates_add_one_video() {
    let api = TestApi::start().await;
    let responses = join_all((0..8).map(|_| api.post("/v2/videos", body("tiktok", TIKTOK)))).await;
    let mut statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn discovered_video_can_also_be_tracked() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let (found, internal) = insert_video(&api, &account, "7301234567890123456", false, None).await;
    let path = format!("/v2/videos/{found}");
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.patch(&path, json!({"is_active": false})).await.status, 404);
    assert_eq!(api.delete(&path).await.status, 404);

    let body = json!({"platform": "tiktok", "identifier": TIKTOK, "is_active": false, "metadata": {"k": "v"},
                      "scrape_interval_hours": 720});
    let created = api.post("/v2/videos", body).await.ok(201);
    let shown = created.json["data"].clone();
    assert_eq!((&shown["id"], &shown["internal_id"]), (&json!(found), &json!(internal)));
    assert_eq!((&shown["is_tracked"], &shown["is_active"]), (&json!(true), &json!(false)));
    assert_eq!((&shown["scrape_interval_hours"], &shown["metadata"]), (&json!(720), &json!({"k": "v"})));
    assert_eq!((&shown["account_username"], &shown["tracking"]["status"]), (&json!("one"), &json!("paused")));
    assert!(!is_enabled(&api, &found.to_string()).await);
    // One record is in both lists.
    let mut discovered = api.get(&format!("/v2/account-videos/{found}")).await.json["data"].clone();
    assert_eq!(discovered["type"], "account_video");
    discovered["type"] = json!("video");
    assert_eq!(discovered, shown);
    for list in ["/v2/videos", "/v2/account-videos", &format!("/v2/accounts/{account}/videos")] {
        assert_eq!(list_ids(&api, list).await, [found.to_string()], "{list}");
    }

    assert_eq!(api.delete(&path).await.status, 204);
    assert_eq!(api.get(&path).await.status, 404);
    let left = api.get(&format!("/v2/account-videos/{found}")).await.json["data"].clone();
    assert_eq!((&left["is_tracked"], &left["is_active"]), (&json!(false), &json!(true)));
    assert_eq!((&left["scrape_interval_hours"], &left["metadata"]), (&json!(24), &json!({})));
    assert_eq!(left["tracking"]["status"], "pending", "the status of the account");
    let targets: i64 = sqlx::query_scalar("select count(*) from scrape_targets where id = $1")
        .bind(found)
        .fetch_one(api.pg())
        .await
        .unwrap();
    assert_eq!(targets, 0);
    let events = outbox_events(&api).await;
    assert!(
        !events.iter().any(|event| matches!(event, Event::SubjectRemoved { .. })),
        "its history stays: {events:?}"
    );
}

#[tokio::test]
async fn deleting_added_video_deletes_its_history() {
    let api = TestApi::start().await;
    let created = api.post("/v2/videos", body("tiktok", TIKTOK)).await.json["data"].clone();
    let (id, internal) = (created["id"].as_str().unwrap(), created["internal_id"].as_i64().unwrap());
    let path = format!("/v2/videos/{id}");
    let deleted = api.delete(&path).await;
    assert_eq!((deleted.status, deleted.body_text()), (204, ""));
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.delete(&path).await.status, 404);
    let removed: Vec<i64> =
        sqlx::query_scalar("select subject_id from removed_subjects where organization_id = $1")
            .bind(api.organization.id)
            .fetch_all(api.pg())
            .await
            .unwrap();
    assert_eq!(removed, [internal], "totals exclude it at once");
    let events = outbox_events(&api).await;
    let is_removed = events.iter().any(|event| {
        matches!(event, Event::SubjectRemoved { subject_id, account: None, videos }
            if *subject_id == internal && videos.len() == 1 && videos[0].id == parse_id(id))
    });
    assert!(is_removed, "{events:?}");
    // It can be added again, with a new id.
    assert_ne!(api.create("/v2/videos", body("tiktok", TIKTOK)).await, id);
}

#[tokio::test]
async fn patch_changes_only_sent_fields() {
    let api = TestApi::start().await;
    let id = api
        .create("/v2/videos", json!({"platform": "tiktok", "identifier": TIKTOK, "metadata": {"a": "1"}}))
        .await;
    let path = format!("/v2/videos/{id}");
    let paused = api.patch(&path, json!({"is_active": false})).await.json["data"].clone();
    assert_eq!((&paused["is_active"], &paused["metadata"]), (&json!(false), &json!({"a": "1"})));
    assert_eq!(paused["tracking"]["status"], "paused");
    assert_eq!((&paused["tracking"]["next_attempt_at"], is_enabled(&api, &id).await), (&Value::Null, false));
    let changed = json!({"is_active": true, "metadata": {"b": "2"}, "scrape_interval_hours": 12});
    let resumed = api.patch(&path, changed).await.json["data"].clone();
    assert_eq!((&resumed["metadata"], &resumed["scrape_interval_hours"]), (&json!({"b": "2"}), &json!(12)));
    assert_eq!((&resumed["tracking"]["status"], is_enabled(&api, &id).await), (&json!("pending"), true));
    assert_eq!(api.patch(&path, json!({})).await.json["data"]["metadata"], json!({"b": "2"}));
    // The new interval counts from the last attempt.
    sqlx::query("update scrape_targets set last_attempt_at = '2026-01-01T00:00:00Z' where id = $1")
        .bind(parse_id(&id))
        .execute(api.pg())
        .await
        .unwrap();
    let hourly = api.patch(&path, json!({"scrape_interval_hours": 6})).await.json;
    assert_eq!(hourly["data"]["tracking"]["next_attempt_at"], "2026-01-01T06:00:00Z");
    for (body, fields) in [
        (
            json!({"is_active": null, "metadata": null, "scrape_interval_hours": null}),
            vec!["is_active", "metadata", "scrape_interval_hours"],
        ),
        (json!({"scrape_interval_hours": 721}), vec!["scrape_interval_hours"]),
        (json!({"scrape_interval_hours": 6.5}), vec!["scrape_interval_hours"]),
        (
            json!({"identifier": "x", "platform": "tiktok", "is_tracked": false}),
            vec!["identifier", "is_tracked", "platform"],
        ),
        (json!("x"), vec!["body"]),
    ] {
        let mut violations = api.patch(&path, body.clone()).await.fields();
        violations.sort();
        assert_eq!(violations, fields, "{body}");
    }
    let both = api.patch("/v2/videos/x", json!({"scrape_interval_hours": 1})).await.fields();
    assert_eq!(both, ["video_id", "scrape_interval_hours"]);
}

#[tokio::test]
async fn video_list_filters_sorts_and_pages() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let creator = api.create("/v2/creators", json!({"name": "Mara"})).await;
    api.put(&format!("/v2/creators/{creator}/accounts/{account}")).await;
    // Discovered before it was added: the list sorts by when it was added.
    let (found, _) = insert_video(&api, &account, "7301234567890123456", false, None).await;
    insert_video(&api, &account, "7301234567890123999", false, None).await;
    let first = api.create("/v2/videos", body("instagram", "CfUjwr8vyv2")).await;
    let both = api.create("/v2/videos", body("tiktok", TIKTOK)).await;
    let last = api
        .create(
            "/v2/videos",
            json!({"platform": "instagram", "identifier": "CabcDEF1234", "is_active": false}),
        )
        .await;
    assert_eq!(both, found.to_string());
    for (id, views, posted, caption) in [
        (&first, 5, Some("2026-02-01T00:00:00Z"), "Éclair 100%"),
        (&both, 7, None, "éclat"),
        (&last, 6, Some("2026-01-01T00:00:00Z"), "plain"),
    ] {
        sqlx::query("update videos set view_count = $2, create_time = $3::timestamptz, description = $4, description_key = lower($4), added_at = added_at - interval '1 day' where id = $1")
            .bind(parse_id(id))
            .bind(views)
            .bind(posted)
            .bind(caption)
            .execute(api.pg())
            .await
            .unwrap();
    }
    for (query, expected) in [
        ("", vec![&last, &both, &first]),
        ("?order_by=added_at&order_direction=asc", vec![&first, &both, &last]),
        ("?order_by=view_count", vec![&both, &last, &first]),
        ("?sort=create_time", vec![&last, &first, &both]),
        ("?order_by=create_time", vec![&first, &last, &both]),
        ("?sort=-like_count", vec![&last, &first, &both]),
        ("?platform=instagram", vec![&last, &first]),
        ("?is_active=false", vec![&last]),
        ("?q=%C3%A9CLA", vec![&both, &first]),
        ("?q=100%25", vec![&first]),
        (&format!("?account_id={account}"), vec![&both]),
        (&format!("?creator_id={creator}&is_active=true"), vec![&both]),
    ] {
        let mut expected: Vec<_> = expected.into_iter().cloned().collect();
        if query.contains("like_count") {
            // All are equal, so they are sorted by id; the discovered one has the oldest.
            expected = vec![last.clone(), first.clone(), both.clone()];
        }
        assert_eq!(list_ids(&api, &format!("/v2/videos{query}")).await, expected, "{query}");
        // Paging yields the same list.
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let mark = if query.is_empty() { "?" } else { "&" };
            let page = api.get(&format!("/v2/videos{query}{mark}limit=1{cursor}")).await.json;
            paged.extend(
                page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()),
            );
            match page["pagination"]["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(paged, expected, "{query}");
    }
    let page = api.get("/v2/videos?include_total=true&platform=tiktok").await.json;
    assert_eq!(page["pagination"]["total_count"], 1);
    assert_eq!(
        page["filters"],
        json!({"platform": "tiktok", "order_by": "added_at", "order_direction": "desc"})
    );
    assert_eq!(api.get("/v2/videos?order_by=username&q=%00").await.fields(), ["q", "order_by"]);
    assert_eq!(api.get("/v2/account-videos?order_by=added_at").await.fields(), ["order_by"]);
    let rows = api.get("/v2/videos?order_by=added_at").await.json;
    let times: Vec<_> =
        rows["data"].as_array().unwrap().iter().map(|row| row["added_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, other| one > other), "{times:?}");
}

#[tokio::test]
async fn other_organizations_data_is_404() {
    let api = TestApi::start().await;
    let other = TestApi::start().await;
    let foreign = other.create("/v2/videos", body("tiktok", TIKTOK)).await;
    let account = other.create("/v2/accounts", json!({"platform": "tiktok", "username": "theirs"})).await;
    let creator = other.create("/v2/creators", json!({"name": "theirs"})).await;
    for path in [
        format!("/v2/videos/{foreign}"),
        format!("/v2/videos?account_id={account}"),
        format!("/v2/videos?creator_id={creator}"),
        format!("/v2/videos/{}", Uuid::now_v7()),
    ] {
        assert_eq!(api.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(api.patch(&format!("/v2/videos/{foreign}"), json!({"is_active": false})).await.status, 404);
    assert_eq!(api.delete(&format!("/v2/videos/{foreign}")).await.status, 404);
    let own = api.create("/v2/videos", body("tiktok", TIKTOK)).await;
    assert_ne!(own, foreign);
    assert_eq!(list_ids(&api, "/v2/videos").await, [own]);
    assert_eq!(other.get(&format!("/v2/videos/{foreign}")).await.json["data"]["is_active"], true);
}
