//! Accounts.

use chrono::{Days, Utc};
use futures_util::future::join_all;
use harness::{TestApi, create_organization};
use serde_json::{Value, json};
use tidemark::store::outbox::event::{self, Event};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

pub(super) fn parse_id(text: &str) -> Uuid {
    text.parse().unwrap()
}

/// The organization's events in the outbox, oldest first.
pub(super) async fn outbox_events(api: &TestApi) -> Vec<Event> {
    let rows: Vec<Vec<u8>> =
        sqlx::query_scalar("select events from outbox where organization_id = $1 order by position")
            .bind(api.organization.id)
            .fetch_all(api.pg())
            .await
            .unwrap();
    rows.iter().flat_map(|row| event::decode(row).unwrap()).collect()
}

/// Whether the scrape target is enabled.
pub(super) async fn is_enabled(api: &TestApi, id: &str) -> bool {
    sqlx::query_scalar("select enabled from scrape_targets where id = $1")
        .bind(parse_id(id))
        .fetch_one(api.pg())
        .await
        .unwrap()
}

#[tokio::test]
async fn created_account_has_all_fields() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let body = json!({
        "platform": "instagram", "username": "https://www.instagram.com/Some.One/?igsh=x", "category": "sport",
        "metadata": {"team": "a"}, "scrape_interval_hours": 6, "creator_id": creator,
        "max_recent_posts_per_account": 50, "post_lookback_days": null,
    });
    let created = api.post("/v2/accounts", body).await.ok(201);
    let mut account = created.json["data"].clone();
    let id = account["id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), format!("/v2/accounts/{id}"));
    assert_eq!(Uuid::try_parse(&id).unwrap().get_version_num(), 7);
    for path in [format!("/v2/accounts/{id}"), "/v2/accounts/@Some.One".to_owned()] {
        assert_eq!(api.get(&path).await.json["data"], account);
    }
    let members = account.as_object_mut().unwrap();
    let added_at = members.remove("added_at").unwrap();
    assert!(
        added_at.as_str().unwrap().ends_with('Z') && added_at.as_str().unwrap().len() <= 27,
        "{added_at}"
    );
    let tracking = members.remove("tracking").unwrap();
    assert_eq!(tracking["status"], "pending");
    assert!(tracking["next_attempt_at"].is_string());
    assert_eq!(
        account,
        json!({
            "id": id, "type": "account", "platform": "instagram", "username": "some.one", "name": null,
            "description": null, "profile_pic_url": null, "profile_pic_url_original": null, "is_verified": false,
            "is_active": true, "is_unavailable": false, "link_in_bio": null, "creator_id": creator,
            "creator_name": "Ann", "category": "sport", "metadata": {"team": "a"}, "first_scrape_time": null,
            "last_scrape_time": null, "scrape_interval_hours": 6, "follower_count": 0, "following_count": 0,
            "profile_post_count": 0, "total_post_count": 0, "view_count": 0, "like_count": 0, "comment_count": 0,
            "share_count": 0, "play_count": 0, "saved_count": null, "fb_play_count": null, "ig_play_count": null,
            "fb_like_count": null, "max_recent_posts_per_account": 50, "post_lookback_days": null,
            "effective_max_recent_posts_per_account": 50, "effective_post_lookback_days": 365,
        })
    );
    let due: bool =
        sqlx::query_scalar("select enabled and next_attempt_at <= $2 from scrape_targets where id = $1")
            .bind(parse_id(&id))
            .bind(harness::now())
            .fetch_one(api.pg())
            .await
            .unwrap();
    assert!(due);
    assert!(outbox_events(&api).await.contains(&Event::AccountsChanged(vec![parse_id(&id)])));
}

#[tokio::test]
async fn duplicate_username_is_409_naming_the_account() {
    let api = TestApi::start().await;
    let create =
        |username: &str| api.post("/v2/accounts", json!({"platform": "tiktok", "username": username}));
    let responses = join_all((0..8).map(|_| create("@Twice"))).await;
    let created: Vec<_> = responses.iter().filter(|response| response.status == 201).collect();
    assert_eq!(created.len(), 1);
    let id = created[0].json["data"]["id"].as_str().unwrap().to_owned();
    for rejected in responses.iter().filter(|response| response.status != 201) {
        assert_eq!((rejected.status, rejected.json["code"].as_str()), (409, Some("CONFLICT")));
        assert!(rejected.json["detail"].as_str().unwrap().contains(&id));
    }
    assert_eq!(create("x").await.fields(), ["username"]);
    assert_eq!(create("https://www.instagram.com/twice").await.fields(), ["username"]);
    // Usernames are unique per platform and organization.
    assert_eq!(
        api.post("/v2/accounts", json!({"platform": "instagram", "username": "twice"})).await.status,
        201
    );
    let (_, key) = create_organization(api.pg(), OrganizationChange::default()).await;
    let request = api.stack.client.post(format!("{}/v2/accounts", api.url())).bearer_auth(key);
    let other = harness::send(request.json(&json!({"platform": "tiktok", "username": "twice"}))).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
async fn account_cap_holds_under_concurrency() {
    let api = TestApi::start().await;
    let cap = |cap| OrganizationChange { account_cap: Some(cap), ..Default::default() };
    organizations::update(api.pg(), api.organization.id, &cap(Some(3))).await.unwrap();
    let create =
        |n: usize| api.post("/v2/accounts", json!({"platform": "tiktok", "username": format!("user{n}")}));
    let responses = join_all((0..10).map(create)).await;
    let created: Vec<_> = responses.iter().filter(|response| response.status == 201).collect();
    assert_eq!(created.len(), 3);
    for rejected in responses.iter().filter(|response| response.status != 201) {
        assert_eq!((rejected.status, rejected.json["code"].as_str()), (403, Some("QUOTA_EXCEEDED")));
    }
    // A duplicate is reported before the cap.
    let taken = created[0].json["data"]["username"].as_str().unwrap().to_owned();
    assert_eq!(api.post("/v2/accounts", json!({"platform": "tiktok", "username": taken})).await.status, 409);
    assert_eq!(api.delete(&format!("/v2/accounts/@{taken}")).await.status, 204);
    assert_eq!(create(10).await.status, 201);
    assert_eq!(create(11).await.status, 403);
    organizations::update(api.pg(), api.organization.id, &cap(None)).await.unwrap();
    assert_eq!(create(11).await.status, 201);
}

#[tokio::test]
async fn account_filters_combine() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "c"})).await;
    let create = |platform: &str, username: &str, more: Value| {
        let mut body = json!({"platform": platform, "username": username});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let api = &api;
        async move { api.create("/v2/accounts", body).await }
    };
    create("tiktok", "one_a", json!({"category": "Sport", "creator_id": creator})).await;
    create("tiktok", "oneXa", json!({"category": "sport", "is_active": false})).await;
    create("instagram", "one_a", json!({"creator_id": creator})).await;
    for (query, count) in [
        ("", 3),
        ("platform=tiktok", 2),
        ("q=ONE_", 2),
        ("q=%25", 0),
        ("q=%5C", 0),
        ("category=Sport", 1),
        ("category=", 0),
        ("is_active=false", 1),
        ("platform=tiktok&q=one&is_active=true", 1),
    ] {
        let found = api.get(&format!("/v2/accounts?include_total=true&{query}")).await.json;
        assert_eq!(found["pagination"]["total_count"], count, "{query}");
        assert_eq!(found["data"].as_array().unwrap().len(), count, "{query}");
    }
    let by_creator = api.get(&format!("/v2/accounts?creator_id={creator}")).await.json;
    assert_eq!(by_creator["data"].as_array().unwrap().len(), 2);
    assert_eq!(api.get(&format!("/v2/accounts?creator_id={}", Uuid::now_v7())).await.status, 404);
    let ambiguous = api.get("/v2/accounts/@one_a").await;
    assert_eq!(ambiguous.status, 409);
    assert_eq!(api.get("/v2/accounts/@one_a?platform=tiktok").await.json["data"]["platform"], "tiktok");
    assert_eq!(api.get("/v2/accounts/@one").await.status, 404);
    assert_eq!(api.get("/v2/accounts/@%00").await.status, 404);
}

#[tokio::test]
async fn patch_changes_only_sent_fields() {
    let api = TestApi::start().await;
    let id = api
        .create(
            "/v2/accounts",
            json!({"platform": "tiktok", "username": "one", "category": "a", "metadata": {"k": "v"}}),
        )
        .await;
    let path = format!("/v2/accounts/{id}");
    let before = api.get(&path).await.json["data"].clone();
    assert_eq!(api.patch(&path, json!({})).await.json["data"], before);
    let creator = api.create("/v2/creators", json!({"name": "c"})).await;
    for (change, field, value) in [
        (json!({"category": null}), "category", Value::Null),
        (json!({"metadata": {}}), "metadata", json!({})),
        (json!({"is_active": false}), "is_active", json!(false)),
        (json!({"scrape_interval_hours": 720}), "scrape_interval_hours", json!(720)),
        (
            json!({"max_recent_posts_per_account": 5000}),
            "effective_max_recent_posts_per_account",
            json!(5000),
        ),
        (json!({"max_recent_posts_per_account": null}), "effective_max_recent_posts_per_account", json!(500)),
        (json!({"post_lookback_days": 90}), "effective_post_lookback_days", json!(90)),
        (json!({"creator_id": creator}), "creator_name", json!("c")),
        (json!({"creator_id": null}), "creator_id", Value::Null),
    ] {
        let response = api.patch("/v2/accounts/@one", change.clone()).await;
        assert_eq!(response.status, 200, "{change} {response}");
        assert_eq!(response.json["data"][field], value, "{change}");
        assert_eq!(api.get(&path).await.json["data"], response.json["data"]);
    }
    assert_eq!(api.patch(&path, json!({"creator_id": Uuid::now_v7()})).await.status, 404);
    assert_eq!(api.patch(&format!("/v2/accounts/{}", Uuid::now_v7()), json!({})).await.status, 404);
}

#[tokio::test]
async fn tracking_status_follows_account_and_creator() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "c"})).await;
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": creator});
    let id = api.create("/v2/accounts", body).await;
    let (account, owner) = (format!("/v2/accounts/{id}"), format!("/v2/creators/{creator}"));
    let state = || async {
        let tracking = api.get(&account).await.json["data"]["tracking"].clone();
        let status = tracking["status"].as_str().unwrap().to_owned();
        assert_eq!(tracking["next_attempt_at"].is_null(), status.starts_with("paused"), "{tracking}");
        (status, is_enabled(&api, &id).await)
    };
    let expect = |status: &str, enabled: bool| (status.to_owned(), enabled);
    assert_eq!(state().await, expect("pending", true));
    api.patch(&owner, json!({"is_active": false})).await;
    assert_eq!(state().await, expect("paused_by_creator", false));
    assert_eq!(api.get(&account).await.json["data"]["is_active"], true);
    api.patch(&account, json!({"is_active": false})).await;
    assert_eq!(state().await, expect("paused", false));
    api.patch(&owner, json!({"is_active": true})).await;
    assert_eq!(state().await, expect("paused", false));
    api.patch(&account, json!({"is_active": true})).await;
    assert_eq!(state().await, expect("pending", true));
    api.patch(&owner, json!({"is_active": false})).await;
    api.patch(&account, json!({"creator_id": null})).await;
    assert_eq!(state().await, expect("pending", true));
    api.put(&format!("{owner}/accounts/{id}")).await;
    assert_eq!(state().await, expect("paused_by_creator", false));
    api.delete(&owner).await;
    assert_eq!(state().await, expect("pending", true));
    let attempt = |failures: i32| {
        let (pg, id) = (api.pg().clone(), parse_id(&id));
        async move {
            sqlx::query("update scrape_targets set failures = $2, last_error = 'x', last_attempt_at = now() where id = $1")
                .bind(id)
                .bind(failures)
                .execute(&pg)
                .await
                .unwrap();
        }
    };
    attempt(1).await;
    assert_eq!(state().await, expect("failing", true));
    attempt(0).await;
    sqlx::query("update accounts set last_scrape_time = now() where id = $1")
        .bind(parse_id(&id))
        .execute(api.pg())
        .await
        .unwrap();
    assert_eq!(state().await, expect("active", true));
}

#[tokio::test]
async fn next_attempt_is_interval_after_last_attempt() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    sqlx::query("update scrape_targets set last_attempt_at = '2026-01-01T00:00:00Z', next_attempt_at = '2026-01-02T00:00:00Z' where id = $1")
        .bind(parse_id(&id))
        .execute(api.pg())
        .await
        .unwrap();
    let response = api.patch("/v2/accounts/@one", json!({"scrape_interval_hours": 6})).await.json;
    assert_eq!(response["data"]["tracking"]["next_attempt_at"], "2026-01-01T06:00:00Z");
}

#[tokio::test]
async fn unavailable_account_can_be_renamed() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "old"})).await;
    api.create("/v2/accounts", json!({"platform": "tiktok", "username": "taken"})).await;
    let path = format!("/v2/accounts/{id}");
    // Never scraped: a mistyped username can be corrected.
    let corrected = api.patch(&path, json!({"username": "oldd"})).await.json["data"]["username"].clone();
    assert_eq!(corrected, "oldd");
    assert_eq!(api.patch(&path, json!({"username": "taken"})).await.status, 409);
    assert_eq!(api.patch(&path, json!({"username": "old"})).await.status, 200);
    sqlx::query("update accounts set first_scrape_time = now() where id = $1")
        .bind(parse_id(&id))
        .execute(api.pg())
        .await
        .unwrap();
    assert_eq!(
        api.patch(&path, json!({"username": "new"})).await.status,
        409,
        "it is scraped under its current name"
    );
    // A rule of Instagram alone: invalid before it is a conflict.
    assert_eq!(api.patch(&path, json!({"username": "n"})).await.fields(), ["username"]);
    assert_eq!(api.patch(&path, json!({"username": "OLD"})).await.status, 200);
    sqlx::query("update accounts set is_unavailable = true, holds_username = false where id = $1")
        .bind(parse_id(&id))
        .execute(api.pg())
        .await
        .unwrap();
    assert_eq!(api.get("/v2/accounts/@old").await.status, 404);
    assert_eq!(api.patch(&path, json!({"username": "taken"})).await.status, 409);
    assert_eq!(
        api.patch(&path, json!({"username": "no name", "category": "not stored"})).await.fields(),
        ["username"]
    );
    let renamed = api.patch(&path, json!({"username": "@New"})).await.json["data"].clone();
    assert_eq!((renamed["username"].as_str(), renamed["category"].as_str()), (Some("new"), None));
    assert_eq!(renamed["tracking"]["status"], "unavailable");
    assert_eq!(api.get("/v2/accounts/@new").await.json["data"]["id"], id.as_str());
}

/// Inserts an account-discovered video as the tracker would.
pub(super) async fn insert_video(
    api: &TestApi,
    account: &str,
    external_id: &str,
    tracked: bool,
    posted: Option<chrono::DateTime<Utc>>,
) -> (Uuid, i64) {
    let id = Uuid::now_v7();
    let internal: i64 = sqlx::query_scalar(
        "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked, tracked_at,
                             added_at, updated_at, create_time, description, description_key)
         select $1, internal_id, organization_id, platform, $3, id, $4, case when $4 then now() end, now(), now(), $5,
                $3, lower($3)
         from accounts where id = $2
         returning internal_id",
    )
    .bind(id)
    .bind(parse_id(account))
    .bind(external_id)
    .bind(tracked)
    .bind(posted)
    .fetch_one(api.pg())
    .await
    .unwrap();
    (id, internal)
}

#[tokio::test]
async fn account_delete_keeps_individually_tracked_videos() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let (found, found_internal) = insert_video(&api, &id, "1", false, None).await;
    let (added, added_internal) = insert_video(&api, &id, "2", true, None).await;
    let subject: i64 = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(parse_id(&id))
        .fetch_one(api.pg())
        .await
        .unwrap();
    let deleted = api.delete(&format!("/v2/accounts/{id}")).await;
    assert_eq!((deleted.status, deleted.body_text()), (204, ""));
    assert_eq!(api.get(&format!("/v2/accounts/{id}")).await.status, 404);
    assert_eq!(api.delete(&format!("/v2/accounts/{id}")).await.status, 404);
    let left: Vec<(Uuid, Option<Uuid>, i64)> =
        sqlx::query_as("select id, account_id, subject_id from videos where organization_id = $1")
            .bind(api.organization.id)
            .fetch_all(api.pg())
            .await
            .unwrap();
    let [(left_id, None, new_subject)] = left[..] else { panic!("{left:?}") };
    assert!(left_id == added && new_subject != subject);
    let events = outbox_events(&api).await;
    let moved = Event::VideoMoved {
        from: event::SubjectVideo { subject_id: subject, video_id: added_internal },
        to: event::SubjectVideo { subject_id: new_subject, video_id: added_internal },
    };
    let removed = Event::SubjectRemoved {
        subject_id: subject,
        account: Some(parse_id(&id)),
        videos: vec![event::RemovedVideo { id: found, video_id: found_internal }],
    };
    let position = |wanted: &Event| events.iter().position(|event| event == wanted).unwrap();
    assert!(position(&moved) < position(&removed));
    let gone: i64 = sqlx::query_scalar(
        "select count(*) from removed_subjects where organization_id = $1 and subject_id = $2",
    )
    .bind(api.organization.id)
    .bind(subject)
    .fetch_one(api.pg())
    .await
    .unwrap();
    assert_eq!(gone, 1);
}

#[tokio::test]
async fn account_stats_count_posts_of_seven_utc_days() {
    let api = TestApi::start().await;
    let busy = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "busy"})).await;
    let quiet = api
        .create("/v2/accounts", json!({"platform": "tiktok", "username": "quiet", "is_active": false}))
        .await;
    let today = harness::now().date_naive();
    let at = |days: u64, hour: u32| (today - Days::new(days)).and_hms_opt(hour, 0, 0).unwrap().and_utc();
    for (n, (days, hour)) in [(0, 0), (0, 23), (6, 0), (6, 23), (7, 23), (3, 12)].into_iter().enumerate() {
        insert_video(&api, &busy, &n.to_string(), n == 0, Some(at(days, hour))).await;
    }
    sqlx::query("update accounts set total_post_count = 6 where id = $1")
        .bind(parse_id(&busy))
        .execute(api.pg())
        .await
        .unwrap();
    let stats = api.get("/v2/accounts/stats").await.json;
    let days: Vec<_> = (0..7).map(|n| (today - Days::new(6 - n)).to_string()).collect();
    assert_eq!(stats["meta"], json!({"days": days}));
    assert_eq!(
        stats["data"],
        json!([
            {"account_id": busy, "account_videos_count": 6, "posts_per_day_7d": [2, 0, 0, 1, 0, 0, 2]},
            {"account_id": quiet, "account_videos_count": 0, "posts_per_day_7d": [0, 0, 0, 0, 0, 0, 0]},
        ])
    );
}

#[tokio::test]
async fn other_organizations_data_is_404() {
    let api = TestApi::start().await;
    let other = TestApi::start().await;
    let foreign = other.create("/v2/accounts", json!({"platform": "tiktok", "username": "theirs"})).await;
    let creator = other.create("/v2/creators", json!({"name": "theirs"})).await;
    let own = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "own"})).await;
    for path in [
        format!("/v2/accounts/{foreign}"),
        "/v2/accounts/@theirs".to_owned(),
        format!("/v2/creators/{creator}"),
        format!("/v2/accounts/{foreign}/videos"),
        format!("/v2/account-videos?account_id={foreign}"),
        format!("/v2/account-videos?creator_id={creator}"),
        format!("/v2/accounts?creator_id={creator}"),
    ] {
        assert_eq!(api.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(api.patch(&format!("/v2/accounts/{own}"), json!({"creator_id": creator})).await.status, 404);
    assert_eq!(api.put(&format!("/v2/creators/{creator}/accounts/{own}")).await.status, 404);
    assert_eq!(api.delete(&format!("/v2/accounts/{foreign}")).await.status, 404);
    let body = json!({"platform": "tiktok", "username": "x1", "creator_id": creator});
    assert_eq!(api.post("/v2/accounts", body).await.status, 404);
    assert_eq!(api.get("/v2/accounts").await.json["data"].as_array().unwrap().len(), 1);
    assert_eq!(other.get(&format!("/v2/accounts/{foreign}")).await.status, 200);
}
